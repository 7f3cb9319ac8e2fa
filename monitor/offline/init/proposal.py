"""Proposal: which rubrics fit the traces that were seen, route by route, each with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidejudge.monitor.config.match import literal, task_of
from sidejudge.monitor.route.router import TASK_RUBRICS
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.learning.contract import MIN_RUNS, learn
from sidejudge.scoring.learning.observed_run import observe_run
from sidejudge.scoring.metrics.run_steps import acts
from sidejudge.scoring.rubrics import RUBRICS, SCENARIO_RUBRICS
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE
from sidejudge.scoring.trace.loop_guard import evaluator_traffic
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.verdict import State

_SERVICES: Final = 20
_NAMES: Final = 20
"""Names of one service that get a route of their own, the most frequent ones."""
_MOST: Final = 0.5
"""A rubric is proposed where it reaches a verdict on more than this share of the traces."""
HEALTH: Final = "run_health"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedRoute:
    """A route and its reason. ``traces`` counts the traces behind it, which use ``agents`` and ``tools``."""

    match: Mapping[str, str]
    rubrics: tuple[str, ...]
    reasons: tuple[str, ...]
    traces: int
    scenario: str | None = None
    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a configuration would hold. ``hints`` are what the traces lack, each with what it would allow."""

    routes: tuple[ProposedRoute, ...] = ()
    scenarios: Mapping[str, Mapping[str, Json]] | None = None
    traces: int = 0
    hints: tuple[str, ...] = ()
    default_rubrics: tuple[str, ...] = ("run_health",)

    @property
    def ready(self) -> tuple[str, ...]:
        """Ready rubrics that routes name, which the configuration has to hold."""
        named = [name for route in self.routes for name in route.rubrics]
        return tuple(dict.fromkeys(name for name in (*named, *self.default_rubrics) if name in _READY))


def propose(cases: Sequence[Case], *, judged: bool = False) -> Proposal:
    """What fits these cases. Traces of evaluators, and those without a model, an agent or a tool, are left out.

    ``judged``: a judge is configured, so that rubrics which need one are proposed too.
    """
    runs = [case for case in cases if evaluator_traffic(case.service, case.environment, tags=case.tags) is None]
    runs = [case for case in runs if case.trace is None or acts(case) or case.tools_used]
    by_service: dict[str | None, list[Case]] = {}
    for case in runs:
        by_service.setdefault(_own_name(case.service), []).append(case)
    ordered = sorted(by_service.items(), key=lambda item: (-len(item[1]), item[0] or ""))[:_SERVICES]
    ordered.sort(key=lambda item: item[0] is None)  # routes without a service match every service's traces
    routes: list[ProposedRoute] = []
    scenarios: dict[str, Mapping[str, Json]] = {}
    for service, own in ordered:
        routes += _by_task(service, own)
        for name, named in _by_name(own):
            if (learned := _learned(name, named, runs)) is not None:
                scenario = _named(service, name, scenarios)
                scenarios[scenario] = learned[0]
                match = {**_service(service), "name": literal(name)}
                routes.append(_route(match, named, learned[1], scenario, judged=judged))
        routes.append(_route(_service(service), own, None, None, judged=judged))
    return Proposal(
        routes=tuple(route for route in routes if route.match), scenarios=scenarios, traces=len(runs),
        hints=tuple(_hints(runs, scenarios)),
    )  # fmt: skip


def with_judge(proposal: Proposal) -> Proposal:
    """A proposal without traces, and a judge that reads whether answers address what was asked."""
    rubric = judged_rubric(())
    routes = tuple(
        replace(each, rubrics=(*each.rubrics, rubric), reasons=(*each.reasons, _JUDGED[rubric]))
        for each in proposal.routes
    )
    return replace(proposal, routes=routes, default_rubrics=(*proposal.default_rubrics, rubric))


def _own_name(service: str | None) -> str | None:
    """The application's configured name; None for a name that an SDK makes up: a route must not rest on it."""
    return service if service and not service.startswith(UNKNOWN_SERVICE) else None


def _service(service: str | None) -> dict[str, str]:
    return {} if service is None else {"service": literal(service)}


def _by_task(service: str | None, cases: Sequence[Case]) -> list[ProposedRoute]:
    """Routes for tasks that name a rubric which reaches verdicts on what these traces carry."""
    found = []
    tasks = Counter(task for case in cases if (task := task_of(case)) is not None and task in TASK_RUBRICS)
    for task, _ in tasks.most_common():
        own = [case for case in cases if task_of(case) == task]
        rubric = TASK_RUBRICS[task]
        if (share := _reached(rubric, own)) > _MOST:
            why = f"{rubric}: the traces name the task {task}, and {share:.0%} of them carry what it needs"
            found.append(
                ProposedRoute(
                    match={**_service(service), "task": task}, rubrics=(rubric, HEALTH), reasons=(why, _HEALTH),
                    traces=len(own),
                )
            )  # fmt: skip
    return found


def _reached(rubric: str, cases: Sequence[Case]) -> float:
    """The share of cases on which a rubric reaches a verdict by words alone."""
    looked_at = cases[:20]
    reached = sum(score(case, RUBRICS[rubric], created_at="").state is not State.INCOMPLETE for case in looked_at)
    return reached / len(looked_at) if looked_at else 0.0


def _by_name(cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
    by_name: dict[str, list[Case]] = {}
    for case in cases:
        if case.name:
            by_name.setdefault(case.name, []).append(case)
    return sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0]))[:_NAMES]


def _learned(name: str, cases: Sequence[Case], everything: Sequence[Case]) -> tuple[Mapping[str, Json], str] | None:
    """The scenario that a name's runs follow, and the evidence for it; None for too few runs, or no common line."""
    judged = [(case, score(case, RUBRICS[HEALTH], created_at="").passed) for case in cases]
    runs = [run for case, good in judged if (run := observe_run(case, group=name, good=good)) is not None]
    if not any(run.calls or run.agents for run in runs):
        return None
    elsewhere = frozenset(
        call.name for case in everything if case.name != name for call in case.tools_used or () if not call.handoff
    )
    contract = learn(name, runs, elsewhere=elsewhere)
    if contract is None or not contract.lines:
        return None
    return contract.scenarios()[name], f"workflow: learned from {contract.runs} good runs; {contract.promise()}"


_HEALTH: Final = "run_health: needs nothing but the trace: did it complete, answer, and did its steps and tools work"


_JUDGED: Final[Mapping[str, str]] = {
    "agent": "agent: a judge reads how the agent routed, used its tools and answered",
    "faithfulness": "faithfulness: a judge compares the answer with the passages that were retrieved",
    "answer-relevance": "answer-relevance: a judge reads whether the answer addresses what was asked",
}
_READY: Final = frozenset({"faithfulness", "answer-relevance"})


def judged_rubric(cases: Sequence[Case]) -> str:
    """The rubric for a judge that most of these cases carry enough for."""
    half = len(cases) / 2
    if cases and sum(bool(case.context) for case in cases) > half:
        return "faithfulness"
    if cases and sum(bool(case.tools_used or case.agents_called) for case in cases) > half:
        return "agent"
    return "answer-relevance"


def _route(
    match: Mapping[str, str], cases: Sequence[Case], learned: str | None, scenario: str | None, *, judged: bool
) -> ProposedRoute:
    agents = Counter(agent for case in cases for agent in dict.fromkeys(case.agents_called or ()))
    tools = Counter(name for case in cases for name in dict.fromkeys(call.name for call in case.tools_used or ()))
    chosen = dict.fromkeys(SCENARIO_RUBRICS, learned) if learned else {}
    chosen[HEALTH] = _HEALTH
    if judged:
        rubric = judged_rubric(cases)
        chosen[rubric] = _JUDGED[rubric]
    return ProposedRoute(
        match=dict(match), rubrics=tuple(chosen), reasons=tuple(chosen.values()), traces=len(cases), scenario=scenario,
        agents=tuple(name for name, _ in agents.most_common(8)), tools=tuple(name for name, _ in tools.most_common(8)),
    )  # fmt: skip


def _named(service: str | None, name: str, taken: Mapping[str, object]) -> str:
    """A unique name for a scenario."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:40] or "run"
    with_service = re.sub(r"[^A-Za-z0-9]+", "_", f"{service}_{name}").strip("_").lower()[:60] or plain
    for candidate in (plain, with_service):
        if candidate not in taken:
            return candidate
    return next(f"{with_service}_{n}" for n in range(2, 1000) if f"{with_service}_{n}" not in taken)


def _hints(cases: Sequence[Case], scenarios: Mapping[str, object]) -> list[str]:
    found = []
    if any(not case.service or case.service.startswith(UNKNOWN_SERVICE) for case in cases):
        found.append("some traces name no service: set OTEL_SERVICE_NAME in the application, so that it has a status")
    silent = [case for case in cases if not case.content_captured]
    if silent:
        switch = next((case.capture_switch for case in silent if case.capture_switch), None)
        how = f"; {switch} would capture them" if switch else ""
        found.append(f"{len(silent)} of {len(cases)} traces carry no message contents{how}")
    if not scenarios and any(case.tools_used for case in cases):
        found.append(f"no scenario was learned: that takes at least {MIN_RUNS} good runs of one name that agree")
    if any(case.context for case in cases):
        found.append("retrieved passages were seen: with a judge, 'sidejudge rubrics add faithfulness' checks answers")
    if any(case.expected_outcome is not None for case in cases):
        found.append("reference answers were seen: with a judge, the rubric 'quality' compares answers with them")
    if any(case.session_id for case in cases):
        found.append("session ids were seen: 'sessions:' judges whole conversations")
    return found

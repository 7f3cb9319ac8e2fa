"""workflow: whether the right agents and tools were called in the right way (seed 003 §1; rubrics §10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import stated_scenario
from sidejudge.scoring.metrics.metric import Metric, pass_or_fail
from sidejudge.scoring.metrics.run_steps import signs
from sidejudge.scoring.result.reason import Reason, together
from sidejudge.scoring.result.result import Failed, Method, NotApplicable, Result, Scored, Unavailable, at_least
from sidejudge.scoring.scenario.scenario import Scenario
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

from .workflow_calls import (
    arguments_in_part,
    call_budget_in_part,
    hold_arguments,
    hold_call_budget,
    hold_order,
    hold_result_use,
    order_in_part,
)
from .workflow_sides import agents_in_part, hold_agents, hold_tools, read_scenario, tools_in_part

SOURCE = "seed 003 §1"
_NO_SIGNS = NotApplicable(Reason("the scenario has no signs"))


def _habits(case: Case, scenario: Scenario) -> Result:
    """Whether the run keeps to the signs. Unknown ones hide no departure from the others."""
    usual = scenario.signs
    if usual is None:
        return _NO_SIGNS
    results = [
        measure(case, usual) for measure in (hold_agents, hold_tools, hold_order, hold_call_budget, hold_arguments)
    ]
    departures = [result.reason for result in results if isinstance(result, Scored) and result.value != 1.0]
    if not departures:
        return next((result for result in results if isinstance(result, Unavailable | Failed)), Scored(value=1.0))
    found = signs([(case.root_span_id, departure) for departure in departures])
    return Scored(value=0.0, reason=together(departures), details=found)


def _measured(
    measure: Callable[[Case, Scenario], Result], seen: Callable[[Case, Scenario], Scored | None] | None = None
) -> Callable[[Case], Result]:
    """A measure of a case and its scenario. ``seen``: breaches in part of a trace, which the rest cannot undo."""

    def measured(case: Case) -> Result:
        scenario = case.once(read_scenario)
        if not isinstance(scenario, Unavailable):
            return measure(case, scenario)
        stated = None if case.complete or seen is None else stated_scenario(case)
        proven = seen(case, stated) if seen is not None and isinstance(stated, Scenario) else None
        return scenario if proven is None else proven

    return measured


_UNDEFINED = (
    "there is no scenario, the trace is incomplete and shows no breach, a call that would break it may not show, or "
)

agents = pass_or_fail(
    id="agents",
    title="Agents",
    meaning="Whether the expected agents were called and no other; 1 or 0.",
    formula="1 if missing and unexpected are empty, else 0",
    source=f"{SOURCE}; rubrics §10",
    measure=_measured(hold_agents, agents_in_part),
    undefined=_UNDEFINED + "agents_called is absent while the scenario expects something of agents",
    details_name_parts=True,
)
tools = pass_or_fail(
    id="tools",
    title="Tools",
    meaning="Whether the expected tools were called and no other; 1 or 0.",
    formula="1 if missing and unexpected are empty, else 0",
    source=f"{SOURCE}; rubrics §10",
    measure=_measured(hold_tools, tools_in_part),
    undefined=_UNDEFINED + "tools_used is absent while the scenario expects something of tools",
    details_name_parts=True,
)
order = pass_or_fail(
    id="order",
    title="Tool order",
    meaning="Whether tools_in_order were called in that order, others between them allowed; 1 or 0.",
    formula="1 if tools_in_order is a subsequence of the calls, else 0",
    source="rubrics §10",
    measure=_measured(hold_order, order_in_part),
    undefined=_UNDEFINED + "tools_used is absent; not applicable unless the scenario asks",
    details_name_parts=True,
)
call_budget = pass_or_fail(
    id="call_budget",
    title="Call budget",
    meaning="Whether no tool, and not all together, was called more often than max_calls allows; 1 or 0.",
    formula="1 if calls <= max_calls for every tool listed and for '*' (all), else 0",
    source="rubrics §10",
    measure=_measured(hold_call_budget, call_budget_in_part),
    undefined=_UNDEFINED + "tools_used is absent; not applicable unless the scenario asks",
)
arguments = pass_or_fail(
    id="arguments",
    title="Tool arguments",
    meaning="Whether every call of a listed tool had arguments as the scenario expects them; 1 or 0.",
    formula="1 if every expected argument of every such call is present and as expected, else 0",
    source="rubrics §10",
    measure=_measured(hold_arguments, arguments_in_part),
    undefined=_UNDEFINED + "arguments were not captured; not applicable unless the scenario asks",
)
result_use = pass_or_fail(
    id="result_use",
    title="Result use",
    meaning="Whether the output bears out something of what each listed tool returned; 1 or 0.",
    formula="1 if the output has, for every such call, a number, a name or a word that only its result brought in",
    source="rubrics §10",
    measure=_measured(hold_result_use),
    methods=(Method.LEXICAL,),
    undefined="there is no scenario, the trace is incomplete, a call of such a tool may not show, or "
    "results were not captured or hold nothing distinctive; not applicable unless the scenario asks",
)

habits = Metric(
    id="habits",
    title="Habits",
    meaning="Whether the run keeps to the scenario's signs, which say what most good runs do; 1 or 0. A sign, which "
    "neither weighs nor decides.",
    formula="1 if agents, tools, order, call_budget and arguments of the scenario's signs would be 1, else 0",
    source="rubrics §10",
    measure=_measured(_habits),
    bands=at_least(good=1.0, acceptable=0.0),
    undefined="there is no scenario, the trace is incomplete, or of what the signs ask something is not known; not "
    "applicable unless the scenario has signs",
)

_EXTENSIONS = (order, call_budget, arguments, result_use)


def _passes(_: float, results: Mapping[str, Result]) -> bool | None:
    """Whether all applicable checks are 1. A failed check decides; otherwise an unknown one leaves it undecided."""
    known = True
    for name, result in results.items():
        if name == habits.id:
            continue
        if isinstance(result, Scored):
            if result.value != 1.0:
                return False
        elif not isinstance(result, NotApplicable):
            known = False
    return True if known else None


def _breached(results: Mapping[str, Result]) -> tuple[str, ...]:
    """The checks that a run does not meet, whatever is unknown of the others."""
    checks = ((name, results[name]) for name in (*SIDES, *CHECKS))
    return tuple(name for name, found in checks if isinstance(found, Scored) and found.value != 1.0)


def _detail(_case: Case, _composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """The seed's result object under ``workflow``; absent when a side, or the pass, is not known."""
    called, used = results[agents.id], results[tools.id]
    if not isinstance(called, Scored) or not isinstance(used, Scored) or (passed := _passes(1.0, results)) is None:
        return {}
    return {"workflow": {"pass": passed, agents.id: dict(called.details), tools.id: dict(used.details)}}


SIDES = (agents.id, tools.id)
DEPARTURES = ("missing", "unexpected")
CHECKS = tuple(metric.id for metric in _EXTENSIONS)
KINDS = (*(f"{side}_{departure}" for side in SIDES for departure in DEPARTURES), *CHECKS)
"""Every kind of violation, a closed list: missing and unexpected agents and tools, and each check beyond them."""


def violations(results: Mapping[str, Result]) -> tuple[str, ...]:
    """The kinds of violation that the results show, each at most once."""
    broken = {name: found for name, found in results.items() if isinstance(found, Scored) and found.value != 1.0}
    sides = [
        f"{side}_{what}" for side in SIDES if side in broken for what in DEPARTURES if broken[side].details.get(what)
    ]
    return (*sides, *(name for name in CHECKS if name in broken))


RUBRIC = Rubric(
    id="workflow",
    title="Workflow Validation",
    source="seed 003 §1; rubrics §10",
    formula="0.5 × agents + 0.5 × tools; passes if both are 1, and order, call_budget, arguments and result_use "
    "where the scenario asks for them",
    criteria=(
        Criterion(metric=agents, weight=0.5),
        Criterion(metric=tools, weight=0.5),
        *(Criterion(metric=metric) for metric in _EXTENSIONS),
        Criterion(metric=habits),
    ),
    pass_mark=None,
    passes=_passes,
    breached=_breached,
    detail=_detail,
    violations=violations,
)

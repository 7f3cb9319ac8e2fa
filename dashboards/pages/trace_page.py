"""Trace page: what happened to one trace and why: its end, its verdicts, and its conversation while held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sidejudge.dashboards.yaml_text import readable
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.amount import amount, beside
from sidejudge.scoring.lexical.shown_text import MAX_REASON, label
from sidejudge.scoring.runs.test_set import case_as_test, failing_metrics_of
from sidejudge.scoring.trace.jsontext import mapping, objects
from sidejudge.scoring.trace.trace import Trace, unread_counts
from sidejudge.scoring.verdict.escalation import escalation_text
from sidejudge.scoring.verdict.review_reason import COST_UNKNOWN

from .failing_metrics import WorkflowDiff, fails, scores_of, workflow_diff
from .rendering import render
from .span_tree import signs_of, span_tree
from .transcript import Evidence, Marker, evidence_of, transcript

Absence: TypeAlias = Literal["withheld", "gone", "never", "session", "unreadable"]
"""Why there are no spans: not for this caller; dropped since; never kept; held by its turns; damaged."""
_ABSENT = {
    "withheld": "The conversation is shown to whoever opens the link that the monitor printed when it started, on its "
    "own machine or through kubectl port-forward, or with api.contents: always.",
    "gone": "The spans are let go of. Those of traces that failed or are incomplete are kept for store.keep_contents, "
    "within its bytes; all others only until late spans can no longer come (assembly.late).",
    "never": "Its spans were never kept.",
    "unreadable": "What is held of its spans cannot be read.",
    "session": "The conversation stands with the traces that are its turns, while their spans are held.",
}
_RATINGS = {
    "fail": "critical", "blocker": "critical", "acceptable": "warning", "good": "healthy", "pass": "healthy",
    "excellent": "healthy",
}  # fmt: skip
_OPEN_REFRESH_S = 5
_MOST_UNREAD = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePage:
    """``details`` are what the store holds, ``happened`` the same in sentences.

    ``trace`` and ``case`` are read from the spans, None where these are absent; ``absent`` is then why.
    ``redacted``: they are kept contents, in which texts may have been replaced.
    """

    details: Mapping[str, object]
    happened: Sequence[str]
    trace: Trace | None = None
    case: Case | None = None
    absent: Absence | None = None
    redacted: bool = False
    now_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVerdict:
    """A verdict in its JSON form, its facts, and each of its scores with the evidence that is marked on the page.

    ``silent`` are the scores that had nothing to measure, or have no value and no weight. ``counted`` are the others,
    those that fail first.
    """

    verdict: Mapping[str, object]
    rubric: str
    facts: Sequence[tuple[str, object]]
    differences: WorkflowDiff
    counted: Sequence[tuple[Mapping[str, object], Sequence[Evidence]]]
    silent: Sequence[tuple[Mapping[str, object], Sequence[Evidence]]]
    longest_reason: int = MAX_REASON + 1


def trace_page(page: TracePage) -> str:
    """The page as HTML. Everything that comes from the trace is escaped."""
    details, case = page.details, page.case
    verdicts = objects(details.get("verdicts"))
    evidence = evidence_of(verdicts, case.output_content if case is not None else None)
    marker = Marker(evidence)
    shown = transcript(case, evidence, marker) if case is not None else None
    # after the transcript: verdicts link to what was found in it
    marked = [each for each in evidence if case is not None and (each.turn is not None or each.number in marker.found)]
    name = str(details.get("name") or details.get("trace_id") or "")
    return render(
        "trace.html", title=f"{name} · sidejudge", name=name, details=details, happened=page.happened,
        about=list(_about(details)), failed=_text(case.error) if case is not None else "",
        answer=_text(case.model_output) if case is not None else "",
        refresh_s=_OPEN_REFRESH_S if details.get("reason") is None else None,
        turns=[str(each) for each in _list(details.get("traces"))],
        verdicts=[_shown(each, marked) for each in verdicts],
        transcript=shown, absent=_ABSENT[page.absent] if case is None and page.absent else "", ratings=_RATINGS,
        tree=span_tree(page.trace, signs_of(verdicts)) if page.trace is not None else None,
        unread=unread_counts([page.trace])[:_MOST_UNREAD] if page.trace is not None else (),
        redacted=page.redacted,
        rubrics=[str(each.get("rubric") or "") for each in verdicts] if case is not None else (),
        scenario=scenario_text(case) if case is not None else "",
        test=regression_test_text(case, verdicts) if case is not None else "",
    )  # fmt: skip


def _about(details: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The origin of the run and its effort, as far as known."""
    for key in ("service", "environment"):
        if value := details.get(key):
            yield key, label(str(value), 80)
    stated = mapping(details.get("figures"))
    took = {key: each for key, each in mapping(stated.get("values")).items() if isinstance(each, int | float)}
    if "latency" in took:
        yield "took", f"{took['latency']:.3g} s"
    if "tokens" in took:
        yield "tokens", f"{took['tokens']:,.0f}"
    if "cost" in took:
        yield "cost", f"${took['cost']:.4f}"
    if version := stated.get("version") or details.get("release"):
        yield "version", label(str(version), 80)


def _text(content: object) -> str:
    return content if isinstance(content, str) else ""


def _shown(verdict: Mapping[str, object], marked: Sequence[Evidence]) -> ShownVerdict:
    rubric, scores = str(verdict.get("rubric") or ""), scores_of(verdict)
    mine = [each for each in marked if each.rubric == rubric]
    found = [(score, [each for each in mine if each.metric == score.get("metric")]) for score in scores]
    return ShownVerdict(
        verdict=verdict, rubric=rubric, facts=list(_facts(verdict)),
        differences=workflow_diff(rubric, scores),
        counted=sorted((each for each in found if not _silent(each[0])), key=lambda each: not fails(each[0])),
        silent=[each for each in found if _silent(each[0])],
    )  # fmt: skip


def _silent(score: Mapping[str, object]) -> bool:
    """Whether it had nothing to measure, or has no value and would not count."""
    status = score.get("status")
    return status == "not_applicable" or (status == "unavailable" and not score.get("weight"))


def _facts(verdict: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    composite, mark = verdict.get("composite"), verdict.get("pass_mark")
    mark = mark if isinstance(mark, int | float) else None
    yield "score", beside(composite, mark) if isinstance(composite, int | float) else "none"
    if mark is not None:
        yield "passes from", f"{mark:g}"
        if verdict.get("passed") is False and isinstance(composite, int | float) and composite >= mark:
            yield "fails all the same by", ", ".join(map(str, _list(verdict.get("blockers")))) or "another condition"
    yield "state", verdict.get("state") or "–"
    coverage = verdict.get("coverage")
    if isinstance(coverage, int | float) and coverage < 1:
        yield "coverage", f"{coverage:.0%}"
    revision = verdict.get("revision")
    yield "revision", f"{revision}, in place of {_former(revision)}" if revision != 1 else "1"
    yield "decided", str(verdict.get("created_at") or "–")[:19].replace("T", " ")
    yield "rubric", verdict.get("rubric_version") or "–"
    judge = verdict.get("judge")
    if isinstance(judge, Mapping) and judge.get("model"):
        calls, cost = int(judge.get("calls") or 0), f"${float(judge.get('cost_usd') or 0):.4f}"
        judged = [by for each in scores_of(verdict) if isinstance(by := each.get("judge"), Mapping)]
        if any(COST_UNKNOWN in _list(by.get("flags")) for by in judged):
            cost = COST_UNKNOWN if cost == "$0.0000" else f"{cost} and what is not known"
        yield "judge", f"{judge['model']}, {amount(calls, 'call')}, {cost}"
    if climbed := escalation_text(verdict.get("cascade")):
        yield "cascade", climbed


def _former(revision: object) -> str:
    return str(revision - 1) if isinstance(revision, int) else "an earlier one"


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


_MOST = 30
"""Names of agents and tools that are listed."""


def scenario_text(case: Case) -> str:
    """The run as a scenario in YAML; empty where no agent and no tool was seen.

    A single run is an example and no rule: the order of calls is left out, and each tool may run as often as it did.
    """
    tools = Counter(call.name for call in case.tools_used or ())
    agents = list(dict.fromkeys(case.agents_called or ()))
    if not tools and not agents:
        return ""
    seen: dict[str, Sequence[str] | Mapping[str, int]] = {}
    if agents:
        seen["agents_should_include"] = agents[:_MOST]
    if tools:
        seen["tools_should_include"] = list(tools)[:_MOST]
        seen["max_calls"] = dict(list(tools.items())[:_MOST])
    name = case.name or "run"
    return readable({name: seen}, width=100, flow=None)


_TO_FILL_IN = "(what would have been right)"


def regression_test_text(case: Case, verdicts: Sequence[Mapping[str, object]]) -> str:
    """The run as a test of a test set, in YAML; empty where nothing failed, it has no input or is too deep."""
    if case.input in (None, "", [], {}) or all(verdict.get("passed") is not False for verdict in verdicts):
        return ""
    stated = {
        "trace_id": case.trace_id, "case_id": case.case_id, "task": case.task, "input": case.input,
        "config": dict(case.config), "evaluation_criteria_override": case.evaluation_criteria_override,
        "name": case.name, "service": case.service, "environment": case.environment,
    }  # fmt: skip
    expected = _TO_FILL_IN if case.expected_outcome is None else case.expected_outcome
    test = case_as_test(stated, expected, failing_metrics_of(verdicts))
    try:
        return readable([test], width=100)
    except RecursionError:
        return ""

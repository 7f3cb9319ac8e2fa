"""The effort of a run: cost, tokens, steps, duration, first token, the longest gap, calls of one tool in a row.

Each is held against the service's usual effort, which a running monitor learns, and against the configured budget. Both
come with the case; the metrics themselves keep no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sidejudge.scoring.case.case import Case, Usual
from sidejudge.scoring.case.run_figures import duration_s, tokens
from sidejudge.scoring.lexical.amount import apart
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Kind, Reason, ReasonPart, own, together
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable, at_least, must_be_one
from sidejudge.scoring.trace.span import SpanKind
from sidejudge.scoring.trace.trace import Trace

from .run_ending import SOURCE, of_run, run_metric
from .run_steps import CallStep, run_steps, signs

UNITS: Final[Mapping[str, str]] = {
    "cost_usd": "US dollars", "tokens": "tokens", "steps": "steps", "duration_s": "s", "first_token_s": "s",
    "gap_s": "s", "in_a_row": "calls",
}  # fmt: skip
"""The measures of effort, with their units. ``gap_s`` is the longest time in which no step of the run was under way."""
NAMES: Final[Mapping[str, str]] = {
    "cost_usd": "cost", "tokens": "tokens", "steps": "steps", "duration_s": "duration",
    "first_token_s": "time to first token", "gap_s": "longest gap", "in_a_row": "calls of one tool in a row",
}  # fmt: skip
_NOTICED: Final[Mapping[str, float]] = {"duration_s": 5.0, "first_token_s": 3.0, "gap_s": 10.0}
"""Up to this many seconds no run is far above the usual: a pause of 3 s in place of 0.2 s is a busy network."""
_USUAL_UNKNOWN: Final = Unavailable(Reason("what is usual for the service is known to a running monitor alone"))
_NO_BUDGET: Final = NotApplicable(Reason("no budget is configured for it"))
_STEPS: Final = frozenset({SpanKind.AGENT, SpanKind.LLM, SpanKind.TOOL, SpanKind.RETRIEVER})


def run_effort(case: Case) -> Mapping[str, float]:
    """The run's effort by measure; unknown measures are left out. Call by ``case.once(run_effort)``."""
    found: dict[str, float | None] = {
        "cost_usd": case.cost_usd, "tokens": tokens(case), "duration_s": duration_s(case),
    }  # fmt: skip
    trace, calls = case.trace, case.once(run_steps).calls
    if trace is not None:
        found["steps"] = sum([span.kind in _STEPS for span in trace.spans])
        found["first_token_s"] = next((m.first_token_s for m in trace.models if m.first_token_s is not None), None)
        found["gap_s"] = _longest_gap_s(trace)
    elif calls is not None:
        found["steps"] = len(calls)
    if calls:
        found["in_a_row"] = max(row for _, row in rows(calls))
    return {name: value for name in UNITS if (value := found.get(name))}  # nothing at all is no effort


def rows(calls: tuple[CallStep, ...]) -> list[tuple[CallStep, int]]:
    """Each call with the number of consecutive calls of its tool up to it; parallel calls count as one."""
    found: list[tuple[CallStep, int]] = []
    length, before = 0, None
    for step in calls:
        if before is None or step.call.name != before.call.name:
            length = 1
        elif not step.is_beside(before):
            length += 1
        before = step
        found.append((step, length))
    return found


def _longest_gap_s(trace: Trace) -> float | None:
    """The longest time between two steps without a running one; None with fewer than two leaf steps."""
    reached: int | None = None
    longest = 0
    for span in trace.spans:  # in order of start
        if span.span_id in trace.children or span.end_ns < span.start_ns:
            continue
        if reached is not None and span.start_ns - reached > longest:
            longest = span.start_ns - reached
        reached = span.end_ns if reached is None else max(reached, span.end_ns)
    return longest / 1e9 if longest else None


@run_metric(
    title="Within the usual",
    meaning="The share of what the run took (cost, tokens, steps, duration, first token, longest gap, calls of one "
    "tool in a row) that is not far above what is usual for the service.",
    formula="1 − measures above the outer fence exp(Q3 + 2.2 × max(IQR, ln 1.25)) of logarithms / measures known; "
    + ", ".join(f"{NAMES[name]} also above {least:g} s" for name, least in _NOTICED.items()),
    source=f"{SOURCE}; Hoaglin and Iglewicz 1987, doi:10.1080/01621459.1987.10478551",
    bands=at_least(good=1.0, acceptable=0.8),
    undefined="without a running monitor, or before it has seen enough runs of the service",
)
@of_run
def within_usual(case: Case) -> Result:  # noqa: D103  # its card documents it
    if case.usual is None:
        return _USUAL_UNKNOWN
    effort = case.once(run_effort)
    known = [name for name in effort if name in case.usual.limits]
    if not known:
        return Unavailable(_too_early(case.usual))
    above = [name for name in known if effort[name] > max(case.usual.limits[name], _NOTICED.get(name, 0.0))]
    found = [
        Reason(
            "{measured}, usually {usual}",
            measured=_measured(name, _number(effort[name])),
            usual=_number(case.usual.medians[name]),
        )
        for name in above
    ]
    return Scored(
        value=1.0 - len(above) / len(known),
        reason=together(found),
        details={**signs([(case.root_span_id, sign) for sign in found]), "measures": len(known)} if found else {},
    )


def _too_early(usual: Usual) -> Reason:
    return Reason("{n} runs of the service are known, of {needed} that are needed", n=usual.runs, needed=usual.needed)


@run_metric(
    title="Within the budget",
    formula="0 if any measure with a budget is above it, else 1",
    bands=must_be_one(),
    undefined="the telemetry reports none of the measures; not applicable where no budget is configured",
)
@of_run
def within_budget(case: Case) -> Result:
    """Whether the run took no more than its budget allows; 1 or 0."""
    if not case.budget:
        return _NO_BUDGET
    effort = case.once(run_effort)
    known = {name: limit for name, limit in case.budget.items() if name in effort}
    above = [name for name, limit in known.items() if effort[name] > limit]
    if not known:
        return Unavailable(_unreported(case.budget))
    found = [_beyond(name, effort[name], known[name]) for name in above]
    return Scored(
        value=0.0 if above else 1.0,
        reason=together(found),
        details=signs([(case.root_span_id, sign) for sign in found]),
    )


def _unreported(budget: Mapping[str, float]) -> Reason:
    names = together([own(NAMES[name]) for name in budget], ", ")
    return Reason("the telemetry does not report: {names}", names=names)


def _beyond(name: str, value: float, limit: float) -> Reason:
    """A measure above its limit, with more digits where the usual ones show both alike."""
    shown, bound = _number(value), _number(limit)
    if shown == bound:
        bound, shown = (ReasonPart(Kind.NUMBER, each) for each in apart(limit, value))
    return Reason("{measured} > {limit}", measured=_measured(name, shown), limit=bound)


def _measured(name: str, shown: ReasonPart) -> Reason:
    if NAMES[name] == UNITS[name]:  # steps and tokens are their own unit
        return Reason("{name} {n}", name=own(NAMES[name]), n=shown)
    return Reason("{name} {n} {unit}", name=own(NAMES[name]), n=shown, unit=own(UNITS[name]))


def _number(value: float) -> ReasonPart:
    return ReasonPart(Kind.NUMBER, label(f"{value:,.0f}" if value >= 100 else f"{value:.3g}"))

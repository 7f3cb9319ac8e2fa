"""How the steps of a run went: tools that failed, steps that failed, errors that come again."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from scoring.case.case import Case
from scoring.lexical.label import label
from scoring.metrics.metric import Metric
from scoring.result.bands import at_least
from scoring.result.result import NotApplicable, Result, Scored, Unavailable
from scoring.trace.span import Span, SpanKind
from scoring.trace.trace import Trace

from .run_ending import SOURCE, no_run, top
from .run_steps import CallStep, RunSteps, run_steps, signs

_NO_CALLS: Final = NotApplicable("no tool was called")
_UNKNOWN: Final = Unavailable("which tools were called is not known: contents were not captured")
_NAMED: Final = 3
MOST_TOOLS: Final = 20
"""Tools of one run that are counted apart."""
_DIGITS: Final = re.compile(r"\d+")
_KNOWN_CAUSES: Final = (
    ("rate limit", re.compile(r"rate.?limit|too many requests|\b429\b|quota|overloaded", re.IGNORECASE)),
    ("context length", re.compile(r"context.{0,20}(?:length|window)|maximum context|too many tokens", re.IGNORECASE)),
    ("content filter", re.compile(r"content.?(?:filter|policy)|safety", re.IGNORECASE)),
    ("timeout", re.compile(r"timed? ?out", re.IGNORECASE)),
    ("authentication", re.compile(r"authenti|api.?key|\b401\b|\b403\b|permission", re.IGNORECASE)),
)


def _tool_success(case: Case) -> Result:
    calls = case.once(run_steps).calls
    if calls is None:
        return _UNKNOWN
    if not calls:
        return _NO_CALLS
    failed = [step for step in calls if step.failure is not None]
    if not failed:
        return Scored(value=1.0)
    found = [(step.span_id, f"{label(step.call.name)}: {step.failure}") for step in failed]
    return Scored(
        value=1.0 - len(failed) / len(calls),
        reason=f"{len(failed)} of {len(calls)} tool calls failed: {_some([sign for _, sign in found])}",
        details={**signs(found), "calls": len(calls), "failed_by_tool": _by_tool(failed)},
    )


def calls_by_tool(case: Case) -> dict[str, list[int]]:
    """By tool, how many calls there were and how many of them failed; the most frequent tools."""
    found: dict[str, list[int]] = {}
    for step in case.once(run_steps).calls or ():
        counts = found.setdefault(label(step.call.name), [0, 0])
        counts[0] += 1
        counts[1] += step.failure is not None
    return dict(sorted(found.items(), key=lambda item: -item[1][0])[:MOST_TOOLS])


def _step_success(case: Case) -> Result:
    if (gap := no_run(case)) is not None:
        return gap
    if case.trace is None:
        return NotApplicable("the case is not a trace")
    steps = case.once(run_steps).steps
    ends = {span.span_id for span in (case.trace.root, top(case.trace)) if span is not None}
    counted = [span for span in steps if span.span_id not in ends and span.kind is not SpanKind.OTHER]
    if not counted:
        return NotApplicable("the run has no step below its top")
    failed = [span for span in counted if span.error is not None and not _from_below(case.trace, span)]
    found = [(span.span_id, f"{span.kind.value} {label(span.name)}: {cause(span.error or '')}") for span in failed]
    return Scored(
        value=1.0 - len(failed) / len(counted),
        reason=f"{len(failed)} of {len(counted)} steps failed: {_some([sign for _, sign in found])}" if failed else "",
        details={**signs(found), "steps": len(counted)} if failed else {},
    )


def _from_below(trace: Trace, span: Span) -> bool:
    """Whether the error came up from a step below, which counts for both."""
    return any(below.error is not None for below in trace.children.get(span.span_id, ()))


def cause(error: str) -> str:
    """What kind of error a message reports, in few words and without its contents.

    >>> cause("RateLimitError: slow down, customer 4711")
    'rate limit'
    """
    for name, pattern in _KNOWN_CAUSES:
        if pattern.search(error[:500]):
            return name
    kind = error.partition(":")[0].rpartition(".")[2].strip()
    return label(kind) if kind.isidentifier() else "error"


def _error_variety(case: Case) -> Result:
    if (gap := no_run(case)) is not None:
        return gap
    steps = case.once(run_steps)
    errors = _errors(steps)
    if not errors:
        return Scored(value=1.0)
    seen: Counter[tuple[str, str]] = Counter()
    found: list[tuple[str | None, str]] = []
    for where, what, message, span_id in errors:
        key = (where, _DIGITS.sub("#", message[:300]))
        seen[key] += 1
        if seen[key] > 1:
            found.append((span_id, f"{label(where)}: {what} again"))
    return Scored(
        value=1.0 if not found else max(0.0, 1.0 - len(found) / 3),
        reason=f"the same error came again {len(found)} times: {_some([sign for _, sign in found])}" if found else "",
        details=signs(found),
    )


def _errors(steps: RunSteps) -> list[tuple[str, str, str, str | None]]:
    """Each error of a run: where, what kind, its message, and its span."""
    found = [
        (step.call.name, step.failure, step.call.error or str(step.call.result), step.span_id)
        for step in steps.calls or ()
        if step.failure is not None
    ]
    found += [
        (span.name, cause(span.error), span.error, span.span_id)
        for span in steps.steps
        if span.error is not None and span.kind in (SpanKind.LLM, SpanKind.RETRIEVER, SpanKind.EMBEDDING)
    ]
    return found


def _by_tool(failed: list[CallStep]) -> dict[str, int]:
    counts = Counter(label(step.call.name) for step in failed)
    return dict(counts.most_common(MOST_TOOLS))


def _some(named: list[str]) -> str:
    shown = list(dict.fromkeys(named))[:_NAMED]
    return ", ".join(shown) + (", …" if len(set(named)) > _NAMED else "")


tool_success = Metric(
    id="tool_success",
    title="Tool success",
    meaning="The share of tool calls that succeeded, by their status and by what they returned.",
    formula="1 − failed / calls; a call failed if its span did, or its result begins as an error or declares one",
    source=SOURCE,
    measure=_tool_success,
    bands=at_least(good=0.95, acceptable=0.75),
    undefined="contents were not captured; not applicable where no tool was called",
)
step_success = Metric(
    id="step_success",
    title="Step success",
    meaning="The share of steps (models, sub-agents, chains, retrievers) that ended without an error of their own.",
    formula="1 − failed steps / steps below the top; an error that came up from a step below counts there alone",
    source=SOURCE,
    measure=_step_success,
    bands=at_least(good=0.98, acceptable=0.9),
    undefined="not applicable where the run has no step below its top",
)
error_variety = Metric(
    id="error_variety",
    title="Errors not repeated",
    meaning="Whether no error came again at the same place; 1, and a third less for each time that one did.",
    formula="max(0, 1 − repetitions / 3); errors are equal if place and message are, apart from digits",
    source=SOURCE,
    measure=_error_variety,
    bands=at_least(good=1.0, acceptable=0.6),
    undefined="contents were not captured",
)

"""The steps of a run: failed tools, failed steps, repeated errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, own, part
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable, at_least
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.tool_calls import demanded_form, gives_answer
from sidejudge.scoring.trace.trace import Trace, from_above

from .answer_failure import answer_failure, sole_text
from .run_ending import LONE_CALL, NO_CALLS, UNKNOWN_CALLS, ends, of_run, of_trace, run_metric
from .run_steps import (
    CallStep,
    Key,
    RunSteps,
    cause,
    failure_part,
    first_signs,
    is_lone_call,
    run_steps,
    share_without,
    signs,
    with_message,
)

_NO_OUTCOME: Final = Unavailable(Reason("no span and no message shows what came of the tool calls"))
_HOLDS_STEPS: Final = frozenset({SpanKind.AGENT, SpanKind.CHAIN, SpanKind.OTHER})
_TRANSPORT: Final = re.compile(
    r"(?:HTTP\b|GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|CONNECT|SELECT|INSERT|UPDATE|redis|dns|tls|tcp)\b|[\w.]+/[\w.]+$",
    re.IGNORECASE,
)
"""Names of requests to other services, which their callers may repeat."""
MOST_TOOLS: Final = 20
"""Most tools of one run that are counted separately."""
_DIGITS: Final = re.compile(r"\d+")


@run_metric(
    formula="1 − failed / calls; a call failed if its span did, or its result begins as an error or declares one, and "
    "no equal call succeeded later. A call without a span and a result does not count",
    bands=at_least(good=0.95, acceptable=0.75),
    undefined="contents were not captured, or nothing shows what came of any call; not applicable where no tool was "
    "called",
)
def tool_success(case: Case) -> Result:
    """The share of tool calls that succeeded, by their status and by what they returned."""
    steps = case.once(run_steps)
    calls = steps.calls
    if calls is None:
        return UNKNOWN_CALLS
    if not calls:
        return LONE_CALL if case.once(is_lone_call) else NO_CALLS
    closed = [step for step in calls if not step.open]
    if not closed:
        form = None if case.trace is None else demanded_form(case.trace)
        answers = (gives_answer(step.call.name) or (form and step.call.name == form.name) for step in calls)
        return NO_CALLS if all(answers) else _NO_OUTCOME
    failed = _failed_for_good(closed)
    found = [(step.span_id, failed_call(step)) for step in failed]
    stated = first_signs([(step.span_id, _stated(step)) for step in failed])
    return share_without(
        found, len(closed), "tool calls failed", stated=stated, calls=len(closed), failed_by_tool=_by_tool(failed)
    )


def _failed_for_good(calls: Sequence[CallStep]) -> list[CallStep]:
    """The failed calls that no later equal call made good."""
    good: set[Key] = set()
    found: list[CallStep] = []
    for step in reversed(calls):
        if step.failure is None:
            good.add(step.key)
        elif step.call.arguments is None or step.key not in good:
            found.append(step)
    return found[::-1]


def calls_by_tool(case: Case) -> dict[str, list[int]]:
    """The number of calls and of failed calls by tool, for the most frequent tools."""
    found: dict[str, list[int]] = {}
    for step in case.once(run_steps).calls or ():
        counts = found.setdefault(label(step.call.name), [0, 0])
        counts[0] += 1
        counts[1] += step.failure is not None
    return dict(sorted(found.items(), key=lambda item: -item[1][0])[:MOST_TOOLS])


@run_metric(
    meaning="The share of steps (models, sub-agents, chains, retrievers, plain steps that failed) that ended without "
    "an error of their own.",
    formula="1 − failed steps / steps below the top; an error that came up from a step below counts there alone, and a "
    "sub-agent failed as well whose output is an error or a service's message",
    bands=at_least(good=0.98, acceptable=0.9),
    undefined="not applicable where the run has no step below its top",
)
@of_trace
def step_success(case: Case, trace: Trace) -> Result:  # noqa: D103  # its card documents it
    steps = case.once(run_steps).steps
    at_ends = {span.span_id for span in ends(trace)}
    failed_calls = [step for step in case.once(run_steps).calls or () if step.failure is not None]
    failed_tools = {step.span_id for step in failed_calls}
    known = {step.call.name for step in failed_calls}  # a call that failed is one sign, however many spans show it
    among_steps = from_above(trace, True, lambda span, upper: upper and span.kind in _HOLDS_STEPS)
    counted = [
        span
        for span in steps
        if span.span_id not in at_ends
        and (
            span.kind is not SpanKind.OTHER
            or (span.name not in known and among_steps.get(span.span_id) and _failed_plainly(trace, span))
        )
    ]
    if not counted:
        return NotApplicable(Reason("the run has no step below its top"))
    found: list[tuple[str | None, Reason]] = []
    stated: list[tuple[str | None, Reason]] = []
    for span in counted:
        if span.error is not None:
            if not _from_below(trace, span):
                why = cause(span.error)
                found.append((span.span_id, _failed_step(span, why)))
                stated.append((span.span_id, with_message(found[-1][1], why.text, span.error)))
        elif span.kind is SpanKind.AGENT and span.parent_id not in failed_tools:
            failure = answer_failure(sole_text(span.output), span.input)
            if failure is not None:
                found.append((span.span_id, _failed_step(span, failure_part(failure))))
                stated.append(found[-1])
    return share_without(found, len(counted), "steps failed", stated=first_signs(stated), steps=len(counted))


def _failed_plainly(trace: Trace, span: Span) -> bool:
    """Whether a plain span among steps is a failed step of the run.

    Instrumentations seldom mark an application's own steps as agents or chains. But a request below a failed tool or
    model, which reports failures itself, may have been repeated.
    """
    if span.kind is not SpanKind.OTHER or span.error is None or trace.parent(span) is None or _from_below(trace, span):
        return False
    return _TRANSPORT.match(span.name) is None


def _failed_step(span: Span, why: ReasonPart) -> Reason:
    kind = "step" if span.kind is SpanKind.OTHER else span.kind.value
    return Reason("{kind} {name}: {why}", kind=own(kind), name=part(label(span.name)), why=why)


def _from_below(trace: Trace, span: Span) -> bool:
    """Whether the error came from a step below, which counts for both."""
    return any(below.error is not None for below in trace.children.get(span.span_id, ()))


def failed_call(step: CallStep) -> Reason:
    """The name of a tool, and why its call failed."""
    return Reason("{tool}: {failure}", tool=part(label(step.call.name)), failure=failure_part(step.failure or ""))


def _stated(step: CallStep) -> Reason:
    """The failed call with the message of the tool's error."""
    text = step.call.error or text_or_json(step.call.result)
    return with_message(failed_call(step), step.failure or "", text)


@run_metric(
    title="Errors not repeated",
    formula="max(0, 1 − repetitions / 3); errors are equal if place and message are, apart from digits",
    bands=at_least(good=1.0, acceptable=0.6),
    undefined="contents were not captured",
)
@of_run
def error_variety(case: Case) -> Result:
    """Whether no error came again at the same place; 1, and a third less for each time that one did."""
    steps = case.once(run_steps)
    errors = _errors(steps)
    if not errors:
        return Scored(value=1.0)
    seen: Counter[tuple[str, str]] = Counter()
    found: list[tuple[str | None, Reason]] = []
    for where, what, message, span_id in errors:
        key = (where, _DIGITS.sub("#", message[:300]))
        seen[key] += 1
        if seen[key] > 1:
            found.append((span_id, Reason("{where}: {what} again", where=part(label(where)), what=what)))
    return Scored(
        value=1.0 if not found else max(0.0, 1.0 - len(found) / 3),
        reason=Reason("the same error came again {n} times: {signs}", n=len(found), signs=first_signs(found))
        if found
        else "",
        details=signs(found),
    )


def _errors(steps: RunSteps) -> list[tuple[str, ReasonPart, str, str | None]]:
    """Each error of a run: its place, kind, message and span."""
    found = [
        (step.call.name, failure_part(step.failure), step.call.error or str(step.call.result), step.span_id)
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

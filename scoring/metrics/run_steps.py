"""Steps of a run: a list of its tool calls and one of its model calls, each with its span.

Metrics of run health read these; they are computed once for each case. Without a trace (a case from a file) there are
only the case's tool calls, and no call has a span.

The cause that ended a step is given as parts of a reason: our kinds, classes of exceptions, messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, own, part, quoted, together
from sidejudge.scoring.result.result import Method, Scored
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import COMPLETED, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.tool_spans import canonical
from sidejudge.scoring.trace.trace import Trace, from_above

from .tool_failure import failure_of

MOST_CALLS: Final = 5_000
"""Most tool calls of a run that are read; a run with more is judged by its first."""
MOST_SIGNS: Final = 20
"""Most signs that one metric shows; their total number is reported."""
_ACTING: Final = frozenset({
    SpanKind.AGENT, SpanKind.LLM, SpanKind.TOOL, SpanKind.RETRIEVER, SpanKind.EMBEDDING, SpanKind.GUARDRAIL,
})  # fmt: skip
_LONGEST_KEY: Final = 20_000
_CARRIES: Final = re.compile(
    r"^(?:GET|POST|PUT|PATCH|DELETE|HTTP)\b|\bmcp\b|json-?rpc|grpc|^tools/call\b", re.IGNORECASE
)
"""Names of spans that carry a request to a tool's server: HTTP, MCP, RPC."""
Key: TypeAlias = tuple[str, str]
Found: TypeAlias = Sequence[tuple[str | None, str]]
"""Signs: the id of a span, None where there is none, and the fault there."""
_NAMED: Final = 3


@record(frozen=True, slots=True, kw_only=True)
class CallStep:
    """One tool call of a run. ``failure`` is why it failed, None without a sign of failure.

    ``key`` is equal for equal calls: the name and the arguments, in any order of keys. The times are those of the
    call's span, both 0 without one. ``open``: a model's message requests it, and nothing shows what came of it.
    """

    call: ToolCall
    span_id: str | None
    failure: str | None
    key: Key
    open: bool = False
    start_ns: int = 0
    end_ns: int = 0

    def is_beside(self, earlier: CallStep) -> bool:
        """Whether the call began before an earlier one had ended, so that it could not depend on its result."""
        same_turn = self.span_id is not None and self.span_id == earlier.span_id
        return same_turn or self.start_ns < earlier.end_ns


@record(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """The steps of one run in order of time. ``calls`` is None where the called tools are unknown.

    ``steps`` are the spans that are no tool call and may fail of themselves: agents, model calls, chains, retrievers.
    A lone call has no calls of its own.
    """

    calls: tuple[CallStep, ...] | None
    models: tuple[Span, ...]
    steps: tuple[Span, ...]


def run_steps(case: Case) -> RunSteps:
    """The steps of a case's run. Call by ``case.once(run_steps)``."""
    trace = case.trace
    spans = () if trace is None else trace.spans
    calls: tuple[CallStep, ...] | None = None
    if case.once(is_lone_call):
        calls = ()
    elif case.tools_used is not None:
        ids = case.tool_span_ids or (None,) * len(case.tools_used)
        calls = tuple([
            _step(call, span_id, trace)
            for call, span_id in zip(case.tools_used[:MOST_CALLS], ids[:MOST_CALLS], strict=True)
            if not call.handoff or failure_of(call) is not None
        ])  # fmt: skip
    return RunSteps(
        calls=calls,
        models=() if trace is None else trace.models,
        steps=tuple([span for span in spans if span.kind is not SpanKind.TOOL]),
    )


def acts(case: Case) -> bool:
    """Whether the case has a model, an agent or a tool."""
    spans = () if case.trace is None else case.trace.spans
    return bool(case.tools_used or case.agents_called) or any(span.kind in _ACTING for span in spans)


def is_lone_call(case: Case) -> bool:
    """Whether the trace has only one tool call, with nothing above it but the transport of the request.

    The server of a tool reports it so; the run that called it is another trace. Ask by ``case.once(is_lone_call)``.
    """
    trace = case.trace
    if trace is None:
        return False
    acting = [span for span in trace.spans if span.kind in _ACTING or span.agent]
    if not acting or any(span.kind is not SpanKind.TOOL or span.agent for span in acting):
        return False
    below = from_above(trace, False, lambda span, upper: upper or span.kind is SpanKind.TOOL)
    tops = [span for span in acting if not below[span.span_id]]
    return len(tops) == 1 and all(_CARRIES.search(upper.name) is not None for upper in trace.ancestors(tops[0]))


def _step(call: ToolCall, span_id: str | None, trace: Trace | None) -> CallStep:
    shown = None if trace is None or span_id is None else trace.by_id.get(span_id)
    return CallStep(
        call=call, span_id=span_id, failure=failure_of(call), key=key_of(call),
        open=shown is not None and shown.tool is None and shown.name != call.name and call.result is call.error is None
        and not _is_completed(call, shown),
        start_ns=0 if shown is None else shown.start_ns, end_ns=0 if shown is None else shown.end_ns,
    )  # fmt: skip


def _is_completed(call: ToolCall, shown: Span) -> bool:
    """Whether a provider that ran the tool states that it ended well, though not what it returned."""
    ended = (each for each in shown.output_messages if each.withheld and each.text == COMPLETED)
    return any(each.tool_call_id == call.call_id is not None for each in ended)


def key_of(call: ToolCall) -> Key:
    """A key that is equal for equal calls: the name and the arguments, in any order of keys."""
    arguments = decoded(call.arguments)
    return call.name, (arguments if isinstance(arguments, str) else canonical(arguments))[:_LONGEST_KEY].strip()


def signs(found: Found) -> Mapping[str, object]:
    """The details of a metric: the findings and their spans. Names and kinds of errors, never contents.

    Args:
        found: The signs; contents in a ``Reason`` are not shown.

    Returns:
        ``count`` (how many) and ``signs`` (the first of them, each ``{"span_id": …, "sign": …}``).
    """
    shown = [
        {"span_id": span_id, "sign": label(sign.shown() if isinstance(sign, Reason) else sign, 200)}
        for span_id, sign in found[:MOST_SIGNS]
    ]
    return {"count": len(found), "signs": shown} if shown else {}


def first_signs(found: Found) -> Reason:
    """The first signs of different kinds, each with the message of the first that has it."""
    named: dict[str, str] = {}
    for _, sign in found:
        named.setdefault(sign.shown() if isinstance(sign, Reason) else sign, sign)
    return together(list(named.values())[:_NAMED], ", ") + Reason(", …" if len(named) > _NAMED else "")


def share_without(
    found: Found, of: int, what: str, *, stated: Reason | None = None, method: Method = Method.EXACT, **counts: object
) -> Scored:
    """The share of the examined steps without a sign.

    Args:
        found: The signs, as ``signs`` takes them.
        of: The number of examined steps.
        what: Our words for the steps and the fault: *3 of 5* ``tool calls failed``.
        stated: The signs in words; None for ``first_signs``.
        method: How they were found.
        counts: Further details.
    """
    if not found:
        return Scored(value=1.0, method=method)
    shown = first_signs(found) if stated is None else stated
    reason = Reason("{n} of {all} {what}: {signs}", n=len(found), all=of, what=own(what), signs=shown)
    return Scored(value=1.0 - len(found) / of, method=method, reason=reason, details={**signs(found), **counts})


_MESSAGE: Final = 200
"""Most characters of an error's message that a reason quotes."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_CLASS: Final = re.compile(
    r"\s*(?:[A-Za-z_][\w$]*[.:]+)*([A-Z][A-Za-z]*(?:Error|Exception|Timeout|Failure|Fault|Interrupt|Exit|Warning|Refused|Denied"
    r"|Exceeded|Unavailable|Cancelled|Canceled|Aborted|Rejected|NotFound|Expired))\s*(?:[:(\n]|$)"
)
"""The class of an exception at the head of a message. Other words there may be contents."""
_KNOWN_CAUSES: Final = (
    ("rate limit", re.compile(r"rate.?limit|too many requests|\b429\b|quota|overloaded", re.IGNORECASE)),
    ("context length", re.compile(r"context.{0,20}(?:length|window)|maximum context|too many tokens", re.IGNORECASE)),
    ("content filter", re.compile(r"content.?(?:filter|policy)|safety", re.IGNORECASE)),
    ("timeout", re.compile(r"timed? ?out", re.IGNORECASE)),
    ("authentication", re.compile(r"authenti|api.?key|\b401\b|\b403\b|permission", re.IGNORECASE)),
)


def cause(error: str) -> ReasonPart:
    """The kind of error that a message reports, in a few words without its contents.

    >>> cause("RateLimitError: slow down, customer 4711").text
    'rate limit'
    """
    known = _known(error)
    return own(known) if known is not None else _class_of(error) or own("error")


def stated_cause(error: str) -> Reason:
    """The class of the exception, else the kind of error, and the first line of its message.

    >>> str(stated_cause("RuntimeError: database is down")), stated_cause("RuntimeError: database is down").shown()
    ('RuntimeError (database is down)', 'RuntimeError (…)')
    """
    kind = _class_of(error) or cause(error)
    return with_message(Reason.of([kind]), kind.text, error)


def with_message(stated: Reason, kind: str, text: str) -> Reason:
    """A sign with the error's message: its first line that names more than the kind; of a traceback the last line."""
    lines = text.strip().splitlines() or [""]
    line = lines[-1 if lines[0].startswith(_TRACEBACK) else 0].strip()
    head, colon, rest = line.partition(":")
    if colon and head.rpartition(".")[2].strip().casefold() == kind.casefold():
        line = rest.strip()
    if not line or line == kind:
        return stated
    return Reason("{stated} ({message})", stated=stated, message=quoted(label(line, _MESSAGE)))


def failure_part(failure: str) -> ReasonPart:
    """The result of ``failure_of`` as a part of a reason: a class of exceptions is a name of the application."""
    return own(failure) if " " in failure else part(failure)


def _known(error: str) -> str | None:
    return next((name for name, pattern in _KNOWN_CAUSES if pattern.search(error[:500])), None)


def _class_of(error: str) -> ReasonPart | None:
    found = _CLASS.match(error)
    return part(label(found[1])) if found else None

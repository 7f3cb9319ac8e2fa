"""Tool spans without repeats: a framework and its instrumentation may both make a span of one call.

The tools' answers in a trace's messages are assigned to their calls.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from .below import OF_NEXT_CALL
from .record import record
from .span import Json, Message, Span, SpanKind, ToolCall
from .trace import Trace

_FOR_THEMSELVES: Final = frozenset({
    SpanKind.AGENT, SpanKind.LLM, SpanKind.TOOL, SpanKind.RETRIEVER, SpanKind.EMBEDDING,
})  # fmt: skip
_NOTHING: Final[tuple[Json, ...]] = (None, "", "null", "None", [], {})
_MOST_BELOW: Final = 1_000
"""Most steps below one tool that are examined."""
_REQUEST: Final = re.compile(r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|HTTPS?)\b", re.IGNORECASE)
_LEAST_MESSAGE: Final = 12
_HEAD: Final = 2_000
_OF_MCP: Final = "mcp."
"""Beginning of the attribute that gave the kind of an MCP request."""
_SEPARATED: Final = re.compile(r"\w[\W_]+\Z")
_MOST_BESIDE = 64
"""Most of the latest calls that are compared with a request of MCP beside them."""
_WITHIN = 4
"""Most levels upwards that are searched for another span of the same call."""


def tool_spans(trace: Trace, reporting: Sequence[Span]) -> tuple[Sequence[Span], Mapping[str, str]]:
    """One span for each tool call, in order of start; and by the id of each replaced span its replacement's id.

    If two spans of one call lie within each other, the upper one is kept, completed from the lower one, which knows
    whether the tool raised. If they lie beside each other, the framework's is kept as it is.

    Args:
        trace: The trace.
        reporting: All its spans that describe a call, from the top down.
    """
    kept: dict[str, Span] = {}
    twins: dict[str, str] = {}
    waiting: dict[str | None, list[Span]] = {}
    for span in reporting:
        upper = _upper(trace, span)
        if upper is None and (beside := _beside(span, waiting.setdefault(span.parent_id, []))) is not None:
            twins[span.span_id] = beside.span_id
            continue
        held = kept.get(twins.get(upper.span_id, upper.span_id)) if upper is not None else None
        if held is None or held.tool is None or span.tool is None or not _same_call(held.tool, span.tool, span):
            kept[span.span_id] = span
            continue
        twins[span.span_id] = held.span_id
        error = held.tool.error or span.tool.error
        kept[held.span_id] = replace(held, tool=replace(
            held.tool,
            arguments=span.tool.arguments if held.tool.arguments is None else held.tool.arguments,
            result=None if error else span.tool.result if held.tool.result is None else held.tool.result,
            error=error,
            call_id=held.tool.call_id or span.tool.call_id,
        ))  # fmt: skip
    return [kept[span.span_id] for span in trace.spans if span.span_id in kept] if kept else (), twins


def _beside(span: Span, waiting: list[Span]) -> Span | None:
    """The call that a request of MCP beside it, at the same time, is: a server in the agent's own process reports so.

    ``waiting`` are the calls there to which no request belongs yet, from which this one's is taken.
    """
    if not _asks_server(span):
        waiting.append(span)
        return None
    first = max(0, len(waiting) - _MOST_BESIDE)
    for at, call in enumerate(waiting[first:], first):
        at_once = call.start_ns <= span.end_ns and span.start_ns <= call.end_ns
        if at_once and call.tool is not None and span.tool is not None and _same_call(call.tool, span.tool, span):
            del waiting[at]
            return call
    return None


def _asks_server(span: Span) -> bool:
    return span.provenance.get("kind", "").startswith(_OF_MCP)


def _upper(trace: Trace, span: Span) -> Span | None:
    """The nearest span above, within reach, that describes a call too."""
    above = trace.parent(span)
    for _ in range(_WITHIN):
        if above is None or above is span:
            return None
        if above.tool is not None:
            return above
        above = trace.parent(above)
    return None


def error_below(trace: Trace, span: Span, call: ToolCall) -> str | None:
    """The error that ended the work of a tool, where its own span does not show it; None where there is none.

    Some clients end a tool's span as successful although the wrapped work failed. An error below is the tool's where no
    result came and nothing was done after it, or where the result repeats its message. Steps of models, agents and
    other tools report their own errors. Where contents were not captured, the result is unknown: then only the last
    step directly below counts, and no request to a server, whose failure the tool may handle.
    """
    result = call.result
    last: Span | None = None
    waiting = list(trace.children.get(span.span_id, ()))
    seen = 0
    while waiting and seen < _MOST_BELOW:
        below = waiting.pop()
        seen += 1
        if below.kind in _FOR_THEMSELVES:
            last = below if last is None or below.end_ns > last.end_ns else last
            continue
        if last is None or (below.end_ns, below.error is not None) >= (last.end_ns, last.error is not None):
            last = below
        if below.error is not None and isinstance(result, str) and _repeats(result, below.error):
            return below.error
        waiting += trace.children.get(below.span_id, ())
    if last is None or last.kind in _FOR_THEMSELVES or result not in _NOTHING:
        return None
    hidden = call.arguments is None
    return None if hidden and (last.parent_id != span.span_id or _REQUEST.match(last.name)) else last.error


def _repeats(result: str, error: str) -> bool:
    message = error.rpartition(": ")[2].strip()
    return len(message) >= _LEAST_MESSAGE and message in result[:_HEAD]


def _same_call(upper: ToolCall, lower: ToolCall, below: Span) -> bool:
    """Whether two spans may be one call: a tool that calls itself uses different arguments.

    ``below`` is the span of the lower one. A request of MCP has the name that its server gives the tool, to which an
    agent's framework adds the server's: ``mcp__weather__forecast``, ``weather_forecast``.
    """
    ids = {upper.call_id, lower.call_id} - {None}
    named = upper.name == lower.name or (_asks_server(below) and _adds_server(upper.name, lower.name))
    if len(ids) > 1 or not named:
        return False
    a, b = upper.arguments, lower.arguments
    return a is None or b is None or a == b or (a,) == sole(b) or (b,) == sole(a)


def _adds_server(upper: str, lower: str) -> bool:
    """Whether one name is the other behind a server's and a separator."""
    return upper.endswith(lower) and _SEPARATED.search(upper.removesuffix(lower)) is not None


def sole(arguments: Json) -> tuple[Json, ...]:
    """The value of a call's only argument: some clients send it bare."""
    return tuple(arguments.values()) if isinstance(arguments, dict) and len(arguments) == 1 else ()


@record(frozen=True, slots=True, kw_only=False)
class RequestedCall:
    """A call in a message, when it was made, the message that answers it, and the span that holds the call."""

    call: ToolCall
    at_ns: int
    answer: Message | None
    span_id: str


def without_requests(
    trace: Trace, spans: Sequence[Span], requested: list[RequestedCall]
) -> tuple[Sequence[Span], list[RequestedCall]]:
    """The spans of tools that ran; the requested calls, including ones sent as spans below a model, not in messages.

    AgentOps makes such spans. They show an id and nothing of a run: no result, no error, nothing below.
    """
    shown = {
        span.span_id: RequestedCall(span.tool, span.start_ns, None, span.span_id)
        for span in spans
        if span.tool is not None and span.tool.call_id is not None
        and span.tool.result is None and span.tool.error is None
        and (above := trace.parent(span)) is not None and above.kind is SpanKind.LLM
        and (above.provenance.get("output") == OF_NEXT_CALL or not any(m.tool_calls for m in above.output_messages))
        and span.span_id not in trace.children
    }  # fmt: skip
    ids = {ask.call.call_id for ask in shown.values()}
    repeated = {ask.call.call_id: ask.call for ask in requested if ask.call.call_id in ids}
    others = [ask for ask in requested if ask.call.call_id not in ids]
    return [span for span in spans if span.span_id not in shown], [
        *others,
        *[
            RequestedCall(repeated.get(ask.call.call_id, ask.call), ask.at_ns, None, ask.span_id)
            if ask.call.arguments is None  # they may stand where it is repeated
            else ask
            for ask in shown.values()
        ],
    ]


class ToolAnswers:
    """The answers in one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._by_id: dict[str, Message] = {}
        self._by_name: dict[str | None, tuple[list[Message], int]] = {}
        self._beside: dict[tuple[str, str | None], deque[Message]] = {}
        for span in trace.spans:
            for call_id, message in _right_behind(span.input_messages):
                self._by_id.setdefault(call_id, message)
            named: dict[str | None, list[Message]] = {}
            shown = [each for each in (*span.input_messages, *span.output_messages) if not each.withheld]
            for message in [each for each in shown if each.role == "tool"]:
                if message.tool_call_id is not None:
                    self._by_id.setdefault(message.tool_call_id, message)
                else:
                    named.setdefault(message.name, []).append(message)
            for message in span.output_messages:
                if message.role == "tool" and message.tool_call_id is None and not message.withheld:
                    self._beside.setdefault((span.span_id, message.name), deque()).append(message)
            for name, stated in named.items():  # the longest history holds the others
                if len(stated) >= len(self._by_name.get(name, ((), 0))[0]):
                    self._by_name[name] = (stated, span.start_ns)

    def to(self, requested: list[RequestedCall]) -> list[RequestedCall]:
        """The calls with their answers: the first answer under a call's id.

        Some clients change or drop a call's id in the history: then it is found by its name and arguments, or by the
        tool's name in order, beside the call at first; and where answers have neither id nor name, in order, right
        behind the calls at first.
        """
        ids = {ask.call.call_id for ask in requested if ask.call.call_id is not None}
        again = {} if ids <= self._by_id.keys() else self._reported_again(ids)
        requested = [
            RequestedCall(ask.call, ask.at_ns, self._under_an_id(ask.call, again) or self._next(ask), ask.span_id)
            for ask in requested
        ]
        return self._in_order(self._in_order(requested, named=True), named=False)

    def _under_an_id(self, call: ToolCall, again: dict[tuple[str, str], deque[str]]) -> Message | None:
        if call.call_id is None:
            return None
        if (found := self._by_id.get(call.call_id)) is not None:
            return found
        others = again.get(call_identity(call)[1:])
        return self._by_id.get(others.popleft()) if others else None

    def _next(self, ask: RequestedCall) -> Message | None:
        beside = self._beside.get((ask.span_id, ask.call.name)) if ask.call.call_id is None else None
        return beside.popleft() if beside else None

    def _reported_again(self, made: set[str]) -> dict[tuple[str, str], deque[str]]:
        """Ids of calls in the history that are not among ``made``, by name and arguments."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for span in self._trace.spans:
            for call in (call for message in span.input_messages for call in message.tool_calls):
                if call.call_id is not None and call.call_id not in made:
                    found.setdefault(call_identity(call)[1:], {})[call.call_id] = None
        return {key: deque(ids) for key, ids in found.items()}

    def _in_order(self, requested: list[RequestedCall], *, named: bool) -> list[RequestedCall]:
        """The calls; a call without an answer gets the next one of its tool, or the next that names no tool."""
        if not self._by_name:
            return requested
        waiting: dict[str | None, list[int]] = {}
        for index, ask in enumerate(requested):
            if ask.answer is None:
                waiting.setdefault(ask.call.name if named else None, []).append(index)
        given: dict[int, Message] = {}
        for called, indices in waiting.items():
            stated, at_ns = self._by_name.get(called, ([], 0))
            before = [index for index in indices if requested[index].at_ns <= at_ns]
            if before:  # of a longer history the last answers are those to the calls of this trace
                given |= zip(before, stated[-len(before) :], strict=False)
        return [
            RequestedCall(ask.call, ask.at_ns, given[i], ask.span_id) if i in given else ask
            for i, ask in enumerate(requested)
        ]


def _right_behind(history: Sequence[Message]) -> Iterator[tuple[str, Message]]:
    """Call ids with the answers that follow right behind: as many answers as calls, without ids or names."""
    for place, asking in enumerate(history):
        if not asking.tool_calls:
            continue
        answers = history[place + 1 : place + 1 + len(asking.tool_calls)]
        bare = [each for each in answers if each.role == "tool" and each.tool_call_id is None and each.name is None]
        if len(bare) == len(asking.tool_calls):
            for call, answer in zip(asking.tool_calls, bare, strict=True):
                if call.call_id is not None and not answer.withheld:
                    yield call.call_id, answer


def call_identity(call: ToolCall) -> tuple[str, str, str]:
    """Id (empty when there is none), name and arguments of a call; equal identities are one repeated call."""
    return (call.call_id or "", call.name, identity(call.arguments))


def identity(arguments: Json) -> str:
    """As ``canonical``, in a fifth of the time, for what is only compared."""
    try:
        return _SORTED.encode(arguments).decode()
    except (TypeError, ValueError):  # half a surrogate pair, a key that is no text
        return canonical(arguments)


_SORTED: Final = msgspec.json.Encoder(order="sorted")
canonical: Final[Callable[[Json], str]] = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=str).encode
"""Arguments as one text, independent of the order of keys."""

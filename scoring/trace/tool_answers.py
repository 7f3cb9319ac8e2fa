"""Tool answers in the messages of a trace, and which call each of them belongs to."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Final

from .record import record
from .span import Json, Message, ToolCall
from .trace import Trace


@record(frozen=True, slots=True, kw_only=False)
class RequestedCall:
    """A call in a message, when it was made, the message that answers it, and the span that holds the call."""

    call: ToolCall
    at_ns: int
    answer: Message | None
    span_id: str


class ToolAnswers:
    """The answers in one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._by_id: dict[str, Message] = {}
        self._by_name: dict[str | None, tuple[list[Message], int]] = {}
        for span in trace.spans:
            named: dict[str | None, list[Message]] = {}
            for message in [each for each in (*span.input_messages, *span.output_messages) if each.role == "tool"]:
                if message.tool_call_id is not None:
                    self._by_id.setdefault(message.tool_call_id, message)
                else:
                    named.setdefault(message.name, []).append(message)
            for name, stated in named.items():  # the longest history holds the others
                if len(stated) >= len(self._by_name.get(name, ((), 0))[0]):
                    self._by_name[name] = (stated, span.start_ns)

    def to(self, requested: list[RequestedCall]) -> list[RequestedCall]:
        """The calls with their answers: the first that was given under a call's id.

        Some clients give a call another id in the history, or none at all: then it is found by its name and arguments,
        or by the tool's name in order; and where answers have neither id nor name, in order.
        """
        ids = {ask.call.call_id for ask in requested if ask.call.call_id is not None}
        again = {} if ids <= self._by_id.keys() else self._reported_again(ids)
        requested = [
            RequestedCall(ask.call, ask.at_ns, self._under_an_id(ask.call, again), ask.span_id) for ask in requested
        ]
        return self._in_order(self._in_order(requested, named=True), named=False)

    def _under_an_id(self, call: ToolCall, again: dict[tuple[str, str], deque[str]]) -> Message | None:
        if call.call_id is None:
            return None
        if (found := self._by_id.get(call.call_id)) is not None:
            return found
        others = again.get(identity(call)[1:])
        return self._by_id.get(others.popleft()) if others else None

    def _reported_again(self, made: set[str]) -> dict[tuple[str, str], deque[str]]:
        """Ids of calls in the history, other than those that were made, by name and arguments."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for span in self._trace.spans:
            for call in (call for message in span.input_messages for call in message.tool_calls):
                if call.call_id is not None and call.call_id not in made:
                    found.setdefault(identity(call)[1:], {})[call.call_id] = None
        return {key: deque(ids) for key, ids in found.items()}

    def _in_order(self, requested: list[RequestedCall], *, named: bool) -> list[RequestedCall]:
        """The calls, those without an answer with the next one: of that tool, or of those that name no tool."""
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


def identity(call: ToolCall) -> tuple[str, str, str]:
    """Id (empty when there is none), name and arguments of a call: equal ones are the same call repeated."""
    return (call.call_id or "", call.name, canonical(call.arguments))


canonical: Final[Callable[[Json], str]] = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=str).encode
"""Arguments as one text, whatever the order of their keys."""

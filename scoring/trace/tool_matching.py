"""Which call in a model's message each tool span carried out, and in which order the calls stand."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from .span import Span, ToolCall
from .tool_answers import RequestedCall, canonical
from .tool_spans import sole

_NOT_WORDS = re.compile(r"[\W_]+")


def match(spans: Sequence[Span], requested: Sequence[RequestedCall]) -> dict[int, int]:
    """Which message call each tool span carried out: by call id, else by name and arguments, else by name, in order.

    At last by name and arguments where a model gets another spelling: many accept only letters, digits and ``_``.
    """
    matched: dict[int, int] = {}
    taken: set[int] = set()
    for keys in (_by_id, _by_arguments, _by_name, _by_words):
        if len(matched) == min(len(spans), len(requested)):
            break
        free: dict[tuple[str, ...], deque[int]] = {}
        for index, ask in enumerate(requested):
            for key in keys(ask.call, requested=True) if index not in taken else ():
                free.setdefault(key, deque()).append(index)
        for number, span in enumerate(spans):
            for key in keys(span.tool, requested=False) if span.tool and number not in matched else ():
                waiting = free.get(key, deque())
                while waiting and waiting[0] in taken:
                    waiting.popleft()
                if waiting:
                    taken.add(waiting[0])
                    matched[number] = waiting.popleft()
    return matched


def in_order(
    spans: Sequence[Span], matched: Mapping[int, int], requested: Sequence[RequestedCall]
) -> list[tuple[int, int]]:
    """The key that orders each span's call: when it began and, of calls at the same time, its place in ``requested``.

    Of spans that one answer requested side by side, that which it requested first is given the first beginning.
    """
    found = [(span.start_ns, matched.get(number, len(requested))) for number, span in enumerate(spans)]
    side_by_side: dict[int, list[int]] = {}
    for number, place in matched.items():
        side_by_side.setdefault(requested[place].at_ns, []).append(number)
    for numbers in side_by_side.values():
        if len(numbers) > 1:
            began = sorted(found[number][0] for number in numbers)
            for number, start_ns in zip(sorted(numbers, key=matched.__getitem__), began, strict=True):
                found[number] = (start_ns, matched[number])
    return found


def _by_id(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    del requested
    return [(call.call_id,)] if call.call_id is not None else []


def _by_arguments(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    """A call also goes by its only argument's value: some clients send that bare."""
    keys = [(call.name, canonical(call.arguments))]
    return [*keys, *((call.name, canonical(value)) for value in sole(call.arguments) if requested)]


def _by_name(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    """The name alone suffices where one of the two has no arguments to compare."""
    none = call.arguments in (None, {})
    if requested:
        return [("any", call.name), *([("bare", call.name)] if none else [])]
    return [("any" if none else "bare", call.name)]


def _by_words(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    name = _NOT_WORDS.sub("_", call.name).casefold()
    return _by_arguments(replace(call, name=name), requested=requested) if call.arguments else []

"""Count the messages nested in a body before memory is spent on them.

Two bytes can be an empty message, and a parsed message takes sixty: 64 MiB within all limits would become two
gigabytes. A large body is therefore walked over once, without copying, and refused when it holds more messages than any
exporter sends. A small body is not worth the walk.

A budget of work for one request, so that the event loop does no more than it has time for.

The size of a request is no measure of its work: 1 MiB may be 200 spans or half a million. So steps are counted while
the request is split, and when they exceed the budget the request is split again from the start, in a thread.
"""

from __future__ import annotations

import sys
from typing import Final

from google.protobuf.message import DecodeError

from sidejudge.scoring.errors import SidejudgeError

from .schema import View, children

LARGE: Final = 1 << 20
"""Bytes above which a body is walked over. A smaller one holds at most half a million messages."""
MOST: Final = 500_000
"""Messages (resources, scopes, spans, attributes, values, …) that a body may hold: 60 bytes of memory each."""
MOST_ITEMS: Final = 60_000
"""Resources, scopes and items (spans or log records) that a request may hold: 900 bytes each, if all are kept."""
PARSED_BYTES: Final = MOST * 60 + MOST_ITEMS * 900
"""Memory that splitting one request takes at most, beside copies of its bytes."""
_DEEPEST: Final = 100
"""Nesting at which protobuf itself gives up."""
_VARINT, _BYTES = 0, 2
_FIXED: Final = {1: 8, 5: 4}
"""Wire types of numbers of fixed size, and their bytes."""


def check(body: bytes, view: View) -> None:
    """Raise ``DecodeError`` when a large request, parsed in this view, would hold too much, or is damaged."""
    if len(body) <= LARGE:
        return
    most = MOST_ITEMS if view == "envelope" else MOST
    held = 0
    within = children(view)
    todo = [(0, len(body), "Request", 0)]
    while todo:
        at, end, name, depth = todo.pop()
        fields = within[name]
        while at < end:
            tag, at = _varint(body, at, end)
            kind = tag & 7
            if kind != _BYTES:
                at = _skip(body, at, end, kind)
                continue
            size, at = _varint(body, at, end)
            child = fields.get(tag >> 3)
            if child is not None:
                held += 1
                if held > most or depth >= _DEEPEST:
                    raise DecodeError(f"more than {most} messages in one, or too deeply nested; send smaller batches")
                if size and within[child]:
                    todo.append((at, at + size, child, depth + 1))
            at += size
        if at != end:
            raise DecodeError("a field goes on beyond its message")


def _skip(body: bytes, at: int, end: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(body, at, end)[1]
    if kind in _FIXED:
        return at + _FIXED[kind]
    raise DecodeError("a group, which OTLP has none of")


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise DecodeError("a number goes on beyond its message")


_CONTROL: Final = bytes(range(0x20))
_PER_STEP: Final = 32
"""Messages that protobuf parses in one step."""


class OverBudget(SidejudgeError):  # noqa: N818  # it is a decision, not a fault
    """A request takes more work than the budget allows; it is not known to be wrong."""


class WorkBudget:
    """Steps of work that are left, about 4 µs each (parsing the ids of one span); without a number, unlimited."""

    __slots__ = ("_limited", "_most", "_uncounted", "left")

    def __init__(self, steps: int | None = None) -> None:
        self._limited = steps is not None
        self._uncounted: list[bytes] = []
        self._most = 0
        """Steps that parsing these takes at most: looking into all bytes of each takes as long as parsing them."""
        self.left = sys.maxsize if steps is None else steps

    def spend(self, steps: int) -> None:
        """Count work that is about to be done. Raises ``OverBudget`` when there is not enough left for it."""
        self.left -= steps
        if self.left < self._most:
            self.left -= sum(most_messages(payload) // _PER_STEP for payload in self._uncounted)
            self._uncounted, self._most = [], 0
        if self.left < 0:
            raise OverBudget

    def spend_parsing(self, payload: bytes) -> None:
        """Count the parsing of a whole message with all that is nested in it; raises likewise."""
        if self._limited:
            self._uncounted.append(payload)
            self._most += len(payload) // (2 * _PER_STEP)
            self.spend(0)


def most_messages(payload: bytes) -> int:
    """An upper bound of the number of messages nested in a protobuf message, found without parsing it.

    A message is a tag, a length and its content. The length of one with less than 32 bytes ends with a byte below 0x20,
    even if it is padded; the others have 34 bytes each.
    """
    return min(len(payload) // 34 + len(payload) - len(payload.translate(None, _CONTROL)), len(payload) // 2)

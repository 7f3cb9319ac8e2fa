"""Count the messages nested in a body before memory is spent on them.

Two bytes can be an empty message, and a parsed message takes sixty: 64 MiB within all limits would become two
gigabytes. A large body is therefore walked over once, without copying, and refused when it holds more messages than any
exporter sends. A small body is not worth the walk.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

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

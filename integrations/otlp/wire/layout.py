"""Read an export request in place, in the layout that encoders write: nothing is decoded, nearly nothing is copied.

Requests for spans and for log records have the same layout down to the items themselves: a request is a row of
resources; a resource is a description, a row of scopes and a schema URL; a scope is a description, a row of items and
a schema URL. Encoders write each field once and in the order of numbers, so only three tags and the lengths after them
are read. A request that is legal but has another layout is ``Unusual``, and is encoded anew first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from sidejudge.scoring.errors import SidejudgeError

from .bounds import OverBudget, WorkBudget
from .schema import classes, varint

FIRST, ROW, LAST = b"\n\x12\x1a"
"""Tags of fields 1 to 3: the description of a resource or scope, its items, its schema URL. A length follows each."""
MOST_PARTS: Final = 50_000
"""Resources and scopes that a request may hold: more than a batch has spans, and below a tenth of a second of work."""

Bounds: TypeAlias = tuple[int, int]
"""Offsets in a body: begin and end."""
Place: TypeAlias = tuple[int, int, bytes, bytes, bytes, bytes]
"""Number of a resource in a request and of a scope in it; then the bytes of both, each with its schema URL."""


class Unusual(SidejudgeError, IndexError):  # noqa: N818  # it is a layout, not a fault
    """The body does not have the layout that encoders write, or is no request at all.

    Functions of this module raise its base class if a length leads beyond the body, which means the same.
    """


def usual(body: bytes) -> bytes:
    """Encode the request anew, as encoders write it. Raises ``DecodeError`` when it is none."""
    envelope = classes("envelope")["Request"].FromString(body)
    envelope.DiscardUnknownFields()
    return bytes(envelope.SerializeToString())


def scopes(body: bytes, budget: WorkBudget | None = None) -> Iterator[tuple[int, int, bytes, bytes, bytes, int, int]]:
    """Iterate over the scopes of a request: their place without the schema URL, where their row begins, where they end.

    The schema URL follows the row; ``last`` reads it and checks that nothing else follows.

    Raises:
        Unusual: See above.
        DecodeError: The request holds too many resources and scopes.
        OverBudget: It takes more work than ``budget`` allows.
    """
    at, end, parts, budget = 0, len(body), 0, budget or WorkBudget()
    while at < end:
        if body[at] != FIRST:
            raise Unusual
        start, at = field(body, at)
        resource, start = first(body, start, at)
        held, start = row(body, start, at, MOST_PARTS, budget)
        budget.spend(1)
        url = last(body, start, at)
        number, parts = parts, parts + 1 + len(held)
        if parts > MOST_PARTS:
            raise DecodeError(f"more than {MOST_PARTS} resources and scopes")
        for s, (begin, stop) in enumerate(held):
            scope, start = first(body, begin, stop)
            yield number, s, resource, url, scope, start, stop
    if at != end:
        raise Unusual


def field(body: bytes, at: int) -> Bounds:
    """Return the bounds of the content of the field whose tag is at ``at``."""
    size = body[at + 1]
    if size < 0x80:
        return at + 2, at + 2 + size
    more = body[at + 2]
    if more < 0x80:  # two bytes: most are
        start = at + 3
        return start, start + size + (more - 1 << 7)
    size &= 0x7F
    for shift in (7, 14, 21):
        more = body[at + 1 + shift // 7]
        size |= (more & 0x7F) << shift
        if more < 0x80:
            start = at + 2 + shift // 7
            return start, start + size
    raise Unusual


def first(body: bytes, at: int, end: int) -> tuple[bytes, int]:
    """Return the description of the message at ``at``, and where its row begins."""
    if at < end and body[at] == FIRST:
        start, at = field(body, at)
        return body[start:at], at
    return b"", at


def row(
    body: bytes, at: int, end: int, most: int = sys.maxsize, budget: WorkBudget | None = None
) -> tuple[list[Bounds], int]:
    """Return the bounds of a message's items from ``at`` on, and where the row ends.

    Raises:
        DecodeError: The row has more than ``most`` items.
        OverBudget: It has more items than the budget has steps.
        Unusual: See above.
    """
    held: list[Bounds] = []
    budget = budget or WorkBudget()
    left = min(most, budget.left)
    while at < end and body[at] == ROW:
        start, at = field(body, at)
        held.append((start, at))
        if len(held) > left:
            if left < most:
                raise OverBudget
            raise DecodeError(f"more than {most} resources, scopes or unusual spans")
    budget.spend(len(held))
    return held, at


def last(body: bytes, at: int, end: int) -> bytes:
    """Return the schema URL after a row. Raises :class:`Unusual` unless the message ends with it."""
    url = b""
    if at < end and body[at] == LAST:
        start, at = field(body, at)
        url = body[start:at]
    if at != end:
        raise Unusual
    return url


def pack(parts: Iterable[tuple[Place, Sequence[bytes]]]) -> bytes:
    """Encode a request that holds these spans or log records, in the order of their places, and nothing else."""
    resources: list[bytes] = []
    held: list[bytes] = []
    before: Place | None = None
    for place, items in parts:
        if before is not None and place[0] != before[0]:
            resources.append(_message(before[2], held, before[3]))
            held = []
        held.append(_message(place[4], items, place[5]))
        before = place
    if before is not None:
        resources.append(_message(before[2], held, before[3]))
    return b"".join(part for each in resources for part in (_head(FIRST, len(each)), each))


def _message(description: bytes, held: Sequence[bytes], url: bytes) -> bytes:
    parts = [_head(FIRST, len(description)), description] if description else []
    for each in held:
        parts += (_head(ROW, len(each)), each)
    if url:
        parts += (_head(LAST, len(url)), url)
    return b"".join(parts)


@lru_cache(maxsize=4096)  # most are of some hundred bytes
def _head(tag: int, size: int) -> bytes:
    """Encode tag and length of a field."""
    return bytes((tag,)) + varint(size)

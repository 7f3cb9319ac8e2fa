"""Spans and log records as one block of bytes, and back: chunks as they came, and MessagePack, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import JsonRecord

from .raw import RawEvent, RawLogRecord, RawSpan

_LEVEL: Final = 1
"""Of zlib: a third of the time of its default level, for a tenth more bytes."""
_LENGTH: Final = 4
"""Bytes of a part's length."""
_AS_IT_CAME: Final = 1 << 31
"""Is added to the length of a chunk."""
_Known = TypeVar("_Known", RawEvent, RawLogRecord, RawSpan)


class PackedPart(NamedTuple):
    """What came together: spans, and log records that are not joined to their spans yet."""

    spans: list[RawSpan]
    records: list[RawLogRecord]


Part: TypeAlias = PackedPart | bytes
"""Spans and records, or the chunk that they came in."""


class PackedSpansError(SidejudgeError, ValueError):
    """Bytes that are no packed spans."""


def pack(parts: Iterable[Part], most_bytes: int) -> bytes | None:
    """The parts as bytes, one in memory at a time; None where they are more than ``most_bytes``.

    Raises:
        ValueError: A text has no UTF-8.
    """
    packing, body = zlib.compressobj(_LEVEL), bytearray()
    for part in parts:
        block, mark = (part, _AS_IT_CAME) if isinstance(part, bytes) else (msgspec.msgpack.encode(part), 0)
        body += packing.compress((len(block) | mark).to_bytes(_LENGTH))
        body += packing.compress(block)
        if len(body) > most_bytes:
            return None
    body += packing.flush()
    return bytes(body) if len(body) <= most_bytes else None


def unpack(body: bytes) -> Iterator[Part]:
    """The parts as they were packed, by this version or another: fields that it does not know are left out.

    Raises:
        PackedSpansError: They cannot be read.
    """
    try:
        rest = memoryview(zlib.decompress(body))
        while rest:
            stated = int.from_bytes(rest[:_LENGTH])
            end = _LENGTH + (stated & ~_AS_IT_CAME)
            block, rest = rest[_LENGTH:end], rest[end:]
            if stated & _AS_IT_CAME:
                yield bytes(block)
                continue
            spans, records = msgspec.msgpack.decode(block)
            yield PackedPart([_span(each) for each in spans], [_known(RawLogRecord, each) for each in records])
    except (zlib.error, msgspec.MsgspecError, TypeError, AttributeError, ValueError) as error:
        raise PackedSpansError(f"these are no packed spans ({error})") from error


def _span(stated: JsonRecord) -> RawSpan:
    events = stated.get("events")
    if not isinstance(events, list):
        raise TypeError("a span has no list of events")
    return _known(RawSpan, {**stated, "events": tuple(_known(RawEvent, event) for event in events)})


def _known(kind: type[_Known], stated: JsonRecord) -> _Known:
    return kind(**{name: value for name, value in stated.items() if name in kind.__struct_fields__})

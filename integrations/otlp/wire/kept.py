"""Decode the chunks of one trace into spans, with the contents of its log records joined to them.

A chunk of spans is a request for spans. A chunk of log records is a request for log records, inside a field that a
request for spans does not have (``KeptLogs``), so that decoding it as spans finds none.

Contents that are kept for longer are packed: chunks as they came, and spans and log records in MessagePack, compressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from sidejudge.integrations.contents_in_logs import join
from sidejudge.integrations.raw import RawEvent, RawLogRecord, RawSpan
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import JsonRecord

from .decode import UndecodableError, decode_logs, decode_spans
from .schema import classes

_REPEATED: Final = 16 * 2**10
"""Bytes of a resource and a scope that may stand beside each span."""
LOGS: Final = b"\x12"
"""The first byte of a chunk of log records; a chunk of spans has another."""
_LEVEL: Final = 1
"""Of zlib: a third of the time of its default level, for a tenth more bytes."""
_LENGTH: Final = 4
"""Bytes of a part's length."""
_PIECE: Final = 1 << 18
"""Bytes that are compressed at once: of a large image the first that are too many end it."""
_AS_IT_CAME: Final = 1 << 31
"""Is added to the length of a chunk."""
_Known = TypeVar("_Known", RawEvent, RawLogRecord, RawSpan)


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """The spans of a trace in order of arrival, and how many chunks could not be read."""

    spans: list[RawSpan]
    damaged: int = 0


def decode_kept(payloads: Iterable[bytes]) -> KeptTrace:
    """Decode the chunks of one trace."""
    spans: list[RawSpan] = []
    records: list[RawLogRecord] = []
    damaged = 0
    for payload in payloads:
        try:
            more_spans, more_records = decode_chunk(payload)
        except UndecodableError:
            damaged += 1
            continue
        spans += more_spans
        records += more_records
    return KeptTrace(joined(spans, records), damaged)


def decode_chunk(payload: bytes) -> tuple[list[RawSpan], list[RawLogRecord]]:
    """The spans, or the log records, of one chunk. Raises ``UndecodableError`` for one that cannot be read."""
    if payload[:1] != LOGS:
        return decode_spans(payload), []
    try:
        return [], decode_logs(classes("complete")["KeptLogs"].FromString(payload).request)
    except DecodeError as error:
        raise UndecodableError(str(error)) from None


def by_span(payload: bytes) -> Iterator[bytes]:
    """A chunk of spans as one chunk for each span. Log records, damage, and what repeats much for each stay whole."""
    try:
        found = classes("envelope")["Request"].FromString(payload) if payload[:1] != LOGS else None
    except DecodeError:
        found = None
    groups = [(held, scope) for held in found.resource_spans for scope in held.scope_spans] if found is not None else []
    if not groups or any(len(held.resource) + len(scope.scope) > _REPEATED for held, scope in groups):
        yield payload
        return
    for held, scope in groups:
        for span in scope.spans:
            piece = classes("envelope")["Request"]()
            around = piece.resource_spans.add(resource=held.resource, schema_url=held.schema_url)
            around.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url, spans=[span])
            yield piece.SerializeToString()


def joined(spans: list[RawSpan], records: list[RawLogRecord]) -> list[RawSpan]:
    """The spans of a trace with the contents of its log records."""
    return join(spans, records) if records else spans


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
        for at in range(0, len(block), _PIECE):
            body += packing.compress(memoryview(block)[at : at + _PIECE])
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

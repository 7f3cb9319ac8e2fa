"""Decode the chunks of one trace into spans, with the contents of its log records joined to them.

A chunk of spans is a request for spans. A chunk of log records is a request for log records, inside a field that a
request for spans does not have (``KeptLogs``), so that decoding it as spans finds none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from sidejudge.integrations.contents_in_logs import join
from sidejudge.integrations.raw import RawLogRecord, RawSpan

from .decode import UndecodableError, decode_spans
from .decode_logs import decode_logs
from .schema import classes

_REPEATED: Final = 16 * 2**10
"""Bytes of a resource and a scope that may stand beside each span."""
LOGS: Final = b"\x12"
"""The first byte of a chunk of log records; a chunk of spans has another."""


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

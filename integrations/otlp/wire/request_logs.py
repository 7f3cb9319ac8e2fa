"""From a request for log records to the chunks of those that belong to traces that are kept.

Several instrumentations say what was said to a model in log records: events that name their trace and span. These are
drawn by the same threshold on the trace id as spans are (explicit randomness is not known here: a log record carries no
trace state). Plain lines of a log, and events of no trace, are nobody's contents; they are counted and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError

from . import bounds
from .chunk import Chunk, ChunkOrigin
from .encode_json import encode_log_record, encode_resource, encode_scope
from .envelope import LogIds, Logs
from .json_values import identifier, mapping, objects, text
from .layout import Place, last, pack, row, scopes, usual
from .own_telemetry import is_own_telemetry
from .receipt import Undecodable
from .request_json import load
from .schema import opaque_classes
from .split import Admit

_NO_TRACE: Final = bytes(16)
_NO_SPAN: Final = bytes(8)
_EVENT_NAME: Final = b"event.name"
_NOWHERE: Final[Place] = (0, 0, b"", b"", b"", b"")


@dataclass(slots=True)
class LogSplit:
    """What became of a request's log records.

    ``untraced`` ones name no trace or no span, ``plain`` ones no event, ``dropped`` ones belong to traces that are not
    drawn. ``own`` ones are what a monitor tells of a trace: they name the very trace that it judged.
    """

    chunks: list[Chunk] = field(default_factory=list)
    records: int = 0
    kept: int = 0
    dropped: int = 0
    own: int = 0
    untraced: int = 0
    plain: int = 0
    damaged: int = 0

    @property
    def rejected(self) -> int:
        return self.damaged

    @property
    def message(self) -> str:
        """Why records were rejected, in one line; empty when none was."""
        return f"{self.damaged} log records could not be decoded" if self.damaged else ""


class _Sieve:
    """Gathers what is kept of one request, trace by trace. Resources and scopes say nothing that a span does not."""

    def __init__(self) -> None:
        self.result = LogSplit()
        self._kept: dict[bytes, tuple[ChunkOrigin, list[bytes]]] = {}

    def wants(self, trace_id: bytes, span_id: bytes, origin: ChunkOrigin) -> bool:
        result = self.result
        result.records += 1
        if len(trace_id) != 16 or trace_id == _NO_TRACE or len(span_id) != 8 or span_id == _NO_SPAN:
            result.untraced += 1
        elif not origin.draws(trace_id):
            result.dropped += 1
        else:
            return True
        return False

    def pass_over(self, records: int) -> None:
        self.result.records += records
        self.result.own += records

    def keep(self, trace_id: bytes, record: bytes, origin: ChunkOrigin) -> None:
        self._kept.setdefault(trace_id, (origin, []))[1].append(record)
        self.result.kept += 1

    def finish(self) -> LogSplit:
        for trace_id, (origin, records) in self._kept.items():
            payload = bytes(Logs(request=pack([(_NOWHERE, records)])).SerializeToString())
            chunk = Chunk(trace_id=trace_id, payload=payload, headers=(), origin=origin, records=len(records))
            self.result.chunks.append(chunk)
        return self.result


def split_logs(body: bytes, admit: Admit) -> LogSplit:
    """Split a protobuf request. Raises :class:`Undecodable` for what is none."""
    try:
        bounds.check(body, "Envelope")
        try:
            return _split(body, admit)
        except IndexError:
            return _split(usual(body), admit)
    except DecodeError as error:
        raise Undecodable(f"the body is not an ExportLogsServiceRequest ({error})") from None


def _split(body: bytes, admit: Admit) -> LogSplit:
    sieve = _Sieve()
    for _, _, resource, _, scope, start, end in scopes(body):
        origin = admit(resource)
        records, at = row(body, start, end)
        last(body, at, end)
        if is_own_telemetry(origin, scope):
            sieve.pass_over(len(records))
        else:
            _sift((body[start:end] for start, end in records), origin, sieve)
    return sieve.finish()


def _sift(records: Iterable[bytes], origin: ChunkOrigin, sieve: _Sieve) -> None:
    for record in records:
        try:
            ids = LogIds.FromString(record)
            if not sieve.wants(ids.trace_id, ids.span_id, origin):
                continue
            whole: Any = opaque_classes()["LogRecord"].FromString(record)
        except DecodeError:
            sieve.result.damaged += 1
            continue
        if whole.event_name or any(pair.key == _EVENT_NAME for pair in whole.attributes):
            sieve.keep(ids.trace_id, record, origin)
        else:
            sieve.result.plain += 1


def split_logs_json(body: bytes, admit: Admit) -> LogSplit:
    """Split a request in OTLP/JSON. Raises :class:`Undecodable` for what is none."""
    request = load(body, "resourceLogs")
    sieve = _Sieve()
    for resource_logs in objects(request.get("resourceLogs")):
        origin = admit(encode_resource(mapping(resource_logs.get("resource"))))
        for scope_logs in objects(resource_logs.get("scopeLogs")):
            records = list(objects(scope_logs.get("logRecords")))
            if is_own_telemetry(origin, encode_scope(mapping(scope_logs.get("scope")))):
                sieve.pass_over(len(records))
                continue
            for record in records:
                _sift_json(record, origin, sieve)
    return sieve.finish()


def _sift_json(record: dict[str, Any], origin: ChunkOrigin, sieve: _Sieve) -> None:
    trace_id = bytes.fromhex(identifier(record.get("traceId"), 16) or "")
    span_id = bytes.fromhex(identifier(record.get("spanId"), 8) or "")
    if not sieve.wants(trace_id, span_id, origin):
        return
    names = (pair.get("key") for pair in objects(record.get("attributes")))
    if text(record.get("eventName")) or _EVENT_NAME.decode() in names:
        sieve.keep(trace_id, encode_log_record(record, trace_id, span_id), origin)
    else:
        sieve.result.plain += 1

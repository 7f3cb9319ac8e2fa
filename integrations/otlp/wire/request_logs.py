"""Split an export request for log records into chunks, one for each trace that is kept.

Several instrumentations record prompts and answers in log records: events that name their trace and span. These are
drawn by the same threshold on the trace id as spans are (explicit randomness is unknown here: a log record carries no
trace state). A record without a name is kept if it shows such contents by its shape. Plain lines of a log, and events
of no trace, are counted and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError

from sidejudge.integrations.contents_in_logs import MAY_SHOW, shows_contents
from sidejudge.integrations.raw import EVALUATION
from sidejudge.scoring.trace.span import Json

from . import bounds
from .bounds import WorkBudget
from .chunk import Chunk, ChunkOrigin
from .decode import read_record
from .decode_json import UNREADABLE, read_json_record
from .encode import encode_log_record, encode_resource, encode_scope
from .json_values import identifier, mapping, objects, text
from .layout import Place, last, pack, row, scopes, usual
from .receipt import Admit, Undecodable
from .request_json import VALUE_BYTES, Parts, load
from .schema import classes

_LogIds: Final = classes("complete")["LogIds"]
_KeptLogs: Final = classes("complete")["KeptLogs"]
_NO_TRACE: Final = bytes(16)
_NO_SPAN: Final = bytes(8)
_EVENT_NAME: Final = b"event.name"
_EVALUATION: Final = EVALUATION.encode()
_TRACE_STEPS: Final = 4
"""Work of a trace's log records beside the records: their chunk here, and its place in the assembler."""
_MOST: Final = 500_000
"""Log records that a scope may hold."""
_NOWHERE: Final[Place] = (0, 0, b"", b"", b"", b"")


@dataclass(slots=True)
class LogSplit:
    """The result for a request's log records.

    ``untraced`` ones name no trace, or no span and are no verdicts of others, ``plain`` ones neither name an event nor
    show contents, ``dropped`` ones belong to traces that are not drawn. ``own`` ones are a monitor's own telemetry:
    they name the very trace that it judged.
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


class _Sampler:
    """Gathers the kept records of one request, trace by trace. Resources and scopes hold nothing that a span lacks."""

    def __init__(self, budget: WorkBudget) -> None:
        self.result, self.budget = LogSplit(), budget
        self._kept: dict[bytes, tuple[ChunkOrigin, list[bytes]]] = {}

    def wants(self, trace_id: bytes, span_id: bytes, origin: ChunkOrigin) -> bool:
        result = self.result
        result.records += 1
        self.budget.spend(1)
        if len(trace_id) != 16 or trace_id == _NO_TRACE:
            result.untraced += 1
        elif not origin.draws(trace_id):
            result.dropped += _names_span(span_id)
            result.untraced += not _names_span(span_id)
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
        self.budget.spend(_TRACE_STEPS * len(self._kept))
        for trace_id, (origin, records) in self._kept.items():
            payload = bytes(_KeptLogs(request=pack([(_NOWHERE, records)])).SerializeToString())
            chunk = Chunk(trace_id=trace_id, payload=payload, headers=(), origin=origin, records=len(records))
            self.result.chunks.append(chunk)
        return self.result


def split_logs(body: bytes, admit: Admit, budget: WorkBudget | None = None) -> LogSplit:
    """Split a protobuf request; raises as ``request.split`` does."""
    budget = budget or WorkBudget()
    try:
        bounds.check(body, "envelope")
        try:
            return _split(body, admit, budget)
        except IndexError:
            budget.spend_parsing(body)
            return _split(usual(body), admit, budget)
    except DecodeError as error:
        raise Undecodable(f"the body is not an ExportLogsServiceRequest ({error})") from None


def _split(body: bytes, admit: Admit, budget: WorkBudget) -> LogSplit:
    sampler = _Sampler(budget)
    for _, _, resource, _, scope, start, end in scopes(body, budget):
        origin = admit(resource)
        records, at = row(body, start, end, _MOST, budget)
        last(body, at, end)
        if origin.is_own(scope):
            sampler.pass_over(len(records))
        else:
            _sample((body[start:end] for start, end in records), origin, sampler)
    return sampler.finish()


def _sample(records: Iterable[bytes], origin: ChunkOrigin, sampler: _Sampler) -> None:
    for record in records:
        try:
            ids = _LogIds.FromString(record)
            if not sampler.wants(ids.trace_id, ids.span_id, origin):
                continue
            sampler.budget.spend_parsing(record)
            whole: Any = classes("opaque")["LogRecord"].FromString(record)
        except DecodeError:
            sampler.result.damaged += 1
            continue
        named = whole.event_name or any(pair.key == _EVENT_NAME for pair in whole.attributes)
        if not _names_span(ids.span_id) and _EVALUATION not in record:
            sampler.result.untraced += 1
        elif named or (MAY_SHOW.search(record) and shows_contents(read_record(whole))):
            sampler.keep(ids.trace_id, record, origin)
        else:
            sampler.result.plain += 1


def _names_span(span_id: bytes) -> bool:
    return len(span_id) == len(_NO_SPAN) and span_id != _NO_SPAN


def _evaluates(record: dict[str, Json]) -> bool:
    """Whether a record in JSON reports a verdict of others."""
    held = (mapping(pair.get("value")).get("stringValue") for pair in objects(record.get("attributes")))
    return EVALUATION in (record.get("eventName"), *held)


def split_logs_json(body: bytes, admit: Admit, budget: WorkBudget | None = None) -> LogSplit:
    """Split a request in OTLP/JSON; raises likewise."""
    request = load(body, "resourceLogs")
    sampler = _Sampler(budget or WorkBudget())
    sampler.budget.spend(len(body) // VALUE_BYTES)
    parts = Parts(sampler.budget)
    try:
        for resource_logs in parts.of(request.get("resourceLogs")):
            origin = admit(encode_resource(mapping(resource_logs.get("resource"))))
            for scope_logs in parts.of(resource_logs.get("scopeLogs")):
                records = list(objects(scope_logs.get("logRecords")))
                if origin.is_own(encode_scope(mapping(scope_logs.get("scope")))):
                    sampler.pass_over(len(records))
                    continue
                for record in records:
                    _sample_json(record, origin, sampler)
    except Undecodable:
        raise
    except UNREADABLE as error:
        raise Undecodable(f"a resource or scope in the request cannot be read ({type(error).__name__})") from None
    return sampler.finish()


def _sample_json(record: dict[str, Json], origin: ChunkOrigin, sampler: _Sampler) -> None:
    trace_id = bytes.fromhex(identifier(record.get("traceId"), 16) or "")
    span_id = bytes.fromhex(identifier(record.get("spanId"), 8) or "")
    if not sampler.wants(trace_id, span_id, origin):
        return
    names = (pair.get("key") for pair in objects(record.get("attributes")))
    try:
        if not _names_span(span_id) and not _evaluates(record):
            sampler.result.untraced += 1
        elif text(record.get("eventName")) or _EVENT_NAME.decode() in names or shows_contents(read_json_record(record)):
            sampler.keep(trace_id, encode_log_record(record, trace_id, span_id), origin)
        else:
            sampler.result.plain += 1
    except UNREADABLE:
        sampler.result.damaged += 1

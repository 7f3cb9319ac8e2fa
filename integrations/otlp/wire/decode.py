"""Decode export requests into raw spans or log records; lenient towards odd texts and values, strict towards damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from google.protobuf.message import DecodeError

from sidejudge.integrations.raw import AttributeValue, RawEvent, RawLogRecord, RawSpan
from sidejudge.scoring.errors import SidejudgeError

from .schema import classes
from .values import any_value, attributes, decode_attributes, opaque_attributes, opaque_value, text

NO_TRACE, NO_SPAN = bytes(16), bytes(8)
"""All-zero ids are invalid (OpenTelemetry trace API): a span under one belongs nowhere."""
_REMEMBERED: Final = 4096
"""The largest resource or scope, in bytes, that is remembered decoded: an application sends the same all the time."""
_MOST: Final = 256
"""Resources, and scopes, that are remembered."""

Read: TypeAlias = Callable[[Iterable[Any]], dict[str, AttributeValue]]
"""Decodes attributes as one view of the schema has parsed them."""


class UndecodableError(SidejudgeError, ValueError):
    """The bytes are not an export request: cut short, damaged, or something else."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The spans of a request, and how many were left out because their trace or span id is not valid."""

    spans: list[RawSpan]
    skipped: int = 0


def decode_spans(payload: bytes) -> list[RawSpan]:
    """Read the spans of a protobuf ``ExportTraceServiceRequest`` without those with invalid ids (see ``decode``)."""
    return decode(payload).spans


def decode(payload: bytes) -> Decoded:
    """Read a protobuf ``ExportTraceServiceRequest``. Raises ``UndecodableError`` when it is none.

    Invalid UTF-8 becomes U+FFFD; NaN and infinities become their names; absent values become None.
    """
    try:
        return _decode_usual(payload)
    except (IndexError, UnicodeDecodeError, DecodeError):
        return _decode_whole(payload)


def _decode_usual(payload: bytes) -> Decoded:
    """First try: a layout as encoders write it needs hardly any messages."""
    request: Any = classes("flat")["Request"].FromString(payload)
    found: list[RawSpan | None] = []
    # [:] makes lists: iterating over protobuf's own containers ends with an exception that is built each time.
    for resource_spans in request.resource_spans[:]:
        raw = resource_spans.resource
        resource = _resource(raw) if len(raw) <= _REMEMBERED else _read_resource(raw)
        for scope_spans in resource_spans.scope_spans[:]:
            raw = scope_spans.scope
            scope = _scope(raw) if len(raw) <= _REMEMBERED else _read_scope(raw)
            found += [_span(span, decode_attributes, resource, scope) for span in scope_spans.spans[:]]
    decoded = _decoded(found)
    if decoded.skipped:
        raise IndexError  # the contents of a span without valid ids were not decoded, and may be damaged
    return decoded


def _read_resource(resource: bytes) -> dict[str, AttributeValue]:
    read: Any = classes("flat")["Resource"].FromString(resource)
    return decode_attributes(read.attributes)


def _read_scope(scope: bytes) -> tuple[str, str]:
    read: Any = classes("flat")["Scope"].FromString(scope)
    return read.name.decode(), read.version.decode()


_resource = lru_cache(maxsize=_MOST)(_read_resource)
_scope = lru_cache(maxsize=_MOST)(_read_scope)


def _decode_whole(payload: bytes) -> Decoded:
    """Second try: anything that protobuf can parse. Third, each value by itself (``_opaque``)."""
    request: Any = classes("whole")["Request"]()
    try:
        request.ParseFromString(payload)
    except DecodeError:
        return _walk(_opaque(payload, "Request", "trace"), opaque_attributes)
    return _walk(request, attributes)


def _opaque(payload: bytes, message: str, what: str) -> Any:
    """The request with values as bytes: one that is nested beyond protobuf's limit must not cost all of it."""
    request: Any = classes("opaque")[message]()
    try:
        request.ParseFromString(payload)
    except DecodeError as error:
        raise UndecodableError(
            f"not an OTLP {what} request, or a damaged one ({len(payload)} bytes of protobuf)"
        ) from error
    return request


def _walk(request: Any, read: Read) -> Decoded:
    found: list[RawSpan | None] = []
    for resource_spans in request.resource_spans:
        resource = read(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = text(scope_spans.scope.name), text(scope_spans.scope.version)
            found += [_span(span, read, resource, scope) for span in scope_spans.spans]
    return _decoded(found)


def _decoded(found: list[RawSpan | None]) -> Decoded:
    spans = [span for span in found if span is not None]
    return Decoded(spans, len(found) - len(spans))


def _span(span: Any, read: Read, resource: Mapping[str, AttributeValue], scope: tuple[str, str]) -> RawSpan | None:
    """Build the raw span; None if it has no valid ids."""
    trace_id, span_id = span.trace_id, span.span_id
    if len(trace_id) != 16 or len(span_id) != 8 or trace_id == NO_TRACE or span_id == NO_SPAN:
        return None
    parent = span.parent_span_id
    status = span.status
    events = span.events
    return RawSpan(
        trace_id=trace_id.hex(),
        span_id=span_id.hex(),
        parent_id=parent.hex() if parent and parent != NO_SPAN else None,
        name=text(span.name),
        start_ns=span.start,
        end_ns=span.end,
        trace_state=text(state) if (state := span.trace_state) else "",
        kind=span.kind,
        attributes=read(span.attributes[:]),
        events=tuple([_event(event, read) for event in events[:]]) if events else (),
        status_code=status.code,
        status_message=text(message) if (message := status.message) else "",
        scope_name=scope[0],
        scope_version=scope[1],
        dropped_attributes=span.dropped_attributes,
        resource=resource,
    )


def _event(event: Any, read: Read) -> RawEvent:
    return RawEvent(name=text(event.name), time_ns=event.time, attributes=read(event.attributes))


def decode_logs(payload: bytes) -> list[RawLogRecord]:
    """Read a protobuf ``ExportLogsServiceRequest``. Raises ``UndecodableError`` when it is none."""
    request: Any = classes("whole")["LogRequest"]()
    try:
        request.ParseFromString(payload)
    except DecodeError:
        return [read_record(record) for record in _records(_opaque(payload, "LogRequest", "logs"))]
    return [
        read_record(record, (attributes(record.attributes), any_value(record.body))) for record in _records(request)
    ]


def _records(request: Any) -> list[Any]:
    return [r for resource in request.resource_logs for scope in resource.scope_logs for r in scope.log_records]


def read_record(record: Any, read: tuple[dict[str, AttributeValue], AttributeValue] | None = None) -> RawLogRecord:
    """A record with its attributes and body as they were ``read``; None: one of the ``opaque`` view, read here."""
    found, body = read or (opaque_attributes(record.attributes), opaque_value(record.body))
    trace_id, span_id = record.trace_id, record.span_id
    return RawLogRecord(
        trace_id=trace_id.hex() if len(trace_id) == 16 and trace_id != NO_TRACE else None,
        span_id=span_id.hex() if len(span_id) == 8 and span_id != NO_SPAN else None,
        time_ns=record.time or record.observed,
        event=text(record.event_name) or event_named(found),
        body=body,
        attributes=found,
    )


def event_named(found: Mapping[str, AttributeValue]) -> str:
    """Return the event's name from the attribute that held it before log records had a field for it."""
    name = found.get("event.name")
    return name if isinstance(name, str) else ""

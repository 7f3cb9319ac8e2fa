"""Decode export requests for log records, protobuf or JSON; as lenient and as strict as the decoding of spans."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from sidejudge.integrations.raw import AttributeValue, RawLogRecord
from sidejudge.scoring.trace.span import Json

from . import json_values
from .decode import NO_SPAN, NO_TRACE, UndecodableError
from .decode_json import UNREADABLE, load_object
from .schema import classes
from .values import any_value, attributes, opaque_attributes, opaque_value, text

_EVENT_NAME = "event.name"


def decode_logs(payload: bytes) -> list[RawLogRecord]:
    """Read a protobuf ``ExportLogsServiceRequest``. Raises ``UndecodableError`` when it is none."""
    request: Any = classes("whole")["LogRequest"]()
    try:
        request.ParseFromString(payload)
    except DecodeError:
        return _decode_deep(payload)
    return [
        read_record(record, (attributes(record.attributes), any_value(record.body))) for record in _records(request)
    ]


def _decode_deep(payload: bytes) -> list[RawLogRecord]:
    """Second try, each value by itself: one value nested beyond protobuf's limit must not cost the request."""
    request: Any = classes("opaque")["LogRequest"]()
    try:
        request.ParseFromString(payload)
    except DecodeError as error:
        raise UndecodableError(
            f"not an OTLP logs request, or a damaged one ({len(payload)} bytes of protobuf)"
        ) from error
    return [read_record(record) for record in _records(request)]


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
        event=text(record.event_name) or _named(found),
        body=body,
        attributes=found,
    )


def decode_logs_json(payload: bytes) -> list[RawLogRecord]:
    """Read an ``ExportLogsServiceRequest`` in OTLP's JSON encoding; records that cannot be read are left out.

    Raises ``UndecodableError`` when it is no such request.
    """
    request = load_object(payload)
    if "resourceLogs" not in request and request:
        raise UndecodableError("not an OTLP/JSON logs request: there is no resourceLogs")
    found: list[RawLogRecord] = []
    for resource in json_values.objects(request.get("resourceLogs")):
        for scope in json_values.objects(resource.get("scopeLogs")):
            for record in json_values.objects(scope.get("logRecords")):
                with contextlib.suppress(*UNREADABLE):
                    found.append(read_json_record(record))
    return found


def read_json_record(record: dict[str, Json]) -> RawLogRecord:
    """A record in OTLP's JSON encoding; raises one of ``UNREADABLE`` for one that cannot be read."""
    found = json_values.attributes(record.get("attributes"))
    return RawLogRecord(
        trace_id=json_values.identifier(record.get("traceId"), 16),
        span_id=json_values.identifier(record.get("spanId"), 8),
        time_ns=json_values.integer(record.get("timeUnixNano"))
        or json_values.integer(record.get("observedTimeUnixNano")),
        event=json_values.text(record.get("eventName")) or _named(found),
        body=json_values.any_value(record.get("body")),
        attributes=found,
    )


def _named(found: Mapping[str, AttributeValue]) -> str:
    """Return the event's name from the attribute that held it before log records had a field for it."""
    name = found.get(_EVENT_NAME)
    return name if isinstance(name, str) else ""

"""Encode parsed spans and log records of OTLP/JSON in protobuf, because chunks are kept in one form.

Loose writing of clients is tolerated by ``json_values``; the result decodes to the same as the JSON does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sidejudge.integrations.raw import AttributeValue
from sidejudge.scoring.trace.span import Json

from . import json_values
from .decode_json import KINDS, MOST_DROPPED, STATUSES
from .json_values import enum, integer, mapping, objects, text
from .schema import classes

_DEEPEST: Final = 30
"""Levels of a value that are kept: three messages each, of the hundred that protobuf reads. Deeper ones are empty."""
_INT64: Final = range(-(1 << 63), 1 << 63)


def encode_resource(resource: Mapping[str, Json]) -> bytes:
    """Encode a ``Resource``: its attributes."""
    made: Any = classes("whole")["Resource"]()
    put_attributes(made.attributes, json_values.attributes(resource.get("attributes")))
    return bytes(made.SerializeToString())


def encode_scope(scope: Mapping[str, Json]) -> bytes:
    """Encode an ``InstrumentationScope``: its name and version."""
    made: Any = classes("whole")["Scope"]()
    made.name, made.version = utf8(text(scope.get("name"))), utf8(text(scope.get("version")))
    return bytes(made.SerializeToString())


def encode_span(span: Mapping[str, Json], trace_id: bytes, span_id: bytes) -> bytes:
    """Encode a ``Span`` with these ids; raises an exception of ``decode_json.UNREADABLE`` if a value cannot be read."""
    made: Any = classes("whole")["Span"](trace_id=trace_id, span_id=span_id)
    made.trace_state, made.name = utf8(text(span.get("traceState"))), utf8(text(span.get("name")))
    made.parent_span_id = bytes.fromhex(json_values.identifier(span.get("parentSpanId"), 8) or "")
    made.kind = enum(span.get("kind"), KINDS)
    made.start, made.end = integer(span.get("startTimeUnixNano")), integer(span.get("endTimeUnixNano"))
    put_attributes(made.attributes, json_values.attributes(span.get("attributes")))
    made.dropped_attributes = min(max(integer(span.get("droppedAttributesCount")), 0), MOST_DROPPED)
    for event in objects(span.get("events")):
        added = made.events.add(name=utf8(text(event.get("name"))), time=integer(event.get("timeUnixNano")))
        put_attributes(added.attributes, json_values.attributes(event.get("attributes")))
    status = mapping(span.get("status"))
    made.status.code = enum(status.get("code"), STATUSES)
    made.status.message = utf8(text(status.get("message")))
    return bytes(made.SerializeToString())


def encode_log_record(record: Mapping[str, Json], trace_id: bytes, span_id: bytes) -> bytes:
    """Encode a ``LogRecord`` with these ids; raises likewise."""
    made: Any = classes("whole")["LogRecord"](trace_id=trace_id, span_id=span_id)
    made.time, made.observed = integer(record.get("timeUnixNano")), integer(record.get("observedTimeUnixNano"))
    made.event_name = utf8(text(record.get("eventName")))
    _put(made.body, json_values.any_value(record.get("body")))
    put_attributes(made.attributes, json_values.attributes(record.get("attributes")))
    return bytes(made.SerializeToString())


def put_attributes(pairs: Any, found: Mapping[str, AttributeValue], depth: int = 0) -> None:
    """Add key-values to a message's list of them; levels beyond ``_DEEPEST`` are left empty."""
    for key, value in found.items():
        _put(pairs.add(key=utf8(key)).value, value, depth)


def _put(made: Any, value: AttributeValue, depth: int = 0) -> None:
    if isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, str):
        made.string_value = utf8(value)
    elif isinstance(value, bytes):
        made.bytes_value = value
    elif isinstance(value, int):
        if value in _INT64:
            made.int_value = value
        else:  # JSON has no bounds; a text keeps all digits
            made.string_value = str(value).encode()
    elif isinstance(value, float):
        made.double_value = value
    elif isinstance(value, list) and depth < _DEEPEST:
        made.array_value.SetInParent()
        for item in value:
            _put(made.array_value.values.add(), item, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        made.kvlist_value.SetInParent()
        put_attributes(made.kvlist_value.values, value, depth + 1)


def utf8(found: str) -> bytes:
    """Encode a text; half a surrogate pair becomes a question mark."""
    return found.encode("utf-8", "replace")

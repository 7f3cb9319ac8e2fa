"""Encode spans and log records in protobuf that did not come in it, because chunks are kept in one form.

Loose writing of OTLP/JSON is tolerated by ``json_values``; the result decodes to the same as the JSON does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json

from . import json_values
from .json_values import integer, text
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


def encode_span(span: RawSpan) -> bytes:
    """Encode a ``Span``, without its resource and scope."""
    made: Any = classes("whole")["Span"]()
    _put_span(made, span)
    return bytes(made.SerializeToString())


def encode_log_record(record: Mapping[str, Json], trace_id: bytes, span_id: bytes) -> bytes:
    """Encode a ``LogRecord`` with these ids; raises one of ``decode_json.UNREADABLE`` if a value cannot be read."""
    made: Any = classes("whole")["LogRecord"](trace_id=trace_id, span_id=span_id)
    made.time, made.observed = integer(record.get("timeUnixNano")), integer(record.get("observedTimeUnixNano"))
    made.event_name = utf8(text(record.get("eventName")))
    _put_value(made.body, json_values.any_value(record.get("body")))
    put_attributes(made.attributes, json_values.attributes(record.get("attributes")))
    return bytes(made.SerializeToString())


def put_attributes(pairs: Any, found: Mapping[str, AttributeValue], depth: int = 0) -> None:
    """Add key-values to a message's list of them; levels beyond ``_DEEPEST`` are left empty."""
    for key, value in found.items():
        _put_value(pairs.add(key=utf8(key)).value, value, depth)


def _put_value(made: Any, value: AttributeValue, depth: int = 0) -> None:
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
            _put_value(made.array_value.values.add(), item, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        made.kvlist_value.SetInParent()
        put_attributes(made.kvlist_value.values, value, depth + 1)


def utf8(found: str) -> bytes:
    """Encode a text; half a surrogate pair becomes a question mark."""
    return found.encode("utf-8", "replace")


def encode_spans(spans: Iterable[RawSpan]) -> bytes:
    """Build a request that decodes to these spans.

    Values that OTLP has no type for become text; those nested deeper than 30 levels are left out. Consecutive spans of
    the same resource and scope share them in the request.
    """
    request: Any = classes("whole")["Request"]()
    before: RawSpan | None = None
    group: Any = None
    scope: Any = None
    for span in spans:
        same = before is not None and before.resource == span.resource
        if not same:
            group = request.resource_spans.add()
            put_attributes(group.resource.attributes, span.resource)
        scoped = (span.scope_name, span.scope_version)
        if not same or before is None or (before.scope_name, before.scope_version) != scoped:
            scope = group.scope_spans.add()
            scope.scope.name, scope.scope.version = utf8(span.scope_name), utf8(span.scope_version)
        _put_span(scope.spans.add(), span)
        before = span
    return bytes(request.SerializeToString())


def _put_span(made: Any, span: RawSpan) -> None:
    made.trace_id, made.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    made.parent_span_id = bytes.fromhex(span.parent_id or "")
    made.trace_state, made.name = utf8(span.trace_state), utf8(span.name)
    made.kind, made.start, made.end = span.kind, span.start_ns, span.end_ns
    put_attributes(made.attributes, span.attributes)
    made.dropped_attributes = span.dropped_attributes
    for event in span.events:
        added = made.events.add(name=utf8(event.name), time=event.time_ns)
        put_attributes(added.attributes, event.attributes)
    made.status.code, made.status.message = span.status_code, utf8(span.status_message)

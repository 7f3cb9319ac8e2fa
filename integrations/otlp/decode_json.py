"""OTLP/JSON → raw spans: hex ids, integers as texts or numbers, unknown fields ignored, untidy clients forgiven."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator
from typing import Any

import orjson

from integrations.raw import AttributeValue, RawEvent, RawSpan

from .decode import NO_SPAN, NO_TRACE, Decoded, UndecodableError
from .values import MAX_DEPTH, number

_UINT64 = 1 << 64


def decode_json(payload: bytes) -> Decoded:
    """Read an ``ExportTraceServiceRequest`` in OTLP's JSON encoding. Raises ``UndecodableError`` when it is none."""
    request = load_object(payload)
    if "resourceSpans" not in request and request:
        raise UndecodableError("not an OTLP/JSON trace request: there is no resourceSpans")
    spans: list[RawSpan] = []
    skipped = 0
    for resource_spans in _objects(request.get("resourceSpans")):
        resource = _attributes(_object(resource_spans.get("resource")).get("attributes"))
        for scope_spans in _objects(resource_spans.get("scopeSpans")):
            scope = _object(scope_spans.get("scope"))
            for span in _objects(scope_spans.get("spans")):
                decoded = _span(span, scope, resource)
                if decoded is None:
                    skipped += 1
                else:
                    spans.append(decoded)
    return Decoded(spans, skipped)


def load_object(payload: bytes) -> dict[str, Any]:
    """The payload as a JSON object; what orjson refuses (NaN, lone surrogates, stray bytes) gets a second reading."""
    try:
        loaded = orjson.loads(payload)
    except orjson.JSONDecodeError:
        try:
            loaded = json.loads(_scrub(payload.decode("utf-8-sig", "replace")), parse_constant=str)
        except (ValueError, RecursionError) as error:
            raise UndecodableError(f"not JSON ({len(payload)} bytes): {error}") from error
    if not isinstance(loaded, dict):
        raise UndecodableError(f"not an OTLP/JSON request: the top is a {type(loaded).__name__}, not an object")
    return loaded


def _scrub(text: str) -> str:
    """Halves of surrogate pairs, which UTF-8 cannot hold, become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _span(span: dict[str, Any], scope: dict[str, Any], resource: dict[str, AttributeValue]) -> RawSpan | None:
    trace_id, span_id = _id(span.get("traceId"), 16), _id(span.get("spanId"), 8)
    if trace_id is None or span_id is None:
        return None
    status = _object(span.get("status"))
    return RawSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(span.get("parentSpanId"), 8),
        name=_text(span.get("name")),
        start_ns=_integer(span.get("startTimeUnixNano")),
        end_ns=_integer(span.get("endTimeUnixNano")),
        trace_state=_text(span.get("traceState")),
        kind=_enum(span.get("kind"), _KINDS),
        attributes=_attributes(span.get("attributes")),
        events=tuple(
            RawEvent(
                name=_text(event.get("name")),
                time_ns=_integer(event.get("timeUnixNano")),
                attributes=_attributes(event.get("attributes")),
            )
            for event in _objects(span.get("events"))
        ),
        status_code=_enum(status.get("code"), _STATUSES),
        status_message=_text(status.get("message")),
        scope_name=_text(scope.get("name")),
        scope_version=_text(scope.get("version")),
        resource=resource,
    )


_KIND_NAMES = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_KINDS = {f"SPAN_KIND_{name}": code for code, name in enumerate(_KIND_NAMES)}
_STATUSES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def _attributes(pairs: Any, depth: int = 0) -> dict[str, AttributeValue]:
    return {_text(pair.get("key")): _value(pair.get("value"), depth) for pair in _objects(pairs)}


def _value(value: Any, depth: int) -> AttributeValue:
    """An AnyValue: an object with one known key; an empty one, or one with keys we do not know, is None."""
    if not isinstance(value, dict):
        return value if isinstance(value, str | bool | int) else None
    if "stringValue" in value:
        return _text(value["stringValue"])
    if "boolValue" in value:
        return str(value["boolValue"]).lower() == "true"
    if "intValue" in value:
        return _int64(value["intValue"])
    if "doubleValue" in value:
        return _double(value["doubleValue"])
    if "bytesValue" in value:
        return _bytes(value["bytesValue"])
    if depth >= MAX_DEPTH:
        return None
    if "arrayValue" in value:
        return [_value(item, depth + 1) for item in _list(_object(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return dict(_attributes(_object(value["kvlistValue"]).get("values"), depth + 1))
    return None


def _id(value: Any, size: int) -> str | None:
    """Hex of the right length in lower case, or None; all zeros are no id."""
    if not isinstance(value, str) or len(value) != 2 * size:
        return None
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        return None
    return None if len(raw) != size or raw in {NO_TRACE, NO_SPAN} else raw.hex()


def _integer(value: Any) -> int:
    """A time: 64 bits, text or number; 0, as in protobuf, when it is absent or none."""
    found = _int64(value)
    return found if isinstance(found, int) and 0 <= found < _UINT64 else 0


def _int64(value: Any) -> int | str | None:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, int) or value is None:
        return value
    try:
        return int(str(value)[:32])
    except ValueError:
        return _text(value)


def _double(value: Any) -> float | str | None:
    if value is None:
        return None
    try:
        return number(float(value))
    except (ValueError, TypeError, OverflowError):
        return _text(value)


def _bytes(value: Any) -> AttributeValue:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error:
        return _text(value)


def _enum(value: Any, names: dict[str, int]) -> int:
    found = names.get(value, value) if isinstance(value, str) else value
    found = _int64(found)
    return found if isinstance(found, int) and 0 <= found < 1 << 31 else 0


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value if value.isascii() else _scrub(value)
    return "" if value is None else str(value)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in _list(value) if isinstance(item, dict))

"""Decode OTLP/JSON into raw spans and log records: ids in hex, integers as texts or numbers, unknown fields ignored.

A parser in C blocks every other thread until it ends: with a million keys, for seconds on a busy machine. So a body of
many values is cut where its spans (or log records) begin and end; each piece is parsed by itself and put in its place.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Iterator
from typing import Final

import orjson

from sidejudge.integrations.raw import AttributeValue, RawEvent, RawLogRecord, RawSpan
from sidejudge.scoring.trace.span import Json

from .decode import Decoded, UndecodableError, event_named
from .json_values import any_value, attributes, enum, identifier, integer, mapping, objects, scrub, text

UNREADABLE: Final = (ValueError, TypeError, OverflowError, RecursionError)
"""Errors of a value that cannot be read: a truth value as a time, base64 that is not ASCII, a text nested too far."""
_LENIENT: Final = 4 << 20
"""The longest text, in bytes, that is read leniently if not quite JSON: that takes twelve times its size."""
_DIGITS: Final = 1000
"""Digits of an integer that is still read as a number; Python itself refuses 4,300."""


def decode_json(payload: bytes) -> Decoded:
    """Read an ``ExportTraceServiceRequest`` in OTLP's JSON encoding; spans that cannot be read are left out.

    Raises ``UndecodableError`` when it is no such request.
    """
    request = load_object(payload)
    if "resourceSpans" not in request and request:
        raise UndecodableError("not an OTLP/JSON trace request: there is no resourceSpans")
    spans: list[RawSpan] = []
    skipped = 0
    for resource_spans in objects(request.get("resourceSpans")):
        try:
            resource = attributes(mapping(resource_spans.get("resource")).get("attributes"))
        except UNREADABLE as error:
            raise UndecodableError(f"a resource cannot be read ({type(error).__name__})") from None
        for scope_spans in objects(resource_spans.get("scopeSpans")):
            scope = mapping(scope_spans.get("scope"))
            for span in objects(scope_spans.get("spans")):
                try:
                    ids = ids_of(span)
                    decoded = None if ids is None else read_json_span(span, ids, scope, resource)
                except UNREADABLE:
                    decoded = None
                if decoded is None:
                    skipped += 1
                else:
                    spans.append(decoded)
    return Decoded(spans, skipped)


def load_object(payload: bytes) -> dict[str, Json]:
    """Parse a JSON object, as leniently as ``load_value``."""
    return _object(load_value(payload))


def _object(loaded: Json) -> dict[str, Json]:
    if not isinstance(loaded, dict):
        raise UndecodableError(f"not an OTLP/JSON request: the top is a {type(loaded).__name__}, not an object")
    return loaded


def load_value(payload: bytes) -> Json:
    """Parse JSON; what orjson refuses (NaN, lone surrogates, stray bytes) is parsed leniently."""
    try:
        loaded: Json = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        if len(payload) > _LENIENT:
            raise UndecodableError(f"not JSON ({len(payload)} bytes): {error}") from error
        try:
            loaded = json.loads(scrub(payload.decode("utf-8-sig", "replace")), parse_constant=str, parse_int=_whole)
        except (ValueError, RecursionError) as error:
            raise UndecodableError(f"not JSON ({len(payload)} bytes): {error}") from error
    return loaded


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _DIGITS else digits


def ids_of(span: dict[str, Json]) -> tuple[str, str] | None:
    """The ids of a span's trace and of itself, in hex; None where one of them is not valid."""
    trace_id, span_id = identifier(span.get("traceId"), 16), identifier(span.get("spanId"), 8)
    return None if trace_id is None or span_id is None else (trace_id, span_id)


def read_json_span(
    span: dict[str, Json], ids: tuple[str, str], scope: dict[str, Json], resource: dict[str, AttributeValue]
) -> RawSpan:
    """A span in OTLP's JSON encoding; raises one of ``UNREADABLE`` for one that cannot be read."""
    status = mapping(span.get("status"))
    return RawSpan(
        trace_id=ids[0],
        span_id=ids[1],
        parent_id=identifier(span.get("parentSpanId"), 8),
        name=text(span.get("name")),
        start_ns=integer(span.get("startTimeUnixNano")),
        end_ns=integer(span.get("endTimeUnixNano")),
        trace_state=text(span.get("traceState")),
        kind=enum(span.get("kind"), _KINDS),
        attributes=attributes(span.get("attributes")),
        events=tuple(
            RawEvent(
                name=text(event.get("name")),
                time_ns=integer(event.get("timeUnixNano")),
                attributes=attributes(event.get("attributes")),
            )
            for event in objects(span.get("events"))
        ),
        status_code=enum(status.get("code"), _STATUSES),
        status_message=text(status.get("message")),
        scope_name=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        dropped_attributes=min(max(integer(span.get("droppedAttributesCount")), 0), _MOST_DROPPED),
        resource=resource,
    )


_MOST_DROPPED = 2**31 - 1
"""The largest count of dropped attributes: the most that both encodings hold."""
_KIND_NAMES = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_KINDS = {f"SPAN_KIND_{name}": code for code, name in enumerate(_KIND_NAMES)}
_STATUSES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


MOST_VALUES: Final = 50_000
"""Values of one span or record: some 20 ms of parsing."""
MOST_AROUND: Final = 150_000
"""Values of all that stands around them, the resources and scopes of a whole request: three times as long."""
_SPAN_DEPTH: Final = 7
"""Objects and lists that a span or a log record stands in, with itself."""
_STRUCTURE: Final = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+"){0,1000}+([{}\[\]])?+', re.DOTALL)
"""Whatever comes before a brace or bracket, and that. Of many texts in a row some are taken at a time."""


def load_pieces(body: bytes) -> dict[str, Json]:
    """What ``load_object`` returns. Raises ``UndecodableError`` as well where one piece holds too many values."""
    mark = secrets.token_hex(8)  # nobody who writes a body knows it
    skeleton: list[bytes] = []
    pieces: list[Json] = []
    at = 0
    for begin, end in _cuts(body):
        skeleton += (body[at:begin], b'{"%s":%d}' % (mark.encode(), len(pieces)))
        pieces.append(_loaded(body[begin:end], MOST_VALUES, "a span, a record or a resource"))
        at = end
    skeleton.append(body[at:])
    request = _loaded(b"".join(skeleton), MOST_AROUND + 2 * len(pieces), "the request, beside its spans and records,")
    return {key: _joined(value, mark, pieces) for key, value in _object(request).items()}


def _cuts(body: bytes) -> Iterator[tuple[int, int]]:
    """Where each object or list of that depth begins and ends."""
    depth = begin = 0
    for match in _STRUCTURE.finditer(body):
        if (found := match[1]) is None:
            continue
        if found in b"{[":
            depth += 1
            if depth == _SPAN_DEPTH:
                begin = match.start(1)
        else:
            if depth == _SPAN_DEPTH:
                yield begin, match.end(1)
            depth -= 1


def _loaded(piece: bytes, most: int, what: str) -> Json:
    if piece.count(b",") + piece.count(b"{") + piece.count(b"[") > most:
        raise UndecodableError(f"{what} holds more than {most} values; send smaller batches")
    return load_value(piece)


def _joined(value: Json, mark: str, pieces: list[Json]) -> Json:
    """The value with each mark replaced by its piece."""
    if isinstance(value, list):
        return [_joined(each, mark, pieces) for each in value]
    if not isinstance(value, dict):
        return value
    number = value.get(mark)
    if isinstance(number, int):
        return pieces[number]
    return {key: _joined(each, mark, pieces) for key, each in value.items()}


def decode_logs_json(payload: bytes) -> list[RawLogRecord]:
    """Read an ``ExportLogsServiceRequest`` in OTLP's JSON encoding; records that cannot be read are left out.

    Raises ``UndecodableError`` when it is no such request.
    """
    request = load_object(payload)
    if "resourceLogs" not in request and request:
        raise UndecodableError("not an OTLP/JSON logs request: there is no resourceLogs")
    found: list[RawLogRecord] = []
    for resource in objects(request.get("resourceLogs")):
        for scope in objects(resource.get("scopeLogs")):
            for record in objects(scope.get("logRecords")):
                with contextlib.suppress(*UNREADABLE):
                    found.append(read_json_record(record))
    return found


def read_json_record(record: dict[str, Json]) -> RawLogRecord:
    """A record in OTLP's JSON encoding; raises one of ``UNREADABLE`` for one that cannot be read."""
    found = attributes(record.get("attributes"))
    return RawLogRecord(
        trace_id=identifier(record.get("traceId"), 16),
        span_id=identifier(record.get("spanId"), 8),
        time_ns=integer(record.get("timeUnixNano")) or integer(record.get("observedTimeUnixNano")),
        event=text(record.get("eventName")) or event_named(found),
        body=any_value(record.get("body")),
        attributes=found,
    )

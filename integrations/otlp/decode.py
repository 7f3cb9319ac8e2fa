"""Export request → raw spans. Lenient towards what clients do to texts and values, strict towards damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from integrations.raw import AttributeValue, RawEvent, RawSpan

from .schema import opaque_classes, request_class
from .values import attributes, opaque_attributes, text

NO_TRACE, NO_SPAN = bytes(16), bytes(8)
"""All-zero ids are invalid (OpenTelemetry trace API): a span under one belongs nowhere."""


class UndecodableError(ValueError):
    """The bytes are not an export request: cut short, damaged, or something else altogether."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The spans of a request and how many were left out because their trace or span id is not valid."""

    spans: list[RawSpan]
    skipped: int = 0


def decode_spans(payload: bytes) -> list[RawSpan]:
    """Spans of a protobuf ``ExportTraceServiceRequest``, those with invalid ids left out (see ``decode``)."""
    return decode(payload).spans


def decode(payload: bytes) -> Decoded:
    """Read a protobuf ``ExportTraceServiceRequest``. Raises ``UndecodableError`` when it is none.

    Invalid UTF-8 becomes U+FFFD; NaN and infinities become their names; absent values become None.
    """
    request: Any = request_class()()
    try:
        request.ParseFromString(payload)
    except DecodeError:
        return _decode_deep(payload)
    return _walk(request, attributes)


def _decode_deep(payload: bytes) -> Decoded:
    """Second try, each value on its own: one value nested beyond protobuf's limit must not cost the request."""
    request: Any = opaque_classes()["Request"]()
    try:
        request.ParseFromString(payload)
    except DecodeError as error:
        raise UndecodableError(
            f"not an OTLP trace request, or a damaged one ({len(payload)} bytes of protobuf)"
        ) from error
    return _walk(request, opaque_attributes)


def _walk(request: Any, read: Callable[[Iterable[Any]], dict[str, AttributeValue]]) -> Decoded:
    spans: list[RawSpan] = []
    skipped = 0
    for resource_spans in request.resource_spans:
        resource = read(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope, version = text(scope_spans.scope.name), text(scope_spans.scope.version)
            for span in scope_spans.spans:
                trace_id, span_id = span.trace_id, span.span_id
                if len(trace_id) != 16 or len(span_id) != 8 or trace_id == NO_TRACE or span_id == NO_SPAN:
                    skipped += 1
                    continue
                parent = span.parent_span_id
                status = span.status
                spans.append(
                    RawSpan(
                        trace_id=trace_id.hex(),
                        span_id=span_id.hex(),
                        parent_id=parent.hex() if parent and parent != NO_SPAN else None,
                        name=span.name.decode("utf-8", "replace"),
                        start_ns=span.start,
                        end_ns=span.end,
                        trace_state=text(span.trace_state),
                        kind=span.kind,
                        attributes=read(span.attributes),
                        events=tuple(
                            RawEvent(name=text(event.name), time_ns=event.time, attributes=read(event.attributes))
                            for event in span.events
                        ),
                        status_code=status.code,
                        status_message=text(status.message),
                        scope_name=scope,
                        scope_version=version,
                        resource=resource,
                    )
                )
    return Decoded(spans, skipped)

"""OTLP requests for tests, made with the official generated classes: an independent view of the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

HIGH = b"\xff" * 9
"""The tail of a trace id that every rate keeps."""
LOW = b"\x01" + bytes(8)
"""The tail of a trace id that only rate 1 keeps."""


@dataclass(frozen=True, kw_only=True)
class S:
    """A span to be sent."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes = b""
    trace_state: str = ""
    name: str = "step"
    service: str = "shop"
    start_ns: int = 1_000
    end_ns: int = 2_000
    attributes: Mapping[str, str | bool | int] = field(default_factory=dict)


def trace(number: int, tail: bytes = HIGH) -> bytes:
    """A trace id: its last nine bytes decide whether it is drawn."""
    return number.to_bytes(7, "big") + tail


def span(number: int) -> bytes:
    """A span id."""
    return number.to_bytes(8, "big")


def request(spans: Iterable[S], resource: Mapping[str, str] | None = None) -> bytes:
    """One request, a ``ResourceSpans`` for each run of spans of one service."""
    message = ExportTraceServiceRequest()
    service = None
    for s in spans:
        if s.service != service or not message.resource_spans:
            service = s.service
            resource_spans = message.resource_spans.add(schema_url="urn:resource")
            for key, value in {"service.name": service, **(resource or {})}.items():
                resource_spans.resource.attributes.add(key=key).value.string_value = value
            scope_spans = resource_spans.scope_spans.add(schema_url="urn:scope")
            scope_spans.scope.name, scope_spans.scope.version = "tests", "1.0"
        made = scope_spans.spans.add(
            trace_id=s.trace_id, span_id=s.span_id, parent_span_id=s.parent_id, trace_state=s.trace_state, name=s.name,
            start_time_unix_nano=s.start_ns, end_time_unix_nano=s.end_ns,
        )  # fmt: skip
        for key, value in s.attributes.items():
            attribute = made.attributes.add(key=key)
            if isinstance(value, bool):
                attribute.value.bool_value = value
            elif isinstance(value, int):
                attribute.value.int_value = value
            else:
                attribute.value.string_value = value
    return message.SerializeToString()

"""A collector: what an OTLP/HTTP receiver was sent, read with the official generated classes."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from tests.fakes.receiver import Got


@dataclass(frozen=True)
class Sent:
    """A span or a log record: the message, its attributes and where it stood."""

    message: Any
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    scope: str

    @property
    def name(self) -> str:
        return str(getattr(self.message, "event_name", None) or self.message.name)

    @property
    def trace_id(self) -> str:
        return str(self.message.trace_id.hex())

    @property
    def span_id(self) -> str:
        return str(self.message.span_id.hex())


def spans(got: Iterable[Got]) -> list[Sent]:
    """All spans that came to /v1/traces, in order of arrival."""
    return [span for each in got if each.path.endswith("/v1/traces") for span in spans_of(body_of(each))]


def spans_of(body: bytes) -> Iterator[Sent]:
    for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield Sent(span, attributes(span.attributes), resource, scope_spans.scope.name)


def events(got: Iterable[Got]) -> list[Sent]:
    """All log records that came to /v1/logs, in order of arrival."""
    found = []
    for each in got:
        if not each.path.endswith("/v1/logs"):
            continue
        for resource_logs in ExportLogsServiceRequest.FromString(body_of(each)).resource_logs:
            resource = attributes(resource_logs.resource.attributes)
            found += [
                Sent(record, attributes(record.attributes), resource, scope_logs.scope.name)
                for scope_logs in resource_logs.scope_logs
                for record in scope_logs.log_records
            ]
    return found


def body_of(got: Got) -> bytes:
    return gzip.decompress(got.body) if got.headers.get("content-encoding") == "gzip" else got.body


def attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None

"""A monitor's own spans and events are passed over as they come in, in either encoding, whoever sends them back."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.request import identify, split
from sidejudge.integrations.otlp.wire.request_json import split_json
from sidejudge.integrations.otlp.wire.request_logs import split_logs, split_logs_json
from tests.otlp_requests import LOW, span, trace

PLACES = [("shop", "app"), ("sidejudge", "app"), ("renamed", "sidejudge.judge"), ("shop", "sidejudge.judges")]
"""Services and scopes; the second and the third are a monitor's own."""


def admit(resource: bytes) -> ChunkOrigin:
    return ChunkOrigin(*identify(resource), 0)


def spans_as_protobuf() -> bytes:
    message = ExportTraceServiceRequest()
    for number, (service, scope) in enumerate(PLACES, 1):
        resource_spans = message.resource_spans.add()
        resource_spans.resource.attributes.add(key="service.name").value.string_value = service
        made = resource_spans.scope_spans.add()
        made.scope.name = scope
        for tail in (b"\xff" * 9, LOW):
            made.spans.add(trace_id=trace(number, tail), span_id=span(1), name="step")
    return message.SerializeToString()


def spans_as_json() -> bytes:
    return json.dumps({"resourceSpans": [
        {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
         "scopeSpans": [{"scope": {"name": scope}, "spans": [
             {"traceId": trace(number, tail).hex(), "spanId": span(1).hex(), "name": "step"}
             for tail in (b"\xff" * 9, LOW)]}]}
        for number, (service, scope) in enumerate(PLACES, 1)]}).encode()  # fmt: skip


@pytest.mark.parametrize(("write", "read"), [(spans_as_protobuf, split), (spans_as_json, split_json)])
def test_own_spans_are_counted_and_neither_kept_nor_drawn(write, read):
    found = read(write(), admit)
    kept = {chunk.trace_id for chunk in found.chunks}
    assert kept == {trace(number, tail) for number in (1, 4) for tail in (b"\xff" * 9, LOW)}
    assert (found.spans, found.kept, found.own, found.rejected, found.dropped) == (8, 4, 4, 0, {})
    assert {origin.service: ids for origin, ids in found.own_traces.items()} == {
        "sidejudge": {trace(2), trace(2, LOW)},
        "renamed": {trace(3), trace(3, LOW)},
    }


def test_own_spans_are_told_where_the_resource_comes_last_and_where_they_are_damaged():
    message = ExportTraceServiceRequest()
    made = message.resource_spans.add().scope_spans.add()
    made.scope.name = "sidejudge.judge"
    made.spans.add(trace_id=trace(1), span_id=span(1))
    made.spans.add(trace_id=b"short", span_id=span(2))
    found = split(message.SerializeToString(), admit)
    assert (found.spans, found.own, found.chunks) == (2, 2, [])
    assert list(found.own_traces.values()) == [{trace(1)}]


def test_a_damaged_scope_that_only_holds_the_name_is_nobodys_own():
    message = ExportTraceServiceRequest()
    made = message.resource_spans.add().scope_spans.add()
    made.scope.name = "app"
    made.scope.attributes.add(key="note").value.string_value = "sidejudge.judge"
    made.spans.add(trace_id=trace(1), span_id=span(1))
    assert split(message.SerializeToString(), admit).own == 0


def records_as_protobuf() -> bytes:
    message = ExportLogsServiceRequest()
    for number, (service, scope) in enumerate(PLACES, 1):
        resource_logs = message.resource_logs.add()
        resource_logs.resource.attributes.add(key="service.name").value.string_value = service
        made = resource_logs.scope_logs.add()
        made.scope.name = scope
        made.log_records.add(trace_id=trace(number), span_id=span(1), event_name="gen_ai.evaluation.result")
    return message.SerializeToString()


def records_as_json() -> bytes:
    return json.dumps({"resourceLogs": [
        {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
         "scopeLogs": [{"scope": {"name": scope}, "logRecords": [
             {"traceId": trace(number).hex(), "spanId": span(1).hex(), "eventName": "gen_ai.evaluation.result"}]}]}
        for number, (service, scope) in enumerate(PLACES, 1)]}).encode()  # fmt: skip


@pytest.mark.parametrize(("write", "read"), [(records_as_protobuf, split_logs), (records_as_json, split_logs_json)])
def test_own_events_do_not_extend_the_trace_that_they_speak_of(write, read):
    found = read(write(), admit)
    assert {chunk.trace_id for chunk in found.chunks} == {trace(1), trace(4)}
    assert (found.records, found.kept, found.own, found.dropped) == (4, 2, 2, 0)

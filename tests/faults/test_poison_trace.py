"""A trace with far more spans than any application sends is judged as cut short, and memory stays bounded."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.otlp_requests import span, trace

ROUTES = [{"rubrics": ["workflow"], "scenario": "any"}]


def minimal(first: int, count: int) -> bytes:
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for n in range(first, first + count):
        scope.spans.add(trace_id=trace(1), span_id=span(n))
    return message.SerializeToString()


def peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10


def test_four_hundred_thousand_spans_of_one_trace_are_judged_as_cut_short_within_the_memory_of_the_chart(serving):
    monitor = serving(anew=True, routes=ROUTES, scenarios={"any": {"max_seconds": 10**9}})
    for first in range(1, 400_001, 20_000):
        assert monitor.post(minimal(first, 20_000)).status_code == 200
    outcomes = monitor.settled(1)
    assert outcomes["seen"] == sum(outcomes["ended"].values()) == 1
    story = monitor.get(f"/v1/traces/{trace(1).hex()}")
    assert (story["completion"], story["spans"]) == ("pressure", 10_000)
    assert peak(monitor.process.pid) < 384 << 20

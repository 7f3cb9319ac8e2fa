"""Several monitors behind routing by trace id need no coordination; a monitor that is killed resumes half a trace."""

from __future__ import annotations

import random
import signal
import time
from zlib import crc32

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.demo.traffic import SampleTraffic

ROUTES = [
    {"match": {"service": "research-assistant"}, "rubrics": ["workflow"], "scenario": "policy"},
    {"match": {"metadata.task": "qa"}, "rubrics": ["qa"]},
    {"match": {"metadata.task": "entity"}, "rubrics": ["entity"]},
]
SCENARIOS = {"policy": {"agents_should_include": ["research"], "tools_should_include": ["pdf_retrieval"]}}
CONFIG = {"routes": ROUTES, "scenarios": SCENARIOS, "assembly": {"grace": "300ms", "idle": "3s"}}


def parts(body: bytes, size: int) -> list[tuple[bytes, bytes]]:
    """A trace's request in parts of a few spans, the root last, as a batching exporter sends them: (trace id, part)."""
    request = ExportTraceServiceRequest.FromString(body)
    spans = [
        (resource.resource, scope.scope, span)
        for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]  # fmt: skip
    spans.sort(key=lambda each: not each[2].parent_span_id)
    found = []
    for at in range(0, len(spans), size):
        part = ExportTraceServiceRequest()
        for resource, scope, span in spans[at : at + size]:
            into = part.resource_spans.add(resource=resource)
            into.scope_spans.add(scope=scope).spans.append(span)
        found.append((spans[0][2].trace_id, part.SerializeToString()))
    return found


def traffic(count: int, size: int, seed: int = 3, now_ns: int | None = None) -> list[tuple[bytes, bytes]]:
    made = SampleTraffic(seed)
    return [part for _ in range(count) for part in parts(made.next(now_ns or time.time_ns(), wrong=0.3).body, size)]


def stated(monitor) -> dict[tuple[str, str], tuple[object, ...]]:
    """What matters of each verdict."""
    return {
        (v["trace_id"], v["rubric"]): (v["passed"], v["composite"], v["state"], v["reason"], v["sampling_probability"])
        for v in monitor.verdicts()
    }


def test_two_monitors_behind_routing_by_trace_id_say_together_what_one_alone_says(serving):
    config = {**CONFIG, "sampling": {"rate": 0.6}}
    alone, left, right = serving(**config), serving(**config), serving(**config)
    sent = traffic(40, 3)
    for trace_id, part in sent:
        assert alone.post(part).status_code == 200
        assert (left, right)[crc32(trace_id) % 2].post(part).status_code == 200
    traces = len({trace_id for trace_id, _ in sent})
    assert alone.settled(traces)["seen"] == traces
    for monitor in (left, right):
        monitor.until(lambda monitor=monitor: monitor.outcomes()["open"] == 0, "traces stayed open")
    assert left.outcomes()["seen"] + right.outcomes()["seen"] == traces
    one, other = stated(left), stated(right)
    assert one
    assert other
    assert not one.keys() & other.keys()
    assert one | other == stated(alone)
    assert all(monitor.get("/v1/status")["suspicions"] == [] for monitor in (alone, left, right))


def test_a_misrouted_fleet_is_told_so_by_each_of_its_monitors(serving):
    config = {**CONFIG, "sampling": {"rate": 1.0}, "assembly": {"grace": "100ms", "idle": "500ms", "idle_max": "500ms"}}
    monitors = [serving(**config), serving(**config)]
    draw = random.Random(1)
    for _, part in traffic(260, 3):
        assert draw.choice(monitors).post(part).status_code == 200

    def reported(monitor) -> list[dict]:
        return [s for s in monitor.get("/v1/status")["suspicions"] if s["kind"] == "split_traces"]

    for monitor in monitors:
        monitor.until(lambda monitor=monitor: bool(reported(monitor)), "it was not found")
        assert "route by trace id" in reported(monitor)[0]["remedy"]
        metrics = monitor.http.get(monitor.api + "/metrics").text
        assert 'sidejudge_traffic_suspected{kind="split_traces"} 1.0' in metrics
        assert 'sidejudge_traffic_suspected{kind="skewed_sampling"} 0.0' in metrics


def test_killed_in_the_middle_of_a_trace_it_waits_for_the_other_half_and_judges_the_whole(serving):
    monitor = serving(**{**CONFIG, "assembly": {"grace": "300ms", "idle": "60s"}})
    made = SampleTraffic(3)
    bodies = [made.next(time.time_ns(), wrong=0.3).body for _ in range(30)]
    halves = [parts(body, 1) for body in bodies]
    halves = [each for each in halves if len(each) > 1]
    for each in halves:
        for _, part in each[: len(each) // 2]:
            assert monitor.post(part).status_code == 200
    assert monitor.stop(signal.SIGKILL) == -signal.SIGKILL
    monitor.start()
    assert monitor.outcomes()["open"] == len(halves)
    for each in halves:
        for _, part in each[len(each) // 2 - 1 :]:  # the last before the kill was not answered, and is sent again
            assert monitor.post(part).status_code == 200
    monitor.settled(len(halves))
    resumed = stated(monitor)

    whole = serving(**CONFIG)
    for each in halves:
        for _, part in each:
            whole.post(part)
    whole.settled(len(halves))
    assert resumed == stated(whole)
    assert {verdict["revision"] for verdict in monitor.verdicts()} == {1}


def test_a_session_outlives_the_death_of_its_monitor(serving):
    sessions = {"idle": "3s", "routes": [{"rubrics": ["dimensions"]}], "sampling_rate": 1.0}
    monitor = serving(**{**CONFIG, "sessions": sessions})

    def turn(number: int) -> bytes:
        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = "shop"
        span = resource.scope_spans.add().spans.add(
            trace_id=random.randbytes(16), span_id=b"12345678", name="turn",
            start_time_unix_nano=number, end_time_unix_nano=number + 1,
        )  # fmt: skip
        for key, value in {"session.id": "chat", "langfuse.observation.output": f"answer {number}"}.items():
            span.attributes.add(key=key).value.string_value = value
        return request.SerializeToString()

    monitor.post(turn(1))
    monitor.settled(1)
    assert monitor.stop(signal.SIGKILL) == -signal.SIGKILL
    monitor.start()
    monitor.post(turn(2))
    monitor.until(lambda: any(v["trace_id"] is None for v in monitor.verdicts()), "the session was not judged")
    (verdict,) = [v for v in monitor.verdicts() if v["trace_id"] is None]
    story = monitor.get(f"/v1/traces/{verdict['case_id']}")
    assert (story["kind"], story["session_id"]) == ("session", "chat")
    monitor.until(lambda: monitor.get(f"/v1/traces/{verdict['case_id']}")["turns"] == 2, "a turn was lost")

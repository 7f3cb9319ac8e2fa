"""The promise: what was acknowledged and sampled gets its verdict, and none twice, whatever happens to the process."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.demo.traffic import SampleTraffic

ROUTES = [
    {"match": {"service": "research-assistant"}, "rubrics": ["workflow"], "scenario": "policy"},
    {"match": {"metadata.task": "qa"}, "rubrics": ["qa"]},
    {"match": {"metadata.task": "entity"}, "rubrics": ["entity"]},
]
SCENARIOS = {"policy": {"agents_should_include": ["research"], "tools_should_include": ["pdf_retrieval"]}}


def trace_id_of(body: bytes) -> str:
    request = ExportTraceServiceRequest.FromString(body)
    return request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()


def send_until(stop: threading.Event, url: str, acknowledged: list[str], seed: int) -> None:
    traffic = SampleTraffic(seed)
    with httpx.Client(timeout=5) as client:
        while not stop.is_set():
            sent = traffic.next(time.time_ns(), wrong=0.2)
            try:
                answer = client.post(url, content=sent.body, headers={"content-type": "application/x-protobuf"})
            except httpx.HTTPError:
                return
            if answer.status_code == 200:
                acknowledged.append(trace_id_of(sent.body))


def test_killed_in_the_middle_of_traffic_every_acknowledged_trace_gets_its_verdict_and_its_line_once(serving, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    monitor = serving(routes=ROUTES, scenarios=SCENARIOS, sinks={"jsonl": {"path": str(path)}})
    acknowledged: list[str] = []
    for round_ in range(3):
        stop = threading.Event()
        senders = [
            threading.Thread(target=send_until, args=(stop, monitor.otlp + "/v1/traces", acknowledged, 10 * round_ + n))
            for n in range(3)
        ]
        for sender in senders:
            sender.start()
        time.sleep(1.2)  # some traces are judged by now, some wait, some are on their way
        assert monitor.stop(signal.SIGKILL) == -signal.SIGKILL
        stop.set()
        for sender in senders:
            sender.join()
        monitor.start()

    monitor.until(lambda: monitor.outcomes()["open"] == 0, "traces stayed open after the restart")
    verdicts = monitor.verdicts()
    counted = Counter((verdict["trace_id"], verdict["rubric"]) for verdict in verdicts)
    assert len(acknowledged) > 50
    assert set(acknowledged) <= {trace_id for trace_id, _ in counted}
    assert set(counted.values()) == {1}
    assert {verdict["revision"] for verdict in verdicts} == {1}
    monitor.until(lambda: path.read_bytes().count(b"\n") >= len(verdicts), "verdicts are missing in the file")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert Counter((line["trace_id"], line["rubric"]) for line in lines) == counted


def test_ended_politely_in_the_middle_of_traffic_it_loses_nothing(serving):
    monitor = serving(routes=ROUTES, scenarios=SCENARIOS, assembly={"grace": "60s"})
    acknowledged: list[str] = []
    stop = threading.Event()
    sender = threading.Thread(target=send_until, args=(stop, monitor.otlp + "/v1/traces", acknowledged, 1))
    sender.start()
    monitor.until(lambda: len(acknowledged) >= 20, "nothing was acknowledged")
    assert monitor.verdicts() == []
    assert monitor.stop() == 0
    stop.set()
    sender.join()

    monitor.configure(assembly={"grace": "200ms"})
    monitor.start()
    monitor.until(lambda: monitor.outcomes()["open"] == 0, "traces stayed open after the restart")
    assert set(acknowledged) <= {verdict["trace_id"] for verdict in monitor.verdicts()}

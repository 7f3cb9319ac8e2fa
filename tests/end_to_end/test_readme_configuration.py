"""The README's configuration judges what a first application sends, and names the route that matches none of it."""

from __future__ import annotations

import time

import pytest
import yaml

from tests.docs.blocks import ROOT, blocks
from tests.forked import sidejudge
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

TRACES, FAILED = 24, 5


def application(service, now):
    """An agent that answers, some of whose runs end in an error, as the GenAI conventions have it."""
    for number in range(TRACES):
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
        asked = '[{"role": "user", "parts": [{"type": "text", "content": "Where is my parcel?"}]}]'
        said = '[{"role": "assistant", "parts": [{"type": "text", "content": "It is on its way."}]}]'
        ended = {"error.type": "TimeoutError"} if number < FAILED else {"gen_ai.output.messages": said}
        yield S(
            trace_id=trace(number), span_id=span(number + 1), name="invoke_agent support", service=service,
            start_ns=now - 10**9, end_ns=now, attributes={**about, "gen_ai.input.messages": asked, **ended},
        )  # fmt: skip


@pytest.fixture
def configuration():
    found = [each for each in blocks(ROOT / "README.md") if each.title == "sidejudge.yaml"]
    assert len(found) == 1
    return yaml.safe_load(found[0].text)


def test_it_judges_every_run_of_a_first_application_and_names_the_route_that_matches_none(configuration, tmp_path):
    monitor = Running(tmp_path, configuration).start()
    try:
        monitor.post(request(application("invoice-helper", time.time_ns())))
        monitor.settled(TRACES)
        verdicts = monitor.verdicts(rubric="run_health")
        assert [len(verdicts), sum(verdict["passed"] is False for verdict in verdicts)] == [TRACES, FAILED]
        (anomaly,) = (each for each in monitor.get("/v1/status")["anomalies"] if each["kind"] == "silent_routes")
        assert anomaly["cause"] == (
            f"routes[0] (service: support-*) matched 0 of {TRACES} traces; service seen: 'invoice-helper' ({TRACES})"
        )
        assert "matched 0 of 24 traces" in monitor.http.get(monitor.api + "/").text
        assert "matched 0 of 24 traces" in sidejudge("doctor", "--config", str(monitor.config)).stdout
        assert "matched 0 of 24 traces" in sidejudge("check", str(monitor.config)).stderr
        monitor.until(lambda: "matched 0 of 24 traces" in monitor.log(), "the log does not name the route")
    finally:
        monitor.close()


def test_its_contract_judges_a_service_that_it_is_for(configuration, tmp_path):
    monitor = Running(tmp_path, configuration).start()
    try:
        monitor.post(request(application("support-desk", time.time_ns())))
        monitor.settled(TRACES)
        verdicts = monitor.verdicts(rubric="workflow")
        assert [verdict["passed"] for verdict in verdicts] == [False] * TRACES, "no run looks the order up"
        assert "silent_routes" not in {each["kind"] for each in monitor.get("/v1/status")["anomalies"]}
    finally:
        monitor.close()

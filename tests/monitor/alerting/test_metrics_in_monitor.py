"""Limits on what the application takes, in a whole monitor: on every surface, and after a restart."""

from __future__ import annotations

import asyncio
import time

from tests.otlp_requests import LOW, S, request, span, trace

CONFIG = {
    "routes": [{"rubrics": ["workflow"], "scenario": "any"}],
    "scenarios": {"any": {"tools_should_exclude": ["a_tool_that_nobody_has"]}},
    "alerts": {
        "look": "100ms", "hysteresis": {"needed": 1, "looks": 1, "hold": "0s"},
        "metrics": [
            {"metric": "latency_p50", "warning": "2s", "critical": "5s"},
            {"metric": "cost_p50", "warning": 0.5},
            {"metric": "latency_p50", "warning": "1h", "service": "desk"},
        ],
    },
}  # fmt: skip


def slow(first: int, count: int, seconds: float) -> bytes:
    now_ns, ran = time.time_ns(), {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}
    return request([
        S(
            trace_id=trace(n, LOW), span_id=span(1), attributes=ran,
            start_ns=now_ns - int((seconds + n / 1e4) * 1e9), end_ns=now_ns,
        ) for n in range(first, first + count)
    ])  # fmt: skip


async def shown(app):
    """The status as the API has it, once all traces are in what is shown: the answer is shared for a moment."""
    async with asyncio.timeout(30):
        while True:
            status = await app.get("/v1/status")
            known = {each["metric"]: each for each in status["metrics"]}
            if known.get("latency_p50", {}).get("n") == 80 and known["latency_p50"]["status"] == "warning":
                return status
            await asyncio.sleep(0.05)


async def test_a_slow_service_is_a_warning_on_every_surface_and_after_a_restart(started):
    app = await started(**CONFIG)
    await app.post(slow(1, 80, 3.0))
    await app.settled(80)

    status = await shown(app)
    limited = {each["metric"]: each for each in status["metrics"]}
    assert set(limited) == {"latency_p50", "cost_p50"}  # that of another service is not here
    slow_one, cost = limited["latency_p50"], limited["cost_p50"]
    assert (slow_one["service"], slow_one["rubric"], slow_one["unit"]) == ("shop", None, "seconds")
    assert slow_one["lower"] <= slow_one["value"] <= slow_one["upper"]
    assert 3.0 < slow_one["value"] < 3.1
    assert (slow_one["n"], slow_one["warning"], slow_one["worse"]) == (80, 2.0, "above")
    assert (cost["status"], cost["value"], cost["n"]) == ("insufficient_data", None, 0)
    assert status["status"] == "warning"
    (alert,) = [each for each in status["firing"] if each["condition"] == "metric_warning"]
    assert alert["labels"] == {"service": "shop", "environment": "unknown", "metric": "latency_p50"}
    page = (await app.http.get(app.api + "/")).text
    assert "Metrics with limits" in page
    text = (await app.http.get(app.api + "/metrics")).text
    where = 'environment="unknown",metric="latency_p50",rubric="",service="shop"'
    assert f'sidejudge_limited_metric_status{{{where},status="warning"}} 1.0' in text
    assert f"sidejudge_limited_metric_weight_total{{{where}}} 80.0" in text
    assert 'sidejudge_application_duration_seconds_count{environment="unknown",service="shop"} 80.0' in text
    compared = await app.get("/v1/compare?metric=latency_p50&since=2020-01-01T00:00:00Z&before=1h")
    assert "nothing on the side before" in compared["comparisons"][0]["unavailable"]

    await app.monitor.stop()
    again = await started(**CONFIG)
    (found,) = [each for each in (await shown(again))["metrics"] if each["metric"] == "latency_p50"]
    assert (found["n"], found["value"], found["since"]) == (80, slow_one["value"], slow_one["since"])

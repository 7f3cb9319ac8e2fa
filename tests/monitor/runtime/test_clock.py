"""A clock that jumps: whatever it shows, every question is answered."""

from __future__ import annotations

import time

import pytest

from tests.otlp_requests import LOW, S, request, span, trace

FAILING = {
    "routes": [{"rubrics": ["workflow"], "scenario": "never"}],
    "scenarios": {"never": {"tools_should_include": ["a_tool_that_nobody_has"]}},
}
RAN = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}
HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize(
    "jump_ns", [-2 * HOUR_NS, -30 * 24 * HOUR_NS, 60 * 24 * HOUR_NS], ids=["hours", "month", "ahead"]
)
async def test_every_path_answers_after_the_clock_was_set(started, jump_ns):
    later_ns = [0]
    app = await started(
        clock_ns=lambda: time.time_ns() + later_ns[0], **FAILING, alerts={"look": "1s", "min_samples": 5}
    )
    await app.post(request([S(trace_id=trace(n, LOW), span_id=span(1), attributes=RAN) for n in range(1, 21)]))
    await app.settled(20)
    described = await app.get("/openapi.json")
    paths = [path for path, methods in described["paths"].items() if "get" in methods and "{" not in path]
    assert "/v1/status" in paths
    later_ns[0] = jump_ns
    for path in [*paths, "/", "/verdicts", "/service?service=shop&rubric=workflow", "/v1/status"]:
        answer = await app.http.get(app.api + path)
        assert answer.status_code < 500 or path in ("/readyz", "/startupz"), (
            path,
            answer.status_code,
            answer.text[:500],
        )

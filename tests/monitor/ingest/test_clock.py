"""A clock that jumps: what comes is taken, and judged once, at the latest when the clock is right again."""

from __future__ import annotations

import pytest

from sidejudge.monitor.runtime.app import Monitor
from tests.otlp_requests import HIGH, S, request, span, trace

HOUR = 3600 * 10**9
MINUTE = 60 * 10**9
ASKED = {"langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow."}


@pytest.mark.parametrize("jumps", [(HOUR, -HOUR), (-HOUR, HOUR), (24 * HOUR, -48 * HOUR, 24 * HOUR)])
async def test_a_clock_that_jumps_costs_no_request_and_no_verdict(configured, jumps):
    now = 1_790_000_000_000_000_000
    judged_by = {"routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": {"any": {"max_seconds": 10**9}}}
    monitor = Monitor(configured(sampling={"rate": 1.0}, assembly={"grace": "1s"}, **judged_by), clock_ns=lambda: now)
    sent = 0

    async def judged() -> int:
        monitor.pipeline.waiting.extend(monitor.assembler.due(now))
        await monitor.pipeline.drain()
        return monitor.outcomes.balance().ended.get("scored", 0)

    try:
        for jump in (0, *jumps):
            now += jump
            for _ in range(3):
                sent += 1
                root = S(trace_id=trace(sent, HIGH), span_id=span(sent), attributes=ASKED)
                taken = await monitor.intake.consume(request([root]))
                assert not taken.rejected
            now += 1
            await judged()
        now += max(0, *(-sum(jumps[:n]) for n in range(len(jumps)))) + 48 * HOUR + MINUTE
        assert await judged() == sent, monitor.outcomes.balance()
        assert monitor.outcomes.open == 0
    finally:
        monitor.store.close()

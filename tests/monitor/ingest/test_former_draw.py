"""No trace is judged by its second half because the monitor was started anew in its middle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sidejudge.integrations.otlp.wire.tracestate import threshold
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.runtime.app import Monitor
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS, SECOND_NS
from tests.otlp_requests import S, request, span

SAYS = {"langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow."}
RARE, OFTEN = {"rate": 0.1}, {"rate": 1.0}


def drawn_from(share: float) -> bytes:
    """A trace id that rates above 1 - ``share`` keep."""
    return bytes(9) + threshold(1 - share).to_bytes(7, "big")


LOW, HIGH = drawn_from(0.5), drawn_from(0.95)


class Bench:
    """A monitor that is started anew with other configurations, on one store."""

    def __init__(self, configured: Any) -> None:
        self.configured, self.now = configured, 1_790_000_000 * SECOND_NS

    async def start(self, **sampling: float) -> None:
        config = self.configured(routes=[{"rubrics": ["answer"]}], sampling=sampling)
        self.monitor = Monitor(config, clock_ns=lambda: self.now)
        await self.monitor._restore()
        self.monitor.intake.restore()

    async def end(self) -> None:
        await self.monitor._remember()
        self.monitor.store.close()
        self.now += MINUTE_NS // 6

    async def take(self, trace_id: bytes, number: int, *, of: int = 0, began_s: float = 60.0) -> None:
        """A span comes that began so many seconds ago; ``of`` is the number of its parent."""
        one = S(
            trace_id=trace_id, span_id=span(number), parent_id=span(of) if of else b"", attributes=SAYS,
            start_ns=self.now - int(began_s * SECOND_NS), end_ns=self.now,
        )  # fmt: skip
        await self.monitor.intake.consume(request([one]))

    async def judged(self, trace_id: bytes) -> float | None:
        """The recorded probability; None: not judged."""
        self.now += HOUR_NS // 2
        self.monitor.pipeline.waiting.extend(self.monitor.assembler.due(self.now))
        await self.monitor.pipeline.drain()
        found = self.monitor.store.details(trace_id)
        return found["sampling"]["probability"] if found and found["verdicts"] else None


@pytest.fixture
def bench(configured: Any) -> Iterator[Bench]:
    one = Bench(configured)
    yield one
    one.monitor.store.close()


@pytest.mark.parametrize("restarts", [1, 2])
async def test_a_trace_that_was_passed_over_before_the_rate_was_raised_is_not_judged_by_its_rest(
    bench: Bench, restarts: int
) -> None:
    await bench.start(**RARE)
    await bench.take(LOW, 2, of=1)
    for _ in range(restarts):
        await bench.end()
        await bench.start(**OFTEN)
    await bench.take(LOW, 1)
    assert await bench.judged(LOW) is None
    assert bench.monitor.outcomes.balance().ended[EndReason.SAMPLED_OUT] == 1


async def test_one_whose_first_spans_were_kept_is_judged_with_the_probability_of_both_draws(bench: Bench) -> None:
    await bench.start(**RARE)
    await bench.take(HIGH, 2, of=1)
    await bench.end()
    await bench.start(**OFTEN)
    await bench.take(HIGH, 1)
    other = HIGH[:-1] + bytes([HIGH[-1] ^ 1])
    await bench.take(other, 1)
    assert await bench.judged(HIGH) == pytest.approx(0.1)
    assert bench.monitor.store.details(other)["sampling"]["probability"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("later_ns", "began_s"), [(MINUTE_NS, 59.0), (HOUR_NS, 86_400.0)], ids=["begins later", "a clock a day behind"]
)
async def test_what_begins_after_the_start_and_all_an_hour_later_is_drawn_at_the_new_rate(
    bench: Bench, later_ns: int, began_s: float
) -> None:
    await bench.start(**RARE)
    await bench.end()
    await bench.start(**OFTEN)
    bench.now += later_ns
    await bench.take(LOW, 1, began_s=began_s)
    assert await bench.judged(LOW) == 1.0


async def test_a_rate_that_follows_the_traffic_is_remembered(bench: Bench) -> None:
    await bench.start(traces_per_hour=1)
    for number in range(20):
        await bench.take(bytes([number]) + HIGH[1:], 1)
    await bench.take(LOW, 2, of=1)
    await bench.end()
    await bench.start(traces_per_hour=1)
    await bench.take(LOW, 1)
    assert await bench.judged(LOW) is None


async def test_a_rate_that_follows_the_traffic_goes_on_with_what_was_counted_in_the_last_hour(bench: Bench) -> None:
    await bench.start(traces_per_hour=5)
    for number in range(20):
        await bench.take(bytes([number]) + HIGH[1:], 1)
    rate = bench.monitor.sampling_rate()
    assert rate == pytest.approx(5 / 21)
    for _ in range(2):
        await bench.end()
        await bench.start(traces_per_hour=5)
        assert bench.monitor.sampling_rate() == rate
    await bench.end()
    bench.now -= HOUR_NS
    await bench.start(traces_per_hour=5)
    assert bench.monitor.sampling_rate() == 1.0, "of a time that has not come"

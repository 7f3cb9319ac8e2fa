"""What comes after a trace was judged and let go changes nothing that was said of it, a restart in between or not."""

from __future__ import annotations

import pytest

from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
from sidejudge.monitor.ingest.outcomes import EndReason, RecentIds
from sidejudge.monitor.runtime.app import Monitor
from tests.otlp_requests import S, request, span, trace

MINUTE = 60_000_000_000
CONFIG = {"assembly": {"grace": "1s", "late": "10m"}, "routes": [{"rubrics": ["answer"]}]}
SAID = {"langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow."}


class Bench:
    def __init__(self, config):
        self.config = config
        self.now = 1_790_000_000_000_000_000
        self.start()

    def start(self):
        self.monitor = Monitor(self.config, clock_ns=lambda: self.now)
        self.monitor.intake.restore()

    async def take(self, *spans: S):
        await self.monitor.intake.consume(request(spans))

    async def judge(self, after=MINUTE):
        self.now += after
        self.monitor.pipeline.waiting.extend(self.monitor.assembler.due(self.now))
        await self.monitor.pipeline.drain()

    async def judged_and_let_go(self):
        await self.take(S(trace_id=trace(1), span_id=span(1), attributes=SAID))
        await self.judge()
        self.now += 11 * MINUTE
        self.monitor.assembler.due(self.now)
        await self.monitor.retention.purge()
        assert self.monitor.store.chunks(trace(1)) == []

    def reported(self):
        return self.monitor.store.details(trace(1))

    def late(self, number=2):
        return S(trace_id=trace(1), span_id=span(number), parent_id=span(1), attributes=SAID)


@pytest.fixture
def bench(configured):
    one = Bench(configured(**CONFIG))
    yield one
    one.monitor.store.close()


async def test_after_a_restart_a_span_of_a_trace_that_was_let_go_is_too_late(bench):
    await bench.judged_and_let_go()
    before = bench.reported()
    bench.monitor.store.close()
    bench.start()
    await bench.take(bench.late())
    await bench.judge()
    assert bench.monitor.intake.counts.late == 1
    assert (bench.reported(), bench.monitor.outcomes.balance().seen) == (before, 0)


@pytest.mark.parametrize("restart", [False, True])
async def test_where_the_memory_of_ids_has_lost_it_the_store_still_knows(bench, restart):
    await bench.judged_and_let_go()
    before = bench.reported()
    if restart:
        bench.monitor.store.close()
        bench.start()
    bench.monitor.assembler._gone = RecentIds(1)  # as many other traces would have done
    for number in (2, 3):
        await bench.take(bench.late(number))
        await bench.judge()
    assert bench.reported() == before
    balance = bench.monitor.outcomes.balance()
    assert balance.ended[EndReason.LATE] == 1
    assert balance.open == 0
    assert bench.monitor.intake.counts.late == 1, "the second is refused at the door"
    assert bench.monitor.store.chunks(trace(1)) == []


async def test_a_span_that_comes_while_a_fragment_is_dismissed_revives_nothing(bench):
    await bench.judged_and_let_go()
    before = bench.reported()
    bench.monitor.assembler._gone = RecentIds(1)
    await bench.take(bench.late(2))
    bench.now += MINUTE
    bench.monitor.pipeline.waiting.extend(bench.monitor.assembler.due(bench.now))
    await bench.take(bench.late(3))
    await bench.monitor.pipeline.drain()
    await bench.judge()
    assert bench.reported() == before
    assert bench.monitor.outcomes.open == 0


async def test_a_log_record_that_is_held_for_it_does_not_make_a_fragment_whole(bench):
    await bench.judged_and_let_go()
    before = bench.reported()
    bench.monitor.assembler._gone = RecentIds(1)
    (chunk,) = split(request([bench.late()]), lambda _: ChunkOrigin("shop", None, 0)).chunks
    await bench.monitor.store.hold([chunk], bench.now)
    await bench.take(bench.late(3))
    await bench.judge()
    assert bench.reported() == before


async def test_within_the_late_window_a_span_makes_a_revision_after_a_restart_too(bench):
    await bench.take(S(trace_id=trace(1), span_id=span(1), attributes=SAID))
    await bench.judge()
    bench.monitor.store.close()
    bench.start()
    await bench.take(bench.late())
    await bench.judge()
    assert (bench.reported()["revision"], bench.reported()["spans"]) == (2, 2)

"""Intake: committed before it is acknowledged, counted once, resumed after a restart."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.integrations.otlp.wire.receipt import Overloaded, Undecodable
from sidejudge.integrations.otlp.wire.tracestate import threshold
from sidejudge.integrations.store.sqlite import StoreUnavailable
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.sampling import SamplingRuleSection
from sidejudge.monitor.ingest.assembler import AssemblyLimits
from sidejudge.monitor.ingest.load_shedding import AdaptiveRate, LoadShedding
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.trace_limits import TraceLimits
from tests.otlp_requests import HIGH, LOW, S, request, span, trace
from tests.waiting import until

MIXED = request([S(trace_id=trace(1), span_id=span(1)), S(trace_id=trace(2, LOW), span_id=span(2)),
                 S(trace_id=trace(2, LOW), span_id=span(3)), S(trace_id=b"short", span_id=span(4))])  # fmt: skip


async def test_a_kept_span_is_in_the_store_when_the_receipt_is_given(monitor):
    m = monitor()
    receipt = await m.intake.consume(MIXED)
    assert (receipt.rejected, "trace_id" in receipt.message) == (1, True)
    assert m.store.open_traces() == {trace(1)}
    assert m.assembler.knows(trace(1))
    assert m.woken == 1
    assert (m.outcomes.balance().seen, m.outcomes.open, m.ended()) == (2, 1, {EndReason.SAMPLED_OUT: 1})
    counts = m.intake.counts
    assert (counts.spans, counts.rejected) == (4, 1)


async def test_services_whose_spans_are_kept_are_reported_while_their_traces_are_open(monitor):
    m, came = monitor(), []
    m.outcomes.kept = came.extend
    await m.intake.consume(MIXED)
    await m.intake.consume(request([S(trace_id=trace(2, LOW), span_id=span(2))]))
    assert (len(came), m.assembler.open_traces) == (1, 1)


async def test_nothing_kept_touches_neither_store_nor_assembler(monitor):
    m = monitor()
    size = m.store.size
    await m.intake.consume(request([S(trace_id=trace(2, LOW), span_id=span(2))]))
    assert (m.store.size, m.woken, m.assembler.open_traces) == (size, 0, 0)


async def test_a_batch_that_is_sent_again_is_neither_stored_nor_counted_again(monitor):
    m = monitor()
    for _ in range(3):
        await m.intake.consume(MIXED)
    assert len(m.store.chunks(trace(1))) == 1
    assert m.outcomes.balance().seen == 2
    assert m.intake.counts.duplicate == 2


async def test_the_same_batch_twice_at_once_is_one_trace(monitor):
    m = monitor()
    await asyncio.gather(*(m.intake.consume(MIXED) for _ in range(5)))
    assert (m.outcomes.balance().seen, m.outcomes.open, m.assembler.open_traces) == (2, 1, 1)


async def test_far_too_late_is_counted_and_not_stored(monitor):
    m = monitor()
    await m.intake.consume(MIXED)
    m.now += 2
    for closing in m.assembler.due(m.now):
        await m.finish(closing)
    m.now += 100
    m.assembler.due(m.now)
    await m.intake.consume(request([S(trace_id=trace(1), span_id=span(9), parent_id=span(1))]))
    assert (m.intake.counts.late, m.assembler.open_traces, len(m.store.chunks(trace(1)))) == (1, 0, 1)
    assert m.outcomes.balance().seen == 2


@pytest.mark.parametrize("size", [50, 2 << 20])
async def test_undecodable_is_in_the_books_as_one_trace(monitor, size):
    m = monitor()
    with pytest.raises(Undecodable):
        await m.intake.consume(b"\xff" * size)
    assert (m.ended(), m.outcomes.open) == ({EndReason.UNDECODABLE: 1}, 0)


async def test_a_large_request_is_taken_too(monitor):
    m = monitor()
    big = {"input": "x" * (3 << 20)}
    await m.intake.consume(request([S(trace_id=trace(1), span_id=span(1), attributes=big)]))
    assert len(m.store.chunks(trace(1))[0]) > 3 << 20


class Stuck:
    """A store that does not commit until it is told to, or fails."""

    def __init__(self):
        self.go = asyncio.Event()
        self.error = None

    async def append(self, chunks, received_ns, *, untaken=False):
        await self.go.wait()
        if self.error:
            raise self.error

    def recover(self):
        return []


async def test_what_waits_for_its_commit_is_bounded(monitor):
    m = monitor(store=Stuck(), max_waiting_bytes=150)
    waiting = [
        asyncio.create_task(m.intake.consume(request([S(trace_id=trace(n), span_id=span(1))]))) for n in range(1, 4)
    ]
    await until(lambda: m.intake._waiting > 150)
    with pytest.raises(Overloaded) as refused:
        await m.intake.consume(MIXED)
    assert refused.value.retry_after_s == 1.0
    assert m.outcomes.balance().seen == 0
    m.store.go.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    taken = sum(not isinstance(r, Exception) for r in results)
    assert 1 <= taken <= 3
    assert m.outcomes.balance().seen == m.outcomes.open == taken
    assert m.intake._waiting == 0
    assert (await m.intake.consume(MIXED)).rejected == 1


async def test_a_store_that_cannot_write_is_overload_and_leaves_no_trace(monitor):
    m = monitor(store=Stuck())
    m.store.error = StoreUnavailable("store s.sqlite: the disk is full")
    m.store.go.set()
    with pytest.raises(Overloaded, match="the disk is full"):
        await m.intake.consume(MIXED)
    assert (m.outcomes.balance().seen, m.assembler.open_traces, m.intake._waiting) == (0, 0, 0)


async def test_a_rule_for_one_service_draws_all_spans_of_a_trace_that_runs_through_several(monitor):
    m = monitor(rate=0.5, rules=[SamplingRuleSection(name="all", match=MatchSection(service="desk"), rate=1.0)])
    await m.intake.consume(request([
        S(trace_id=trace(1, LOW), span_id=span(1)),
        S(trace_id=trace(1, LOW), span_id=span(2), parent_id=span(1), service="desk"),
    ]))  # fmt: skip
    assert (m.outcomes.balance().seen, m.ended(), m.outcomes.open) == (1, {}, 1)
    assert m.assembler.size(trace(1, LOW)).spans == 2


async def test_resources_are_looked_at_once_and_their_memory_is_bounded(monitor):
    m = monitor()
    for n in range(25_000):
        await m.intake.consume(request([S(trace_id=trace(n, LOW), span_id=span(1))], {"pod": str(n)}))
    assert sum(map(len, m.intake._origins)) <= 4 << 20
    assert len(m.intake._shared) == 1


@pytest.mark.parametrize("randomness", ["trace_id", "hashed"])
async def test_what_a_restart_resumes_is_drawn_by_the_same_randomness_as_before(monitor, randomness):
    before = monitor(rate=1.0, randomness=randomness)
    await before.intake.consume(request([S(trace_id=trace(1, LOW), span_id=span(1))]))
    before.store.close()

    after = monitor(rate=1.0, randomness=randomness)
    after.now = before.now + 2
    after.intake.restore()
    (old,), (new,) = (list(each.assembler.due(after.now)) for each in (before, after))
    assert new.origin == old.origin
    assert bool(new.origin.hash_key) is (randomness == "hashed")


async def test_a_restart_resumes_what_was_open_and_remembers_what_was_finished(monitor):
    before = monitor()
    for n in (1, 2, 3):
        await before.intake.consume(request([S(trace_id=trace(n, HIGH), span_id=span(1))]))
    before.now += 2
    closings = {c.trace_id: c for c in before.assembler.due(before.now)}
    await before.finish(closings[trace(1)])
    await before.finish(closings[trace(2)])
    await before.intake.consume(request([S(trace_id=trace(2), span_id=span(2), parent_id=span(1))]))
    before.store.close()

    after = monitor()
    after.now = before.now + 1
    assert after.intake.restore() == 1
    assert (after.outcomes.balance().seen, after.outcomes.open) == (1, 1)
    await after.intake.consume(request([S(trace_id=trace(1), span_id=span(1))]))
    assert after.intake.counts.duplicate == 1
    after.now += 2
    due = {c.trace_id: c.revision for c in after.assembler.due(after.now)}
    assert due == {trace(3): 1, trace(2): 2}
    for revision in due.values():
        after.outcomes.ended("shop", EndReason.SCORED, revision=revision)
    assert after.outcomes.balance().revisions == 1
    assert after.outcomes.open == 0


async def test_a_stored_chunk_that_cannot_be_read_does_not_keep_the_monitor_from_starting(monitor, caplog):
    m = monitor()
    await m.intake.consume(MIXED)
    m.store._write_connection.execute("UPDATE chunks SET payload = x'0a09'")
    m.store.close()
    again = monitor()
    assert again.intake.restore() == 0
    assert trace(1).hex() in caplog.text


async def test_a_monitors_own_spans_are_counted_once_a_trace_and_touch_nothing(monitor):
    m = monitor()
    own = request(
        [S(trace_id=trace(n, tail), span_id=span(1), service="sidejudge") for n, tail in ((1, HIGH), (2, LOW))]
    )
    size = m.store.size
    for _ in range(2):
        assert (await m.intake.consume(own)).rejected == 0
    assert (m.store.size, m.woken, m.assembler.open_traces) == (size, 0, 0)
    assert (m.outcomes.balance().seen, m.outcomes.open, m.ended()) == (2, 0, {EndReason.EXCLUDED: 2})
    counts = m.intake.counts
    assert (counts.spans, counts.own) == (4, 4)


def flood(number: int, first: int, count: int) -> bytes:
    """Spans of one trace that name a parent, as small as they may be."""
    return request(
        S(trace_id=trace(number), span_id=span(n), parent_id=span(999_999), name="")
        for n in range(first, first + count)
    )


async def test_of_a_trace_beyond_its_limits_the_rest_is_counted_and_it_closes_as_cut_short(monitor):
    m = monitor(limits=TraceLimits(30, 1 << 30))
    for first in range(1, 101, 20):
        await m.intake.consume(flood(1, first, 20))
    assert (len(m.store.chunks(trace(1))), m.intake.counts.too_large) == (2, 70)
    (closing,) = m.assembler.due(m.now)
    assert (closing.completion, closing.left_out, closing.revision) == ("pressure", 70, 1)
    await m.finish(closing)
    await m.intake.consume(flood(1, 201, 20))
    assert (m.assembler.open_traces, m.intake.counts.too_large, len(m.store.chunks(trace(1)))) == (0, 90, 2)
    assert (m.outcomes.balance().seen, m.outcomes.open) == (1, 0)


async def test_requests_of_one_trace_that_come_at_once_share_its_limits(monitor):
    m = monitor(limits=TraceLimits(30, 1 << 30))
    await asyncio.gather(*(m.intake.consume(flood(1, first, 20)) for first in range(1, 401, 20)))
    assert m.assembler.size(trace(1)).spans == 30
    assert m.intake.counts.too_large == 370


async def test_a_trace_of_which_nothing_fits_ends_and_is_not_begun_again(monitor):
    m = monitor(limits=TraceLimits(30, 100))
    await m.intake.consume(flood(1, 1, 1))
    await m.intake.consume(flood(1, 2, 1))
    assert (m.ended(), m.outcomes.open, m.store.open_traces()) == ({EndReason.SHED: 1}, 0, set())
    assert (m.intake.counts.too_large, m.intake.counts.late) == (1, 1)


async def test_after_a_restart_a_trace_has_no_more_room_than_before(monitor):
    first = monitor(limits=TraceLimits(30, 1 << 30))
    await first.intake.consume(flood(1, 1, 20))
    size = first.assembler.size(trace(1))
    first.store.close()
    second = monitor(limits=TraceLimits(30, 1 << 30))
    second.intake.restore()
    assert second.assembler.size(trace(1)) == size
    await second.intake.consume(flood(1, 21, 20))
    assert second.assembler.size(trace(1)).spans == 30


async def test_a_restart_knows_whose_traces_have_roots_and_goes_on_waiting_for_one(monitor):
    limits = AssemblyLimits(grace_ns=2, idle_ns=30, deadline_ns=600, late_ns=100, root_wait_ns=10_000)
    first = monitor(assembly=limits)
    for number in range(1, 7):
        await first.intake.consume(request([S(trace_id=trace(number), span_id=span(1))]))
    first.now += 2
    for closing in first.assembler.due(first.now):
        await first.finish(closing)
    await first.intake.consume(request([S(trace_id=trace(9), span_id=span(2), parent_id=span(1))]))
    first.store.close()
    second = monitor(assembly=limits)
    second.now = first.now + 5_000
    second.intake.restore()
    assert second.assembler.due(second.now) == []
    await second.intake.consume(request([S(trace_id=trace(9), span_id=span(1))]))
    second.now += 2
    assert [closing.completion for closing in second.assembler.due(second.now)] == ["root_ended"]


async def test_under_lasting_load_a_trace_that_would_be_shed_is_not_even_opened(monitor):
    shedding = LoadShedding(admission=threshold(1.0), max_waiting=100)
    m = monitor(rate=1.0, shedding=shedding)
    for second in range(60, 150):
        shedding.update(30, second * 10**9)
    assert shedding.opening_threshold == threshold(0.5)
    high, low = trace(1), trace(2, LOW)
    await m.intake.consume(request([S(trace_id=high, span_id=span(1)), S(trace_id=low, span_id=span(1))]))
    assert (m.store.open_traces(), m.ended(), m.intake.counts.shed) == ({high}, {EndReason.SHED: 1}, 1)
    shedding.update(0, 150 * 10**9)
    await m.intake.consume(request([S(trace_id=t, span_id=span(2), parent_id=span(1)) for t in (high, low)]))
    assert m.intake.counts.late == 1, "its first spans are lost: what comes later of it is none either"
    (closing,) = m.assembler.due(m.now + 2)
    assert (closing.origin.threshold, closing.thinned) == (threshold(0.5), True)
    m.store.close()
    again = monitor(rate=1.0)
    again.intake.restore()
    (closing,) = again.assembler.due(again.now + 40)
    assert closing.origin.threshold == threshold(0.5), "its probability is known after a restart too"


async def test_a_trace_whose_first_spans_are_being_committed_is_not_shed_meanwhile(monitor):
    shedding, low = LoadShedding(admission=0, max_waiting=100), trace(2, LOW)
    m = monitor(rate=1.0, shedding=shedding)
    first = asyncio.create_task(m.intake.consume(request([S(trace_id=low, span_id=span(1))])))
    while not m.intake._waiting:  # noqa: ASYNC110  # a moment that nobody else notices
        await asyncio.sleep(0)
    assert not m.assembler.knows(low)
    for second in range(60, 150):
        shedding.update(30, second * 10**9)
    await m.intake.consume(request([S(trace_id=low, span_id=span(2), parent_id=span(1))]))
    await first
    assert (m.ended(), m.outcomes.open, m.assembler.size(low).spans) == ({}, 1, 2)
    (closing,) = m.assembler.due(m.now + 2)
    assert closing.origin.threshold == 0, "it was taken before the load came"


async def test_a_full_queue_refuses_and_keeps_nothing(monitor):
    shedding = LoadShedding(admission=0, max_waiting=10)
    m = monitor(shedding=shedding)
    shedding.update(10, 0)
    with pytest.raises(Overloaded) as refused:
        await m.intake.consume(MIXED)
    assert "assembly.max_waiting_traces" in str(refused.value)
    shedding.update(9, 0)
    await m.intake.consume(MIXED)
    assert m.outcomes.balance().seen == 2


async def test_beyond_the_traces_an_hour_a_share_is_opened_and_the_rest_is_sampled_out_once(monitor):
    m = monitor(rate=None, adaptive=AdaptiveRate(1, remembered=1))
    first, kept, lost = trace(1, LOW), trace(2), trace(3, LOW)
    await m.intake.consume(request([S(trace_id=first, span_id=span(1))]))
    await m.intake.consume(request([S(trace_id=t, span_id=span(1)) for t in (kept, lost)]))
    await m.intake.consume(request([S(trace_id=lost, span_id=span(2), parent_id=span(1))]))
    assert (m.store.open_traces(), m.ended()) == ({first, kept}, {EndReason.SAMPLED_OUT: 1})
    counts = m.intake.counts
    assert (counts.spans, counts.late) == (4, 0)
    m.now += 2 * 3600 * 10**9
    await m.intake.consume(request([S(trace_id=trace(4), span_id=span(1))]))
    m.now += 2 * 3600 * 10**9
    await m.intake.consume(request([S(trace_id=lost, span_id=span(3), parent_id=span(1))]))
    assert lost not in m.store.open_traces(), "its first spans are lost, though every trace is drawn again"
    m.now += 2
    drawn = {closing.trace_id: closing.origin.threshold for closing in m.assembler.due(m.now)}
    assert drawn == {first: 0, kept: threshold(0.5), trace(4): 0}
    m.store.close()
    again = monitor(rate=None, adaptive=AdaptiveRate(1))
    again.intake.restore()
    again.now = m.now + 40
    drawn = {closing.trace_id: closing.origin.threshold for closing in again.assembler.due(again.now)}
    assert drawn == {first: 0, kept: threshold(0.5), trace(4): 0}, "its probability is known after a restart too"


def many_traces(count: int) -> bytes:
    return request([S(trace_id=trace(n, HIGH), span_id=span(n)) for n in range(1, count + 1)])


async def test_others_have_their_turn_while_the_traces_of_a_large_request_are_taken_in(monitor):
    m, known = monitor(), []

    async def look():
        while True:
            known.append(m.assembler.open_traces)
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await m.intake.consume(many_traces(3_000))
    looking.cancel()
    between = sorted({count for count in known if 0 < count < 3_000})
    assert len(between) >= 10
    assert max(b - a for a, b in zip([0, *between], [*between, 3_000], strict=True)) <= 200


@pytest.mark.parametrize("moment", ["before the commit", "in its midst", "after it"])
async def test_of_a_client_that_goes_away_everything_is_taken_in_and_counted(monitor, moment):
    limits = TraceLimits(10_000, 64 << 20)
    m = monitor(limits=limits)
    reached = {
        "before the commit": lambda: limits.under_way(trace(1, HIGH)),
        "in its midst": lambda: m.intake._waiting,
        "after it": lambda: m.assembler.open_traces,
    }[moment]
    taking = asyncio.create_task(m.intake.consume(many_traces(3_000)))
    while not reached():  # noqa: ASYNC110  # a moment that nobody else notices
        await asyncio.sleep(0)
    assert m.assembler.open_traces < 3_000
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await until(lambda: m.intake.counts.spans)
    assert m.assembler.open_traces == m.outcomes.open == len(m.store.open_traces()) == m.intake.counts.spans == 3_000
    assert not any(limits.under_way(trace(n, HIGH)) for n in range(1, 3_001))

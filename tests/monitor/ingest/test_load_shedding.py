"""Under load fewer traces are drawn, with true probabilities; the queue stays bounded, and recovers."""

from __future__ import annotations

import random
from collections import deque

import pytest

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin, SpanHeader
from sidejudge.integrations.otlp.wire.tracestate import probability, random_bits, threshold
from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.assembler import Assembler, AssemblyLimits
from sidejudge.monitor.ingest.load_shedding import LoadShedding
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.runtime.app import Monitor
from tests import otlp_requests as spans
from tests.otlp_requests import request

S = 1_000_000_000
NEVER_FULL = 10**9


def root(trace_id: bytes, state: str = "") -> Chunk:
    header = SpanHeader(span_id=b"\1" * 8, trace_state=state)
    return Chunk(trace_id=trace_id, payload=b"x" * 100, headers=(header,), origin=ChunkOrigin("shop", None, 0))


def loaded(share: float) -> LoadShedding:
    """One that draws at this share of the rate 1, and goes on doing so for some traces more."""
    shedding = LoadShedding(admission=0, max_waiting=10_000)
    shedding.update(next(waiting for waiting in range(0, 10_000, 100) if _share(shedding, waiting) == share), 0)
    return shedding


def _share(shedding: LoadShedding, waiting: int) -> float:
    shedding.update(waiting, 0)
    return shedding.share


@pytest.mark.parametrize(
    ("waiting", "share", "full"),
    [(0, 1, False), (250, 1, False), (251, 1 / 2, False), (400, 1 / 8, False), (999, 1 / 1024, False),
     (1_000, 1 / 1024, True), (50_000, 1 / 1024, True)],
)  # fmt: skip
def test_the_fuller_the_queue_the_lower_the_rate(waiting, share, full):
    shedding = LoadShedding(admission=threshold(0.5), max_waiting=1_000)
    shedding.update(waiting, 0)
    assert (shedding.share, shedding.full) == (share, full)
    assert shedding.closing_threshold == (0 if share == 1 else threshold(0.5 * share))


def test_nothing_is_refused_a_place_that_would_have_been_drawn_in_the_last_half_minute():
    shedding = LoadShedding(admission=0, max_waiting=1_000)
    for second in range(70):
        shedding.update(400 if second % 7 else 300, second * S)
    assert shedding.opening_threshold == threshold(0.5), "at times of these a half was drawn"
    shedding.update(0, 70 * S)
    assert shedding.opening_threshold == 0, "the load is over"
    shedding.update(400, 1_000 * S)
    assert shedding.opening_threshold == 0, "what was long ago tells nothing"


def overload(max_waiting: int, *, seconds: int = 120, rate: int = 400, served: int = 100):
    """Four times as many traces as can be judged, then none for 200 s.

    Returns those that were sent, those that were judged with their probabilities, how many were shed and refused, how
    many waited at most, and how many still do.
    """
    draw = random.Random(5)
    shedding = LoadShedding(admission=0, max_waiting=max_waiting)
    assembler = Assembler(AssemblyLimits(grace_ns=2 * S), shedding=shedding)
    waiting: deque[Closing] = deque()
    judged: list[tuple[bytes, float]] = []
    shed, refused, most, sent = 0, 0, 0, []
    for second in range(seconds + 200):
        now = second * S
        for _ in range(rate if second < seconds else 0):
            trace_id = draw.randbytes(16)
            sent.append(trace_id)
            if shedding.full:
                refused += 1
            elif random_bits(trace_id, b"") < shedding.opening_threshold:
                shed += 1
            else:
                chunk = root(trace_id)
                limit = shedding.opening_threshold
                assembler.add(Chunk(trace_id=trace_id, payload=chunk.payload, headers=chunk.headers,
                                    origin=ChunkOrigin("shop", None, limit)), now)  # fmt: skip
        for _ in range(10):  # as often as batches are judged
            shedding.update(len(waiting), now)
            for closing in assembler.due(now):
                if closing.give_up is EndReason.SHED:
                    shed += 1
                else:
                    waiting.append(closing)
            most = max(most, len(waiting))
            for _ in range(min(served // 10, len(waiting))):
                closing = waiting.popleft()
                judged.append((closing.trace_id, probability(closing.origin.threshold)))
    assert assembler.open_traces == 0
    return sent, judged, shed, refused, most, len(waiting)


def fails(trace_id: bytes) -> bool:
    return trace_id[0] < 51  # a fifth, independent of what is drawn by


def test_without_shedding_the_queue_grows_for_as_long_as_the_load_lasts():
    _, _, shed, _, most, left = overload(NEVER_FULL)
    assert shed == 0
    assert most > 30_000
    assert left > 10_000, "minutes after it"


def test_the_queue_is_bounded_nothing_is_refused_and_what_is_judged_stands_for_all():
    sent, judged, shed, refused, most, left = overload(2_000)
    assert (refused, left) == (0, 0)
    assert most <= 2_000
    assert len(judged) + shed == len(sent) == 48_000
    assert len(judged) > 0.8 * 120 * 100, "what can be judged is"
    weight = sum(1 / p for _, p in judged)
    failing = sum(1 / p for trace_id, p in judged if fails(trace_id))
    assert abs(weight / len(sent) - 1) < 0.05
    assert abs(failing / weight - sum(map(fails, sent)) / len(sent)) < 0.02


def test_a_revision_is_drawn_as_its_trace_was_whatever_the_load_is_by_then():
    kept, lost = b"\1" * 9 + b"\xff" * 7, b"\2" * 9 + b"\x10" + b"\0" * 6
    shedding = loaded(share=0.25)
    assembler = Assembler(AssemblyLimits(grace_ns=2), shedding=shedding)
    for trace_id in (kept, lost):
        assembler.add(root(trace_id), 0)
    closings = {closing.trace_id: closing for closing in assembler.due(2)}
    assert (closings[kept].give_up, closings[lost].give_up) == (None, EndReason.SHED)
    shedding.update(0, 0)
    later = SpanHeader(span_id=b"\2" * 8, parent_id=b"\1" * 8)
    for trace_id in (kept, lost):
        assembler.add(Chunk(trace_id=trace_id, payload=b"x", headers=(later,), origin=ChunkOrigin("shop", None, 0)), 5)
    closings = {closing.trace_id: closing for closing in assembler.due(7)}
    assert {closing.revision for closing in closings.values()} == {2}
    assert (closings[kept].give_up, closings[lost].give_up) == (None, EndReason.SHED)
    assert probability(closings[kept].origin.threshold) == 0.25, "its spans had come before its trace was drawn"


def test_randomness_that_spans_state_decides_here_too():
    assembler = Assembler(AssemblyLimits(grace_ns=2), shedding=loaded(share=0.5))
    assembler.add(root(b"\1" * 9 + b"\xff" * 7, state="ot=rv:10000000000000"), 0)
    (closing,) = assembler.due(2)
    assert closing.give_up is EndReason.SHED


def test_of_many_traces_that_close_at_once_no_more_are_kept_than_may_wait():
    draw, shedding = random.Random(3), LoadShedding(admission=0, max_waiting=100)
    assembler = Assembler(AssemblyLimits(grace_ns=2), shedding=shedding)
    for _ in range(5_000):
        assembler.add(root(draw.randbytes(16)), 0)
    shedding.update(0, 0)
    kept = [closing for closing in assembler.due(2) if closing.give_up is None]
    assert 50 < len(kept) <= 100
    weight = sum(1 / probability(closing.origin.threshold) for closing in kept)
    assert 0.5 < weight / 5_000 < 1.5, "few, but they stand for all"


def test_without_load_a_trace_is_drawn_at_the_configured_rate_and_counts_so():
    assembler = Assembler(AssemblyLimits(grace_ns=2), shedding=LoadShedding(admission=0, max_waiting=100))
    assembler.add(root(b"\1" * 16), 0)
    (closing,) = assembler.due(2)
    assert (closing.thinned, closing.give_up, closing.origin.threshold) == (False, None, 0)


async def test_what_waits_at_a_restart_is_drawn_as_before_though_less_waits_by_then(configured, monkeypatch):
    monkeypatch.setattr("sidejudge.monitor.runtime.judging_loop.RETRY_S", 0.0)
    monkeypatch.setattr("sidejudge.monitor.runtime.judging_loop.TICK_S", 0.0)
    monkeypatch.setattr("sidejudge.monitor.runtime.judging_loop.REST_S", 0.0)
    config = configured(
        assembly={"grace": "1s", "max_waiting_traces": 40}, sampling={"rate": 1.0}, routes=[{"rubrics": ["run_health"]}]
    )
    draw, now = random.Random(1), [1_790_000_000 * S]

    async def begun() -> Monitor:
        monitor = Monitor(config, clock_ns=lambda: now[0])
        await monitor._restore()
        monitor.intake.restore()
        now[0] += 3 * S
        return monitor

    first = await begun()
    commit = first.pipeline.commit

    async def stops_after_twelve(results):
        shed = [each for each in results if each.reason is EndReason.SHED]
        judged = [each for each in results if each not in shed]
        return {**await commit([*shed, *judged[:12]]), **{each.trace_id: StoreError("killed") for each in judged[12:]}}

    first.pipeline.commit = stops_after_twelve
    for _ in range(200):
        await first.intake.consume(request([spans.S(trace_id=draw.randbytes(16), span_id=spans.span(1))]))
    now[0] += 3 * S
    await first.judging._turn()
    before = {each.trace_id: each.origin.threshold for each in first.pipeline.waiting}
    assert (len(before), max(before.values())) == (12, threshold(1 / 32))
    first.store.close()

    again = await begun()
    after = {each.trace_id: each for each in again.judging.due()}
    again.store.close()
    assert {trace_id: each.origin.threshold for trace_id, each in after.items()} == before
    assert all(each.thinned for each in after.values()), "which their details state"

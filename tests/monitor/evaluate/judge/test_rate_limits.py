"""Limits of a provider: no more at once, no more a minute, and estimates that are set right."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.evaluate.judge.rate_limits import Pace, RateLimits


@given(st.floats(1, 10_000), st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 100)), min_size=1, max_size=60))
def test_in_any_stretch_of_time_no_more_is_used_than_the_rate_allows(per_minute, requested):
    pace, now, used = Pace(per_minute), 0.0, []
    for later, amount in requested:
        now += later
        used.append((now + pace.reserve(now, amount), amount))
    for first in range(len(used)):
        begins = used[first][0]
        for last in range(first, len(used)):
            within = sum(amount for _, amount in used[first:last])  # what began before the last did
            assert within <= per_minute / 60 * (used[last][0] - begins + 1.0) * (1 + 1e-9) + 1e-6


def test_who_comes_first_is_served_first_and_waits_no_longer_than_needed():
    pace = Pace(60)
    assert [pace.reserve(100.0) for _ in range(4)] == [0.0, 0.0, 1.0, 2.0]
    assert pace.reserve(200.0) == 0.0


def test_what_was_estimated_wrongly_is_settled():
    pace = Pace(60)
    pace.reserve(0.0, 10)
    pace.settle(-10)
    assert pace.reserve(0.0) == 0.0
    pace.settle(30)
    assert pace.reserve(0.0) == pytest.approx(30.0)


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="above 0"):
        Pace(0)


async def test_no_more_run_at_once_than_allowed():
    limits, running, most = RateLimits(concurrency=2, clock=lambda: 0.0), 0, 0

    async def call():
        nonlocal running, most
        async with limits.slot(10):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(call() for _ in range(10)))
    assert most == 2


async def test_a_slot_tells_what_was_used_and_the_next_waits_accordingly():
    limits = RateLimits(concurrency=1, tokens_per_minute=6_000_000, clock=lambda: 0.0)
    async with limits.slot(1_000) as slot:
        slot.used(200_000)
    assert limits._tokens.reserve(0.0) == pytest.approx(1.0, abs=0.02)  # 200,000 tokens are 2 s, 1 s may come at once


async def test_who_is_cancelled_while_waiting_uses_nothing():
    limits = RateLimits(concurrency=2, tokens_per_minute=60, clock=lambda: 0.0)
    async with limits.slot(10) as first:
        first.used(10)

    async def call():
        async with limits.slot(1_000):
            raise AssertionError("it waits for nine seconds")

    waiting = asyncio.create_task(call())
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert limits._tokens.reserve(0.0) == pytest.approx(9.0)

"""The budget: what is let through in any minute, and the rest that a server asks for."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.langfuse.client import RequestBudget


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def paced(per_minute: float) -> tuple[RequestBudget, Clock]:
    clock = Clock()
    return RequestBudget(per_minute, now_s=lambda: clock.now, sleep=clock.sleep), clock


@given(per_minute=st.floats(1, 1000), pauses=st.lists(st.floats(0, 5), max_size=200))
def test_no_minute_has_more_requests_than_the_rate_and_its_burst(per_minute, pauses):
    budget, clock = paced(per_minute)

    async def run() -> list[float]:
        taken = []
        for pause in pauses:
            clock.now += pause
            await budget.take()
            taken.append(clock.now)
        return taken

    taken = asyncio.run(run())
    for start in taken:
        assert sum(start <= at < start + 60 for at in taken) <= per_minute + per_minute / 60 * 2 + 2


async def test_who_waits_when_a_rest_is_asked_for_rests_too():
    budget, clock = paced(60)
    for _ in range(3):
        await budget.take()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        if not slept:
            budget.limited(30, None)
        slept.append(seconds)
        clock.now += seconds

    budget._sleep = sleep
    await budget.take()
    assert sum(slept) >= 30


async def test_a_limit_only_ever_slows_down():
    budget, _ = paced(100)
    budget.limited(None, 1000)
    assert budget.per_minute == 100
    budget.limited(None, 30)
    assert budget.per_minute == 24

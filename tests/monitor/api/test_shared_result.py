"""What many ask for is made once, and kept in proportion to what it costs."""

from __future__ import annotations

import asyncio

from sidejudge.monitor.api.shared_result import SharedResult, SharedResults

SECOND = 10**9


class Making:
    """Takes so long by its own clock, and counts how often it was asked."""

    def __init__(self, takes_ns: int) -> None:
        self.now_ns, self.takes_ns, self.times = 10**18, takes_ns, 0
        self.shared = SharedResult[int](lambda: self.now_ns)

    async def make(self) -> int:
        await asyncio.sleep(0)
        self.now_ns += self.takes_ns
        self.times += 1
        return self.times

    async def get(self) -> int:
        return await self.shared.get(self.make)


async def test_those_who_ask_together_get_the_same():
    making = Making(takes_ns=SECOND // 10)
    assert await asyncio.gather(*(making.get() for _ in range(50))) == [1] * 50


async def test_what_took_long_is_kept_for_ten_times_as_long():
    making = Making(takes_ns=SECOND // 10)
    assert await making.get() == 1
    making.now_ns += SECOND - 1
    assert await making.get() == 1
    making.now_ns += 1
    assert await making.get() == 2


async def test_nothing_is_kept_for_more_than_five_seconds_or_when_the_clock_was_set_back():
    making = Making(takes_ns=60 * SECOND)
    await making.get()
    making.now_ns += 5 * SECOND
    assert await making.get() == 2
    making.now_ns -= 3600 * SECOND
    assert await making.get() == 3


async def test_what_took_no_time_is_made_anew():
    making = Making(takes_ns=0)
    assert [await making.get(), await making.get()] == [1, 2]


async def test_each_question_has_a_result_of_its_own_and_endless_ones_are_forgotten():
    making = Making(takes_ns=SECOND // 10)
    shared = SharedResults[int](lambda: making.now_ns)
    assert [await shared.get(asked, making.make) for asked in ("a", "b", "a")] == [1, 2, 1]
    for asked in range(100):
        await shared.get(asked, making.make)
    assert len(shared._of) <= 32

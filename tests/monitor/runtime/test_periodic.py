"""Work that is started again and again: one round at a time, ended in order."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.monitor.runtime.app import Periodic


async def test_a_round_that_is_under_way_is_not_doubled_and_is_ended_in_order():
    begun, ended = asyncio.Event(), []

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    repeated = Periodic(work)
    running = asyncio.create_task(repeated.run())
    await begun.wait()
    begun.clear()
    await repeated.run()
    assert not begun.is_set()
    await repeated.stop()
    await running
    assert ended == [True]
    await repeated.run()
    assert not begun.is_set(), "after the end no round begins"


async def test_a_round_that_begins_as_the_one_before_ends_takes_nothing_from_it():
    let = asyncio.Event()
    count = []

    async def work() -> None:
        count.append(True)
        await let.wait()

    repeated = Periodic(work)
    first = asyncio.create_task(repeated.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(count) == 1
    let.set()
    repeated._round.add_done_callback(lambda _: let.clear())
    while not repeated._round.done():  # noqa: ASYNC110  # until the very turn of the loop in which it ends
        await asyncio.sleep(0)
    second = asyncio.create_task(repeated.run())
    await first
    await asyncio.sleep(0)
    await repeated.stop()
    await second
    assert len(count) == 2


async def test_what_a_round_raises_is_raised():
    async def work() -> None:
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        await Periodic(work).run()

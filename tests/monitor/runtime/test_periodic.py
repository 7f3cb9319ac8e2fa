"""Work that is started again and again: one round at a time, ended in order."""

from __future__ import annotations

import asyncio

from sidejudge.monitor.runtime.app import Periodic


async def test_a_round_that_is_under_way_is_not_doubled_and_is_ended_in_order():
    rounds = []

    async def work() -> None:
        rounds.append("begun")
        try:
            await asyncio.sleep(3600)
        finally:
            rounds.append("ended")

    repeated = Periodic(work, 0.001)
    await asyncio.sleep(0.02)
    await repeated.stop()
    await asyncio.sleep(0.01)
    assert rounds == ["begun", "ended"]


async def test_rounds_that_fall_due_during_one_are_left_out():
    now, rounds = asyncio.get_running_loop().time, []

    async def work() -> None:
        await asyncio.sleep(0 if rounds else 0.1)  # the first takes ten times as long as it may
        rounds.append(now())

    repeated = Periodic(work, 0.01)
    while len(rounds) < 6:  # noqa: ASYNC110  # whatever their pace
        await asyncio.sleep(0.001)
    await repeated.stop()
    assert rounds[-1] - rounds[0] >= 0.04, "none is made up for"


async def test_no_round_begins_before_the_first_is_due():
    rounds = []

    async def work() -> None:
        rounds.append(True)

    repeated = Periodic(work, 0.001, first_s=3600)
    await asyncio.sleep(0.01)
    await repeated.stop()
    assert not rounds


async def test_a_round_that_fails_or_whose_work_is_cancelled_by_others_is_not_the_last(caplog):
    rounds = []

    async def work() -> None:
        rounds.append(True)
        if len(rounds) == 1:
            raise ValueError("of the work")
        if len(rounds) == 2:
            raise asyncio.CancelledError

    repeated = Periodic(work, 0.001)
    while len(rounds) < 4:  # noqa: ASYNC110  # until it has gone on
        await asyncio.sleep(0.001)
    await repeated.stop()
    (record,) = caplog.records
    assert record.message.startswith("a periodic round failed")
    assert "of the work" in record.exc_text


async def test_work_that_takes_no_cancellation_is_ended_too():
    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return

    repeated = Periodic(work, 0.001)
    await asyncio.sleep(0.005)
    async with asyncio.timeout(1):
        await repeated.stop()

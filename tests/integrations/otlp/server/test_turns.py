"""Messages are read in turns; whoever holds one without using it holds up nobody for long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sidejudge.integrations.otlp.server.turns import Turns

A, B, C = b"a", b"b", b"c"
LONG = 10.0
SHORT = 0.08


def never() -> asyncio.Event:
    return asyncio.Event()


async def use(turns: Turns, sender: bytes, connection: str, until: asyncio.Event, ended: list[str]) -> None:
    try:
        async with turns.one_of(sender, connection):
            await until.wait()
    except TimeoutError:
        ended.append(f"{connection} late")
    else:
        ended.append(connection)


def now() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@pytest.fixture
async def using():
    """Begin to use a turn; what is left is cancelled."""
    tasks: list[asyncio.Task[None]] = []

    async def begin(*given: Any) -> asyncio.Task[None]:
        tasks.append(task := asyncio.create_task(use(*given)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return task

    yield begin
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_turn_for_which_nobody_waits_lasts(using):
    turns, ended = Turns(4, SHORT), []
    for connection in ("a1", "a2", "b1"):
        await using(turns, connection[0].encode(), connection, never(), ended)
    await using(turns, B, "b2", now(), ended)
    await asyncio.sleep(2 * SHORT)
    assert ended == ["b2"]


async def test_half_of_them_from_one_sender(using):
    turns, ended = Turns(4, LONG), []
    for connection in ("a1", "a2"):
        await using(turns, A, connection, never(), ended)
    await using(turns, A, "a3", now(), ended)
    await using(turns, B, "b1", now(), ended)
    assert ended == ["b1"]


async def test_those_who_do_not_use_theirs_let_the_next_ones_in(using):
    turns, ended = Turns(4, SHORT), []
    for number in range(6):
        await using(turns, A, f"a{number}", never(), ended)
    await (await using(turns, A, "good", now(), ended))
    assert ended[:4] == [f"a{number} late" for number in range(4)]
    assert ended[-1] == "good", "with the last two, where the four before them end at one moment, or behind them"


@pytest.mark.parametrize(
    ("brought", "last"), [(0, ["good", "late"]), (3, ["good", "late"]), (4, ["late", "good"])], ids=str
)
async def test_one_that_wasted_a_turn_goes_behind_one_that_did_not_until_it_has_brought_four(using, brought, last):
    turns, ended = Turns(2, SHORT), []
    await using(turns, A, "late", never(), ended)
    await (await using(turns, A, "good", now(), ended))
    for _ in range(brought):
        await (await using(turns, A, "late", now(), ended))
    hold = never()
    holding = await using(turns, A, "good", hold, ended)
    late, good = await using(turns, A, "late", now(), ended), await using(turns, A, "good", now(), ended)
    hold.set()
    await asyncio.gather(holding, late, good)
    assert ended[:2] == ["late late", "good"]
    assert ended[-2:] == last


async def test_senders_take_turns_however_many_of_one_wait(using):
    turns, ended = Turns(2, LONG), []
    hold = never()
    await using(turns, A, "a0", hold, ended)
    await using(turns, B, "b0", hold, ended)
    waiting = [await using(turns, A, f"a{number}", now(), ended) for number in range(1, 4)]
    waiting.append(await using(turns, C, "c", now(), ended))
    hold.set()
    await asyncio.gather(*waiting)
    assert ended.index("c") < ended.index("a2")


async def test_callers_that_go_away_leave_nothing(using):
    turns, ended = Turns(2, LONG), []
    hold = never()
    await using(turns, A, "a0", hold, ended)
    gone = [await using(turns, A, f"a{number}", never(), ended) for number in range(1, 4)]
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    hold.set()
    await (await using(turns, A, "last", now(), ended))
    assert ended == ["a0", "last"]
    assert not turns._waiting
    assert not turns._running

"""A store that fills up lets the oldest go, and nothing that waits to be judged."""

from __future__ import annotations

import os

import pytest

from integrations.otlp.wire import Chunk, Origin, SpanHeader
from integrations.store.sqlite import Finished, Store
from monitor.assembler import Arrival, Assembler, Limits
from monitor.room import make_room

MINUTE = 60 * 10**9
LATE, RETENTION = 10 * MINUTE, 24 * 60 * MINUTE
START = 1_790_000_000_000_000_000


def chunk(number: int, span: int = 1) -> Chunk:
    header = SpanHeader(span_id=span.to_bytes(8, "big"), parent_id=b"", root_hint=False)
    return Chunk(
        trace_id=number.to_bytes(16, "big"), payload=os.urandom(8192), headers=(header,), origin=Origin("shop", None, 0)
    )


class Kept:
    """A store and an assembler that are told the same, a trace a second."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.assembler = Assembler(Limits(grace_ns=1, late_ns=LATE))

    async def take(self, number: int, *, judged: bool = True) -> None:
        now_ns = START + number * 10**9
        await self.store.append([chunk(number)], now_ns)
        self.assembler.add(chunk(number), now_ns)
        if judged:
            for closing in self.assembler.due(now_ns + 2):
                await self.store.finish(
                    Finished(
                        trace_id=closing.trace_id, service="shop", reason="scored", completion=closing.completion,
                        revision=closing.revision, story={}, verdicts=[], closed_ns=now_ns,
                    )
                )  # fmt: skip

    async def fill(self) -> int:
        """Take traces until there is too little room; how many."""
        number = 0
        while self.store.fullness < 0.8:
            await self.take(number)
            number += 1
        return number

    async def make_room(self, now: int) -> int:
        return await make_room(
            self.store, self.assembler, now_ns=START + now * 10**9, retention_ns=RETENTION, late_ns=LATE
        )

    def held(self, number: int) -> bool:
        return bool(self.store.chunks(number.to_bytes(16, "big")))


@pytest.fixture
def kept(tmp_path):
    store = Store(tmp_path / "s.sqlite", max_bytes=1 << 20)
    yield Kept(store)
    store.close()


async def test_the_oldest_go_until_there_is_room(kept):
    count = await kept.fill()
    assert await kept.make_room(count) > 0
    assert kept.store.fullness < 0.8
    held = [kept.held(number) for number in range(count)]
    assert (held[0], held[-1]) == (False, True)
    assert held == sorted(held), "older ones were kept in place of younger ones"


async def test_a_late_span_of_what_was_let_go_is_too_late_and_one_of_what_is_held_reopens_it(kept):
    count = await kept.fill()
    await kept.make_room(count)
    for number in range(count):
        expected = Arrival.REOPENS if kept.held(number) else Arrival.TOO_LATE
        assert kept.assembler.classify(chunk(number, span=2)) is expected, number


async def test_what_waits_to_be_judged_stays_however_full_the_store_is(kept):
    count = 0
    while kept.store.fullness < 0.85:
        await kept.take(count, judged=False)
        count += 1
    await kept.make_room(100_000)
    assert len(kept.store.open_traces()) == count


async def test_while_there_is_room_nothing_is_let_go(kept):
    for number in range(50):
        await kept.take(number)
    assert await kept.make_room(10_000) == 0
    assert all(kept.held(number) for number in range(50))

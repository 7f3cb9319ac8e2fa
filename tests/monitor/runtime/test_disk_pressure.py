"""A store that fills up lets the oldest go, and nothing that waits to be judged."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing

import pytest

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin, SpanHeader
from sidejudge.integrations.store.sqlite import FinishedTrace, Store, StoredTurn
from sidejudge.monitor.evaluate.result import SessionIdentity
from sidejudge.monitor.ingest.assembler import Arrival, Assembler, AssemblyLimits
from sidejudge.monitor.runtime.retention import RetentionTerms, free_space
from sidejudge.monitor.sessions.windows import SessionLimits, SessionWindows

MINUTE = 60 * 10**9
LATE, RETENTION = 10 * MINUTE, 24 * 60 * MINUTE
START = 1_790_000_000_000_000_000


def chunk(number: int, span: int = 1) -> Chunk:
    header = SpanHeader(span_id=span.to_bytes(8, "big"), parent_id=b"", root_hint=False)
    return Chunk(
        trace_id=number.to_bytes(16, "big"),
        payload=os.urandom(8192),
        headers=(header,),
        origin=ChunkOrigin("shop", None, 0),
    )


def ended(trace_id: bytes, now_ns: int, **more) -> FinishedTrace:
    return FinishedTrace(
        trace_id=trace_id, service="shop", reason="scored", completion="root", revision=1, details={}, closed_ns=now_ns,
        **more,
    )  # fmt: skip


def stated(number: int) -> str:
    return json.dumps({"said": os.urandom(4096).hex(), "number": number})


class Kept:
    """A store and an assembler that are told the same, a trace a second."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.assembler = Assembler(AssemblyLimits(grace_ns=1, late_ns=LATE))
        self.sessions = SessionWindows(SessionLimits(idle_ns=1, late_ns=LATE))
        self.caches = ()

    async def take(self, number: int, *, judged: bool = True) -> None:
        now_ns = START + number * 10**9
        await self.store.append([chunk(number)], now_ns)
        self.assembler.add(chunk(number), now_ns)
        if judged:
            for closing in self.assembler.due(now_ns + 2):
                await self.store.finish(
                    FinishedTrace(
                        trace_id=closing.trace_id, service="shop", reason="scored", completion=closing.completion,
                        revision=closing.revision, details={}, verdicts=[], closed_ns=now_ns,
                    )
                )  # fmt: skip

    async def fill(self) -> int:
        """Take traces until there is too little room; how many."""
        number = 0
        while self.store.fullness < 0.8:
            await self.take(number)
            number += 1
        return number

    async def free_space(self, now: int) -> int:
        terms = RetentionTerms(retention_ns=RETENTION, late_ns=LATE, session_late_ns=LATE, caches=self.caches)
        return await free_space(self.store, self.assembler, self.sessions, terms, now_ns=START + now * 10**9)

    async def report(self, number: int, *, judged: bool = True) -> bytes:
        """A session of one turn, a session a second; its key."""
        now_ns, trace_id = START + number * 10**9, number.to_bytes(16, "big")
        identity = SessionIdentity("shop", None, f"s{number}")
        key = self.sessions.join(identity, trace_id, 8192, now_ns)
        turn = StoredTurn(
            key=key, service="shop", environment=None, session_id=identity.session_id, turn=stated(number)
        )
        await self.store.finish(ended(trace_id, now_ns, turn=turn))
        if judged:
            for closing in self.sessions.due(now_ns + 2):
                last = self.store.turns(closing.trace_id)[-1][0]
                await self.store.finish(ended(closing.trace_id, now_ns, chunks=last))
        await self.look()
        return key

    async def look(self) -> None:
        """Have the store look at its size, as it does when spans are taken in."""
        await self.store.purge(0)

    def held(self, number: int) -> bool:
        return bool(self.store.chunks(number.to_bytes(16, "big")))


@pytest.fixture
def kept(tmp_path):
    store = Store(tmp_path / "s.sqlite", max_bytes=1 << 20)
    yield Kept(store)
    store.close()


async def test_the_oldest_go_until_there_is_room(kept):
    count = await kept.fill()
    assert await kept.free_space(count) > 0
    assert kept.store.fullness < 0.8
    held = [kept.held(number) for number in range(count)]
    assert (held[0], held[-1]) == (False, True)
    assert held == sorted(held), "older ones were kept in place of younger ones"


async def test_a_late_span_of_what_was_let_go_is_too_late_and_one_of_what_is_held_reopens_it(kept):
    count = await kept.fill()
    await kept.free_space(count)
    for number in range(count):
        expected = Arrival.REOPENS if kept.held(number) else Arrival.TOO_LATE
        assert kept.assembler.classify(chunk(number, span=2)) is expected, number


async def test_what_waits_to_be_judged_stays_however_full_the_store_is(kept):
    count = 0
    while kept.store.fullness < 0.85:
        await kept.take(count, judged=False)
        count += 1
    await kept.free_space(100_000)
    assert len(kept.store.open_traces()) == count


async def test_since_when_all_is_held_is_known_after_a_restart_and_whatever_the_clock(kept, tmp_path):
    count = await kept.fill()
    now_ns = START + count * 10**9
    assert kept.store.kept_since_ns(RETENTION, now_ns) == now_ns - RETENTION
    steps = await kept.free_space(count)
    since_ns = now_ns - (RETENTION >> steps)
    kept.store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.kept_since_ns(RETENTION, now_ns + 1) == since_ns
    assert again.kept_since_ns(MINUTE, now_ns + 1) == now_ns + 1 - MINUTE
    assert again.kept_since_ns(RETENTION, since_ns - 1) == since_ns - 1 - RETENTION, "it was of a clock that was ahead"
    again.close()


async def test_a_store_that_takes_no_record_of_it_is_cleared_all_the_same(kept, tmp_path):
    count = await kept.fill()
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as other:
        other.execute("CREATE TRIGGER none BEFORE INSERT ON facts BEGIN SELECT RAISE(ABORT, 'full'); END")
    steps = await kept.free_space(count)
    assert kept.store.fullness < 0.8
    now_ns = START + count * 10**9
    assert kept.store.kept_since_ns(RETENTION, now_ns) == now_ns - (RETENTION >> steps)


async def test_while_there_is_room_nothing_is_let_go(kept):
    for number in range(36):
        await kept.take(number)
    assert await kept.free_space(10_000) == 0
    assert all(kept.held(number) for number in range(36))


async def test_turns_of_judged_sessions_go_oldest_first_and_none_is_half_forgotten(kept):
    keys = []
    while kept.store.fullness < 0.8:
        keys.append(await kept.report(len(keys)))
    assert await kept.free_space(len(keys)) > 0
    assert kept.store.fullness < 0.8
    held = [bool(kept.store.turns(key)) for key in keys]
    assert (held[0], held[-1]) == (False, True)
    assert held == sorted(held)
    # A session goes on if and only if what was said in it is still there.
    for number, key in enumerate(keys):
        again = kept.sessions.join(
            SessionIdentity("shop", None, f"s{number}"), b"new" + bytes(13), 1, START + len(keys) * 10**9
        )
        assert (again == key) is held[number], number


async def test_sessions_that_wait_to_be_judged_stay_however_full_the_store_is(kept):
    keys = []
    while kept.store.fullness < 0.8:
        keys.append(await kept.report(len(keys), judged=False))
    await kept.free_space(len(keys))
    assert all(kept.store.turns(key) for key in keys)


async def test_caches_give_way_too_and_keep_what_was_used_last(kept):
    kept.caches = ((kept.store.judged, 1000), (kept.store.vectors, 1000))
    number = 0
    while kept.store.fullness < 0.8:
        await kept.store.judged.put({f"q{number}": os.urandom(2048).hex()}, number, 1000)
        await kept.store.vectors.put({f"t{number}": os.urandom(4096)}, number, 1000)
        await kept.look()
        number += 1
    assert kept.store.judged.get(["q0"], 0)
    assert await kept.free_space(number) > 0
    assert kept.store.fullness < 0.8
    last = number - 1
    assert (kept.store.judged.get(["q0"], 0), kept.store.vectors.get(["t0"], 0)) == ({}, {})
    assert kept.store.judged.get([f"q{last}"], 0).keys() == {f"q{last}"}
    assert kept.store.vectors.get([f"t{last}"], 0).keys() == {f"t{last}"}


async def test_while_there_is_room_caches_keep_what_they_hold(kept):
    kept.caches = ((kept.store.vectors, 10),)
    await kept.store.vectors.put({f"t{number}": b"x" for number in range(10)}, 0, 10)
    assert await kept.free_space(1) == 0
    assert len(kept.store.vectors.get([f"t{number}" for number in range(10)], 0)) == 10

"""Several monitors read one Langfuse: each trace by one of them, whoever comes, goes or hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.config.units import parse_duration
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.monitor.fleet.langfuse_share import SHARDS, FleetShare, shard_of
from sidejudge.monitor.ingest.langfuse.pull import ELSEWHERE
from tests.fakes.langfuse.observations import Observations
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.monitor.ingest.langfuse.test_pull import Bench, rows, trace_id
from tests.postgres_server import PostgresServer
from tests.waiting import until

TIMES = {"every": "100ms", "timeout": "400ms", "lease": "1500ms"}


@pytest.fixture
async def readers(postgres: PostgresServer, tmp_path: Path):
    """Benches that read one fake Langfuse as one fleet."""
    made: list[tuple[Bench, Fleet]] = []
    url = postgres.url(postgres.new_database())
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake:

        def make(name: str) -> tuple[Bench, Fleet]:
            folder = tmp_path / name
            folder.mkdir()
            access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
            bench = Bench(fake, folder, Langfuse(access, budget=RequestBudget(1e9)))
            times = {key: parse_duration(text) for key, text in TIMES.items()}
            section = FleetSection.model_validate({"database": url, "name": name, **times})
            fleet = Fleet(section, bench.store.kept.room("fleet"))
            bench.pull._share = bench.pull._taking.share = FleetShare(fleet, "project")
            made.append((bench, fleet))
            return made[-1]

        yield make
        for bench, fleet in made:
            await fleet.stop()
            await bench.langfuse.close()
            bench.store.close()


def everything(*benches: Bench) -> list[str]:
    return sorted(taken for bench in benches for taken in bench.taken())


def shards(bench: Bench) -> frozenset[int]:
    return bench.pull._share.shards


async def test_two_read_each_trace_once_and_who_stays_reads_on(readers: Callable[..., tuple[Bench, Fleet]]) -> None:
    (first, one), (second, two) = readers("a"), readers("b")
    for number in range(1, 31):
        first.put(*rows(number))
    await one.start()
    await two.start()
    await until(lambda: [len(shards(each)) for each in (first, second)] == [SHARDS // 2] * 2)
    assert not shards(first) & shards(second)
    await asyncio.gather(first.poll(3), second.poll(3))
    assert everything(first, second) == [trace_id(n) for n in range(1, 31)]
    assert first.taken(), "both have read some"
    assert second.taken(), "both have read some"

    # The first hangs: it holds nothing for sure any more, and reads nothing; the second takes its part.
    one._task.cancel()
    for number in range(31, 51):
        second.put(*rows(number, start_ns=second.now_ns - 20 * 10**9))
    await until(lambda: len(shards(second)) == SHARDS)
    await first.poll(2)
    assert first.pull.snapshot().reason == ELSEWHERE
    await second.poll(4)
    assert everything(first, second) == [trace_id(n) for n in range(1, 51)]

    # It goes on, and shares again; nothing is read twice.
    await one.start()
    await until(lambda: len(shards(first)) == SHARDS // 2)
    await asyncio.gather(first.poll(3), second.poll(3))
    assert everything(first, second) == [trace_id(n) for n in range(1, 51)]


async def test_how_far_shards_were_read_is_handed_on_by_one_who_never_read_them(
    readers: Callable[..., tuple[Bench, Fleet]],
) -> None:
    early, late = 10**18, 10**18 + 3600 * 10**9
    for name, from_ns in (("a", early), ("b", late), ("c", late)):
        bench, fleet = readers(name)
        share = bench.pull._share
        assert isinstance(share, FleetShare)
        share.from_ns = from_ns
        await fleet.start()
        await until(lambda share=share: len(share.shards) == len(share._saved) == SHARDS)
        if name != "c":
            await fleet.stop()
    assert share.cursor(range(SHARDS), late + 1) == early, "of what the first held nothing is listed less"
    share.from_ns = early
    assert share.cursor(range(SHARDS), late + 1) == late + 1, "it is known once"
    share.from_ns = late
    await until(lambda: set(share._saved.values()) == {late})


async def test_without_the_database_nobody_reads_and_it_is_caught_up(
    readers: Callable[..., tuple[Bench, Fleet]], postgres: PostgresServer
) -> None:
    bench, fleet = readers("a")
    fleet._backoff._longest_s = 0.1
    await fleet.start()
    await until(lambda: len(shards(bench)) == SHARDS)
    for number in range(1, 4):
        bench.put(*rows(number))
    with postgres.stopped():
        await bench.poll(2)
        assert bench.taken() == {}
        await until(lambda: not shards(bench))
        await bench.poll(2)
        assert bench.pull.snapshot().state == "waiting"
    await until(lambda: len(shards(bench)) == SHARDS)
    await bench.poll(4)
    assert len(bench.taken()) == 3


async def test_what_was_read_when_the_database_went_is_recorded_once_it_is_back(
    readers: Callable[..., tuple[Bench, Fleet]], postgres: PostgresServer
) -> None:
    bench, fleet = readers("a")
    fleet._backoff._longest_s = 0.1
    await fleet.start()
    await until(lambda: len(shards(bench)) == SHARDS)
    share, ids = bench.pull._share, [trace_id(number) for number in range(1, 4)]
    assert await share.claim(ids) == ({*ids}, set())
    await share.done(ids[:1])
    postgres.sql("CHECKPOINT")  # it goes as in a crash, and would forget what it wrote a moment ago
    with postgres.stopped():
        await share.done(ids[1:])
        assert share._unrecorded == {*ids[1:]}
    await until(lambda: not share._unrecorded)
    async with fleet.transaction() as transaction:
        recorded = await transaction.rows("SELECT id FROM claims WHERE done_at IS NOT NULL ORDER BY id")
    assert recorded == [(each,) for each in sorted(ids)]


def test_shards_are_even() -> None:
    counts = [sum(shard_of(trace_id(n)) == shard for n in range(8_000)) for shard in range(SHARDS)]
    assert min(counts) > 800

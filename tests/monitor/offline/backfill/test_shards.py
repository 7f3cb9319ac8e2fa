"""Shards of a job: each by one process, done for good, and alone without the database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.postgres.leases import Lease
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.config.units import parse_duration
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace
from sidejudge.monitor.offline.backfill.shards import SHARDS, Shards, shard_of
from tests.postgres_server import PostgresServer


def listed(count: int) -> list[ListedTrace]:
    return [ListedTrace.of(f"{number:032x}", 0) for number in range(count)]


def shards_of(database: str, count: int, notes: list[str], *, delivered: bool = True) -> Shards:
    section = FleetSection.model_validate({"database": database, "every": "500ms", "timeout": "1s", "lease": "4s"})

    async def is_delivered() -> bool:
        return delivered

    return Shards(section, "job", listed(count), is_delivered=is_delivered, note=notes.append)


async def judge(shards: Shards) -> list[str]:
    found = []
    async for part in shards.parts():
        found += [each.trace_id for each in part]
        assert len({shard_of(each) for each in part}) == 1
        await asyncio.sleep(0.01)
    return found


async def test_each_trace_is_one_process_s_and_what_is_done_is_done_for_the_same_traces_alone(
    postgres: PostgresServer,
) -> None:
    database, notes = postgres.url(postgres.new_database()), list[str]()
    both = [shards_of(database, 200, notes) for _ in range(2)]
    first, second = await asyncio.gather(*map(judge, both))
    assert first
    assert second
    assert sorted([*first, *second]) == [each.trace_id for each in listed(200)]
    assert [each.elsewhere for each in both] == [len(second), len(first)]
    again, more = shards_of(database, 200, notes), shards_of(database, 201, notes)
    assert not await judge(again)
    assert again.elsewhere == 200
    assert 0 < len(await judge(more)) < 200 // SHARDS * 3, "the shard of the new trace alone"
    for each in (*both, again, more):
        await each.close()
    assert not notes


async def test_what_is_not_delivered_is_not_done_and_another_does_it_once_the_lease_is_free(
    postgres: PostgresServer,
) -> None:
    database, notes = postgres.url(postgres.new_database()), list[str]()
    ended, other = shards_of(database, 50, notes, delivered=False), shards_of(database, 50, notes)
    assert len(await judge(ended)) == 50
    waits = asyncio.create_task(judge(other))
    await asyncio.sleep(0.3)
    assert not waits.done(), "the leases are held until its scores stand"
    await ended.close()
    assert len(await waits) == 50
    await other.close()


async def test_a_database_that_is_away_for_a_while_is_waited_for_and_for_longer_is_done_without(
    postgres: PostgresServer,
) -> None:
    database, notes = postgres.url(postgres.new_database()), list[str]()
    waiting, alone = shards_of(database, 20, notes), shards_of("postgresql://127.0.0.1:1/none", 5, notes)
    with postgres.stopped():
        judging = asyncio.create_task(judge(waiting))
        await asyncio.sleep(0.7)
        assert not judging.done()
    assert len(await judging) == 20
    assert not notes
    assert len(await judge(alone)) == 5
    assert "goes on alone" in notes[0]
    for each in (waiting, alone):
        await each.close()


@pytest.mark.parametrize("fault", ["no such database", "read-only"])
async def test_without_a_database_that_takes_writes_all_is_judged_and_it_is_stated(
    postgres: PostgresServer, fault: str
) -> None:
    notes = list[str]()
    database = postgres.url("nowhere" if fault == "no such database" else postgres.new_database())
    if fault == "read-only":
        database += "?options=-c%20default_transaction_read_only%3Don"
    alone = shards_of(database, 50, notes)
    assert len(await judge(alone)) == 50
    (note,) = notes
    assert "fleet.database" in note
    assert "goes on alone" in note
    assert ("target_session_attrs=read-write" if fault == "read-only" else "correct user, password") in note
    await alone.close()


async def test_leases_are_renewed_again_after_a_fault_that_nobody_foresaw(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    shards = shards_of(postgres.url(postgres.new_database()), 20, [])
    shards._section = shards._section.model_copy(update={"lease": parse_duration("200ms")})
    take, faults = shards._leases.take, [RuntimeError("unforeseen")]
    renewed = asyncio.Event()

    async def faulty(transaction: Transaction, names: Sequence[str]) -> dict[str, Lease]:
        if asyncio.current_task() is shards._renewing:
            if faults:
                raise faults.pop()
            renewed.set()
        return await take(transaction, names)

    shards._leases.take = faulty  # type: ignore[method-assign]  # nothing else brings a fault of our own about
    parts = shards.parts()
    await anext(parts)
    await asyncio.wait_for(renewed.wait(), 5)
    assert "leases of the job were not renewed" in caplog.text
    await parts.aclose()
    await shards.close()

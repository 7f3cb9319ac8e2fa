"""One holder at a time, whoever is late, paused or gone."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import Database, LeaseLost
from sidejudge.integrations.postgres.leases import SAFETY, Lease, Leases

NAME = "labels"


async def take(database: Database, leases: Leases, *names: str) -> None:
    async with database.transaction() as transaction:
        taken = await leases.take(transaction, names or (NAME,))
    leases.keep(names or (NAME,), taken)


async def test_one_of_two_holds_it_until_it_is_released(database: Database) -> None:
    first, second = Leases("first", ttl_s=60), Leases("second", ttl_s=60)
    await take(database, first)
    await take(database, second)
    assert first.held(NAME)
    assert not second.held(NAME)
    async with database.transaction() as transaction:
        await first.release(transaction, [NAME])
    await take(database, second)
    assert second.held(NAME)
    assert not first.held(NAME)


async def test_a_token_grows_with_each_holder_and_stays_with_each_renewal(database: Database) -> None:
    first, second = Leases("first", ttl_s=0.15), Leases("second", ttl_s=60)
    await take(database, first)
    await take(database, first)
    token = first.held(NAME).token
    await asyncio.sleep(0.2)
    await take(database, second)
    assert (token, second.held(NAME).token) == (1, 2)


async def test_a_holder_that_was_stopped_does_not_trust_its_lease_and_writes_nothing(database: Database) -> None:
    now_s = 100.0
    first, second = Leases("first", ttl_s=0.1, clock_s=lambda: now_s), Leases("second", ttl_s=60)
    await take(database, first)
    late = first.held(NAME)
    assert isinstance(late, Lease)
    now_s += SAFETY * 0.1
    assert first.held(NAME) is None, "its own clock says so before the database's does"
    await asyncio.sleep(0.12)
    await take(database, second)
    async with database.transaction() as transaction:
        await shared.save(transaction, second.held(NAME), {"cursor": b"second"})

    async def write_late() -> None:
        async with database.transaction() as transaction:
            await transaction.execute("DELETE FROM states")
            await shared.save(transaction, late, {"cursor": b"first"})

    with pytest.raises(LeaseLost):
        await write_late()
    async with database.transaction() as transaction:
        assert (await shared.load(transaction, ["cursor"]))["cursor"].body == b"second"


async def test_an_expired_lease_that_nobody_took_fences_as_well(database: Database) -> None:
    first = Leases("first", ttl_s=0.05)
    await take(database, first)
    late = first._held[NAME]
    await asyncio.sleep(0.1)
    with pytest.raises(LeaseLost):
        async with database.transaction() as transaction:
            await late.fence(transaction)


async def test_twenty_who_ask_at_once_find_one_holder_for_each_lease(database: Database) -> None:
    each = [Leases(f"monitor-{n}", ttl_s=60) for n in range(20)]
    databases = [Database(database._url) for _ in each]
    names = [f"pull/{n}" for n in range(4)]
    await asyncio.gather(*(take(own, leases, *names) for own, leases in zip(databases, each, strict=True)))
    assert sorted(name for leases in each for name in leases.names()) == names
    for own in databases:
        own.close()


async def test_what_was_claimed_is_done_by_one_and_handed_over_where_it_was_not_reported(database: Database) -> None:
    first, second = Leases("first", ttl_s=60), Leases("second", ttl_s=60)
    await take(database, first)

    async def claimed(leases: Leases, again_s: float) -> set[str]:
        async with database.transaction() as transaction:
            return await shared.claim(transaction, leases.held(NAME), "notice", ["a", "b"], again_s=again_s)

    assert await claimed(first, 60) == {"a", "b"}
    async with database.transaction() as transaction:
        await shared.done(transaction, "notice", ["a"])
        await first.release(transaction, [NAME])
    await take(database, second)
    assert await claimed(second, 60) == set(), "the other may be at it"
    assert await claimed(second, 0) == {"b"}, "it was begun and never reported"

"""References that one monitor of a fleet reads are every monitor's, by a real database and a fake Langfuse."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.postgres.archive import purge
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.evaluate.references.places import InCorrections, InDataset, Unreadable
from sidejudge.monitor.fleet import references as shared
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.monitor.fleet.references import STALE_S, TAKE_S, SharedPlace
from tests.fakes.langfuse.datasets import datasets_of, item, part
from tests.fakes.langfuse.observations import Observations
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.monitor.evaluate.references.test_references import correct
from tests.postgres_server import PostgresServer

ONE, TWO = "1" * 32, "2" * 32


@pytest.fixture
def fake() -> Iterator[FakeLangfuse]:
    with FakeLangfuse(Mode.NEW, parts=[Observations.part, part]) as server:
        yield server


@pytest.fixture
async def client(fake: FakeLangfuse) -> AsyncIterator[Langfuse]:
    access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
    async with Langfuse(access, budget=RequestBudget(1e9), timeout_s=5) as langfuse:
        yield langfuse


class Counting:
    """A place, and how often it was read; ``broken`` while this monitor cannot reach it."""

    def __init__(self, place: InDataset | InCorrections) -> None:
        self.entries, self.key, self._place = place.entries, place.key, place
        self.reads, self.broken = 0, False

    async def refresh(self) -> None:
        self.reads += 1
        if self.broken:
            raise Unreadable("no way there")
        await self._place.refresh()


class Member:
    """A monitor of the fleet; its minutes are those of ``now_s``."""

    def __init__(self, database: str, name: str, path: Path, place: InDataset | InCorrections) -> None:
        self.store = Store(path / f"{name}.sqlite")
        section = FleetSection.model_validate({"database": database, "name": name, "timeout": "2s"})
        self.fleet = Fleet(section, self.store.kept.room("fleet"))
        self.now_s, self.source = 1_000.0, Counting(place)
        self.place = SharedPlace(self.source, "the place", self.fleet, clock_s=lambda: self.now_s)

    async def minute(self, *, pass_s: float = TAKE_S) -> None:
        """What the repeated reading and a round of the fleet do; then time passes."""
        await self.place.refresh()
        await self.fleet.round()
        self.now_s += pass_s

    @property
    def held(self) -> dict[str, object]:
        return dict(self.place.entries.held)

    async def stop(self) -> None:
        await self.fleet.stop()
        self.store.close()


@pytest.fixture
async def members(postgres: PostgresServer, tmp_path: Path, client: Langfuse, request) -> AsyncIterator[list[Member]]:
    database = postgres.url(postgres.new_database())
    kind = getattr(request, "param", "dataset")
    places = [
        InDataset(client, "golden", None) if kind == "dataset" else InCorrections(client, time.time_ns, 86_400 * 10**9)
        for _ in range(3)
    ]
    found = [Member(database, name, tmp_path, place) for name, place in zip("abc", places, strict=True)]
    yield found
    for each in found:
        await each.stop()


async def test_one_monitor_reads_and_all_have_it_and_each_reads_while_the_database_is_away(fake, members, postgres):
    reader, *others = members
    datasets_of(fake)["golden"] = [item("first", sourceTraceId=ONE)]
    for each in members:
        await each.minute()
    assert [each.source.reads for each in members] == [1, 1, 1], "at its start each reads it, before it knows of others"
    datasets_of(fake)["golden"] = [item("second", sourceTraceId=ONE), item({"a": [None, "\ud800"]}, sourceTraceId=TWO)]
    for _ in range(3):
        for each in members:
            await each.minute()
    assert [each.source.reads for each in members] == [4, 1, 1]
    assert reader.held == {ONE: "second", TWO: {"a": [None, "\ud800"]}}
    for other in others:
        assert other.held == reader.held
        assert other.place.entries.digests() == reader.place.entries.digests()
        assert other.place.entries.get(ONE) == "second"
    datasets_of(fake)["golden"] = []
    with postgres.stopped():
        for each in members:
            await each.fleet.round()
            await each.place.refresh()
    assert [each.source.reads for each in members] == [5, 2, 2]
    assert [each.held for each in members] == [{}, {}, {}]


@pytest.mark.parametrize("members", ["corrections"], indirect=True)
async def test_a_reader_that_ends_is_followed_by_another_that_knows_edits_and_deletions(fake, members):
    reader, follower, other = members
    correct(fake, ONE, "right", id="one")
    correct(fake, TWO, "kept", id="two")
    for _ in range(3):
        for each in members:
            await each.minute()
    correct(fake, ONE, "edited", id="one")
    reader.place._place._place._all_due_ns = 0  # the reader's next listing is a whole one
    for _ in range(3):
        for each in members:
            await each.minute()
    assert follower.held == other.held == {ONE: "edited", TWO: "kept"}
    version = follower.place.entries.version
    for each in (follower, other):  # with thousands of corrections a whole listing is not due for some time
        each.source._place._all_due_ns = time.time_ns() + 3_600 * 10**9
        each.source._place._since_ns = time.time_ns()
    await reader.stop()
    for _ in range(3):
        for each in (follower, other):
            await each.minute()
    assert follower.fleet.held(follower.place.lease) or other.fleet.held(other.place.lease)
    assert follower.held == other.held == {ONE: "edited", TWO: "kept"}
    assert follower.place.entries.version == version, "nothing looked changed while the reader did"


async def test_who_cannot_read_the_place_leaves_it_to_another_and_has_what_that_one_reads(fake, members):
    reader, other, _ = members
    datasets_of(fake)["golden"] = [item("first", sourceTraceId=ONE)]
    for _ in range(2):
        await reader.minute()
        await other.minute()
    reader.source.broken = True
    with pytest.raises(Unreadable):
        await reader.place.refresh()
    datasets_of(fake)["golden"] = [item("second", sourceTraceId=ONE)]
    for _ in range(3):
        await reader.fleet.round()
        await other.minute()
        reader.now_s += TAKE_S
    assert (reader.held, other.held) == ({ONE: "second"}, {ONE: "second"})
    await reader.place.refresh()  # which does not raise: it is read elsewhere
    assert other.fleet.held(other.place.lease) is not None


async def test_what_a_monitor_has_read_later_than_the_reader_stays(fake, members):
    reader, other, _ = members
    datasets_of(fake)["golden"] = [item("first", sourceTraceId=ONE)]
    await reader.minute()
    datasets_of(fake)["golden"] = [item("second", sourceTraceId=ONE)]
    other.now_s += 10
    await other.place.refresh()
    other.now_s -= 10 - 1
    await other.fleet.round()
    assert other.held == {ONE: "second"}


async def test_what_was_not_read_for_a_while_or_makes_no_sense_is_read_by_each(fake, members, caplog):
    reader, other, third = members
    datasets_of(fake)["golden"] = [item("first", sourceTraceId=ONE)]
    for _ in range(2):
        await reader.minute()
        await other.minute()
    before = other.source.reads
    await other.minute()
    assert other.source.reads == before
    other.now_s += STALE_S
    await other.minute()
    assert other.source.reads == before + 1, "its reader has not read it for a while"
    bodies = {
        "announced": zlib.compress(b'{"x": "y"}'),
        "decompressing": b"\xff\xfe",
        "no JSON object": zlib.compress(b"[1]"),
    }
    for cause, body in bodies.items():
        caplog.clear()
        async with reader.fleet.database.transaction() as transaction:
            sql = "UPDATE states SET body = %s WHERE name = %s"
            if cause == "no JSON object":
                head = f'{{"digest": "{shared._digest(b"[1]", whole=True)}", "whole": true, "age_s": 0}}'
                await transaction.execute(sql, (head.encode(), reader.place.lease))
            await transaction.execute(sql, (body, f"{reader.place.lease}/body"))
        await third.fleet.round()
        third.now_s += TAKE_S
        assert "references of the fleet cannot be taken" in caplog.text
        assert cause in caplog.records[-1].__dict__["cause"]
        assert not third.held
    await third.place.refresh()
    assert third.held == {ONE: "first"}


async def test_a_place_that_is_too_large_is_read_by_each(fake, members, caplog, monkeypatch):
    monkeypatch.setattr(shared, "MOST_BYTES", 10)
    datasets_of(fake)["golden"] = [item("first", sourceTraceId=ONE)]
    for _ in range(2):
        for each in members:
            await each.minute()
    assert [each.source.reads for each in members] == [2, 2, 2]
    assert Counter(record.message for record in caplog.records)[
        "references of a place are too large to be shared; each monitor reads them"
    ] == len(members)


async def test_what_nobody_reads_any_more_is_deleted_after_a_day_and_not_what_is_read(fake, members):
    reader, other, _ = members
    datasets_of(fake)["golden"] = [item("first", sourceTraceId=ONE)]
    await reader.minute()
    names = {reader.place.lease, f"{reader.place.lease}/body"}

    async def after(hours: int) -> set[str]:
        async with other.fleet.database.transaction() as transaction:
            await transaction.execute(
                "UPDATE states SET written_at = written_at - make_interval(hours => %s)", (hours,)
            )
            await purge(transaction, results_s=1, windows_s=1, answers_s=1, answers=1)
            return {name for (name,) in await transaction.rows("SELECT name FROM states")}

    await other.fleet.round()
    assert await after(20) == names
    await reader.minute()
    assert await after(20) == names, "it was read in between, and did not change"
    assert await after(20) == set()

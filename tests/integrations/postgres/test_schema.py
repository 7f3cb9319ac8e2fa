"""Versions of the schema: forward, once, with monitors of two versions side by side, under few rights."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files

import pytest

from sidejudge.integrations.postgres import schema, shared
from sidejudge.integrations.postgres.database import Database, DatabaseRefuses
from sidejudge.integrations.postgres.schema import VERSION, SchemaVersion
from tests.postgres_server import PostgresServer
from tests.running import ROOT

NEXT = "ALTER TABLE windows ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'; CREATE TABLE more (n INTEGER)"


def read(version: int) -> str:
    return NEXT if version > VERSION else schema.statements(version)


async def test_monitors_that_start_together_migrate_once(postgres: PostgresServer) -> None:
    url = postgres.url(postgres.new_database())
    each = [Database(url) for _ in range(5)]
    went = await asyncio.gather(*(schema.migrate(database) for database in each))
    assert min(before for before, _ in went) == 0
    assert {after for _, after in went} == {VERSION}
    async with each[0].transaction() as transaction:
        assert await transaction.rows("SELECT count(*) FROM schema_version") == [(VERSION,)]
    for database in each:
        database.close()


async def test_a_monitor_of_the_version_before_goes_on_beside_the_next(database: Database) -> None:
    async with database.transaction() as transaction:
        await shared.put_windows(transaction, "old", {"a": b"1"})
    assert await schema.migrate(database, to=VERSION + 1, read=read) == (VERSION, VERSION + 1)
    async with database.transaction() as transaction:
        (await schema.version_of(transaction)).check()
        await shared.put_windows(transaction, "old", {"a": b"2", "b": b"3"})
        assert [row[:3] for row in await shared.windows(transaction)] == [("old", "a", b"2"), ("old", "b", b"3")]
    assert await schema.migrate(database) == (VERSION + 1, VERSION + 1), "the older one changes nothing"


async def test_windows_of_a_monitor_that_never_registered_count_nowhere(database: Database) -> None:
    async with database.transaction() as transaction:
        await shared.heartbeat(transaction, "known", version="1", host="h", started_s=0.0, gone_s=60.0)
        for monitor in ("known", "stranger"):
            await shared.put_windows(transaction, monitor, {"29833333": b"x"})
        assert [row.monitor for row in await shared.windows(transaction, younger_s=60.0)] == ["known"]


async def test_a_migration_that_fails_leaves_nothing_behind(database: Database) -> None:
    with pytest.raises(DatabaseRefuses):
        await schema.migrate(database, to=VERSION + 1, read=lambda _: NEXT + "; CREATE TABLE windows ()")
    async with database.transaction() as transaction:
        assert (await schema.version_of(transaction)).version == VERSION
        assert await transaction.rows("SELECT to_regclass('more')") == [(None,)]


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (SchemaVersion(0, 0), "fleet migrate"),
        (SchemaVersion(VERSION, 1), None),
        (SchemaVersion(VERSION + 3, 1), None),
        (SchemaVersion(VERSION + 3, VERSION + 1), "update this monitor"),
    ],
)
def test_a_schema_fits_or_a_person_reads_why_not(found: SchemaVersion, remedy: str | None) -> None:
    if remedy is None:
        found.check()
    else:
        with pytest.raises(DatabaseRefuses, match=remedy):
            found.check()


def test_each_version_that_is_named_has_its_file() -> None:
    there = {
        each.name for each in files("sidejudge.integrations.postgres").iterdir() if each.name.startswith("schema_")
    }
    assert there == {f"schema_{n}.sql" for n in range(1, VERSION + 1)}


async def test_the_documented_rights_are_enough_and_creating_is_not_among_them(postgres: PostgresServer) -> None:
    name = postgres.new_database()
    owner = Database(postgres.url(name))
    page = (ROOT / "docs" / "how-to" / "fleet.md").read_text()
    grants = re.search(r"```sql[^\n]*\n(.*?GRANT.*?)```", page, re.DOTALL)
    assert grants is not None
    before, after = re.split(r"-- then, after `sidejudge fleet migrate`.*\n", grants[1])
    user = f"monitor_{name}"
    own = {"sidejudge_monitor": user, "sidejudge_owner": f"owner_{name}", "fleet_database": name}

    def here(sql: str) -> str:
        for written, used in own.items():
            sql = sql.replace(written, used)
        return sql

    postgres.sql(here(before), name)
    creating = Database(postgres.url(name, user=own["sidejudge_owner"]))
    await schema.migrate(creating)
    postgres.sql(here(after), name)
    few = Database(postgres.url(name, user=user))
    assert await schema.migrate(few) == (VERSION, VERSION)
    async with few.transaction() as transaction:
        await shared.heartbeat(transaction, "m", version="1", host="h", started_s=0, gone_s=60.0)
        await shared.put_windows(transaction, "m", {"a": b"1"})
        assert len(await shared.monitors(transaction)) == 1
    for sql in ("CREATE TABLE more ()", "DROP TABLE windows", "DELETE FROM schema_version", "CREATE SCHEMA mine"):
        with pytest.raises(DatabaseRefuses):
            async with few.transaction() as transaction:
                await transaction.execute(sql)
    for each in (owner, creating, few):
        each.close()

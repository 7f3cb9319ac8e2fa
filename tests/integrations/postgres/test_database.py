"""Transactions that end in time whatever the database does, and errors that name no password."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from sidejudge.integrations.postgres.database import Database, DatabaseAway, DatabaseRefuses, cause, without_credentials
from tests.postgres_server import PostgresServer, SlowProxy


async def ask(database: Database, sql: str = "SELECT 1") -> object:
    async with database.transaction() as transaction:
        return (await transaction.rows(sql))[0][0]


async def test_a_transaction_is_committed_whole_or_not_at_all(database: Database) -> None:
    async def broken_off() -> None:
        async with database.transaction() as transaction:
            await transaction.execute("INSERT INTO answers (key, body) VALUES ('k', '1')")
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        await broken_off()
    assert await ask(database, "SELECT count(*) FROM answers") == 0


async def test_a_text_that_has_no_utf_8_is_refused_as_data_and_the_next_is_taken(database: Database) -> None:
    async def write(text: str) -> None:
        async with database.transaction() as transaction:
            await transaction.execute("INSERT INTO answers (key, body) VALUES (%s, '1')", (text,))

    with pytest.raises(DatabaseRefuses) as refused:
        await write("\ud800")
    assert refused.value.data
    await write("ä")
    assert await ask(database, "SELECT string_agg(key, ',') FROM answers") == "ä"


async def test_a_connection_is_left_when_nobody_uses_it(postgres: PostgresServer) -> None:
    database = Database(postgres.url(), rest_s=0.05)
    assert [await ask(database), await ask(database)] == [1, 1]
    assert database.connects == 1
    await asyncio.sleep(0.15)
    backends = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sidejudge' AND pid <> pg_backend_pid()"
    assert postgres.sql(backends) == [(0,)]
    assert await ask(database) == 1
    assert database.connects == 2
    database.close()


@pytest.mark.parametrize("fault", ["hangs", "holds_back", "nobody_listens", "query_too_long"])
async def test_a_database_that_does_not_answer_is_left_in_time(postgres: PostgresServer, fault: str) -> None:
    async with SlowProxy(postgres.port) as proxy:
        database = Database(postgres.url(port=proxy.port), timeout_s=0.3)
        sql = "SELECT pg_sleep(30)" if fault == "query_too_long" else "SELECT 1"
        if fault == "holds_back":
            await ask(database)  # the connection is there; answers stop
            proxy.delay_s = 30
        elif fault == "hangs":
            proxy.delay_s = 30
        elif fault == "nobody_listens":
            proxy.close()
        begun = time.monotonic()
        with pytest.raises(DatabaseAway):
            await ask(database, sql)
        assert time.monotonic() - begun < 10
        database.close()


async def test_it_goes_on_after_a_restart_of_the_database(postgres: PostgresServer) -> None:
    database = Database(postgres.url(), timeout_s=2)
    assert await ask(database) == 1
    with postgres.stopped(), pytest.raises(DatabaseAway):
        await ask(database)
    assert await ask(database) == 1
    database.close()


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("postgresql://owner:s3cret-Pass@127.0.0.1:1/postgres", DatabaseAway),
        ("postgresql://owner:s3cret-Pass@127.0.0.1:{port}/absent", DatabaseRefuses),
        ("postgresql://nobody-s3cret:s3cret-Pass@127.0.0.1:{port}/postgres", DatabaseRefuses),
        ("postgresql://owner:s3cret-Pass@127.0.0.1:{port}/postgres?sslmode=verify-full", DatabaseRefuses),
        ("postgresql://owner:s3cret-Pass@127.0.0.1:{port}/postgres?nonsense=s3cret-Pass", DatabaseRefuses),
        ("postgresql://owner:s3cret-Pass@127.0.0.1:99999999/postgres", DatabaseAway),
    ],
)
async def test_no_error_names_the_password(
    postgres: PostgresServer, url: str, refused: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    database = Database(url.format(port=postgres.port), timeout_s=1)
    with pytest.raises(refused) as error:
        await ask(database)
    assert "s3cret-Pass" not in str(error.value) + caplog.text + database.shown
    assert "\n" in str(error.value) or refused is DatabaseAway, "what a person must mend has a remedy"
    assert error.value.__cause__ is None


def test_addresses_and_causes_are_shown_without_secrets() -> None:
    url = "postgresql://u:p%40ss%2Fw0rd@db.example:5432/fleet?password=other"
    assert without_credentials(url) == "postgresql://db.example:5432/fleet"
    for text in ("password p@ss/w0rd is wrong", "for p%40ss%2Fw0rd", "password='a b' host=x", "at postgres://u:zzz@h"):
        clean = cause(RuntimeError(text), url)
        assert not any(secret in clean for secret in ("p@ss", "p%40", "a b", "zzz"))


@pytest.mark.parametrize(
    ("code", "refused", "data"),
    [
        ("53100", DatabaseAway, None),  # the disk is full
        ("53300", DatabaseAway, None),  # too many connections
        ("57P01", DatabaseAway, None),  # it is shut down
        ("40P01", DatabaseAway, None),  # a deadlock
        ("55P03", DatabaseAway, None),  # a lock that was not to be had in time
        ("42501", DatabaseRefuses, False),  # rights are missing
        ("42P01", DatabaseRefuses, False),  # a table is missing
        ("22P05", DatabaseRefuses, True),  # a character that it has no form for
    ],
)
async def test_what_waiting_mends_is_divided_from_what_needs_a_person(
    postgres: PostgresServer, code: str, refused: type[Exception], *, data: bool | None
) -> None:
    database = Database(postgres.url())
    with pytest.raises(refused) as error:
        await ask(database, f"DO $$ BEGIN RAISE EXCEPTION 'fault' USING ERRCODE = '{code}'; END $$")
    assert getattr(error.value, "data", None) is data
    assert await ask(database) == 1, "and it goes on"
    database.close()


@pytest.mark.parametrize(
    ("options", "cause", "remedy"),
    [
        ("?sslmode=require", "SSL was required", "ssl = on"),
        ("?sslmode=bogus", "invalid sslmode", "correct sslmode"),
        ("?bogus=1&password=s3cret-Pass", "invalid URI", "correct the address"),
        ("?connect_timeout=soon", "bad value for", "correct the address"),
        (f"?host={'a' * 64}.example", "no name of a host", "correct the address"),
        ("?port=x", "invalid integer value", "correct the address"),
    ],
)
async def test_an_address_that_cannot_work_is_refused_with_the_remedy_and_without_the_password(
    postgres: PostgresServer, options: str, cause: str, remedy: str
) -> None:
    with pytest.raises(DatabaseRefuses) as caught:
        async with Database(postgres.url() + options).transaction():
            pass
    stated, _, to_do = str(caught.value).partition("\n")
    assert cause in stated
    assert remedy in to_do
    assert "s3cret" not in str(caught.value)


async def test_a_server_that_wants_tls_is_named_as_such(postgres: PostgresServer) -> None:
    rules = postgres.data / "pg_hba.conf"
    before = rules.read_text()
    postgres.sql("CREATE ROLE by_tls LOGIN")
    rules.write_text("hostssl all by_tls 127.0.0.1/32 trust\nhost all owner 127.0.0.1/32 trust\n")
    try:
        postgres.sql("SELECT pg_reload_conf()")
        await asyncio.sleep(0.3)
        with pytest.raises(DatabaseRefuses, match=r"no encryption\ntake TLS, sslmode=verify-full"):
            async with Database(postgres.url(user="by_tls")).transaction():
                pass
    finally:
        rules.write_text(before)
        postgres.sql("SELECT pg_reload_conf()")

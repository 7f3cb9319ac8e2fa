"""``sidejudge fleet``: the schema is brought forward once, and who is there is listed with what each holds."""

from __future__ import annotations

import asyncio

import yaml

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import Database
from sidejudge.integrations.postgres.schema import VERSION
from tests.postgres_server import PostgresServer


def test_the_schema_is_brought_forward_once_and_monitors_are_listed(call, postgres: PostgresServer, tmp_path):
    url = postgres.url(postgres.new_database())
    config = tmp_path / "sidejudge.yaml"
    config.write_text(yaml.safe_dump({"fleet": {"database": url}}))
    place = f"schema sidejudge at {url.replace('owner:s3cret-Pass@', '')}"
    for end in (f"version 0 → {VERSION}", f"version {VERSION}, as it was"):
        done = call("fleet", "migrate", "--config", config)
        assert (done.exit_code, done.stdout) == (0, f"{place}: {end}\n"), done.output
    assert call("fleet", "monitors", "--config", config).stdout == "no monitor was there yet\n"
    asyncio.run(two_monitors(url))
    done = call("fleet", "monitors", "--config", config)
    assert done.stdout == "east  1.2.3  seen 0 s ago  alerts, purge\nwest  1.2.3  left\n"


async def two_monitors(url: str) -> None:
    database = Database(url)
    async with database.transaction() as transaction:
        for name in ("east", "west"):
            await shared.heartbeat(transaction, name, version="1.2.3", host="h", started_s=0.0, gone_s=60.0)
        await shared.leave(transaction, "west")
        for lease in ("alerts", "purge"):
            await transaction.execute(
                "INSERT INTO leases (name, holder, token, expires_at) VALUES (%s, 'east/1', 1, now() + '1 h')",
                (lease,),
            )
    database.close()


def test_a_database_that_is_away_ends_the_command_with_its_cause(call, tmp_path):
    config = tmp_path / "sidejudge.yaml"
    config.write_text(yaml.safe_dump({"fleet": {"database": "postgresql://u:s3cret@127.0.0.1:1/none"}}))
    done = call("fleet", "monitors", "--config", config)
    assert done.exit_code != 0
    assert "s3cret" not in done.output
    assert "see that the database answers" in done.stderr
    assert call("fleet", "migrate").exit_code != 0, "no fleet is configured"

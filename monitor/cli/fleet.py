"""``sidejudge fleet``: the database that the monitors of a fleet share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidejudge.monitor.fleet.fleet import database_of

from .errors import CALL, CommandError
from .settings import config_option, runnable

if TYPE_CHECKING:
    from sidejudge.integrations.postgres.database import Database


@click.group()
def fleet() -> None:
    """Look after the fleet's database."""


@fleet.command()
@config_option
def migrate(config: Path | None) -> None:
    """Bring the tables forward to this version, or create them; monitors of the version before go on beside it.

    fleet.database must name the role that may do so: the owner of the schema.
    """
    from sidejudge.integrations.postgres import schema

    async def bring(database: Database) -> str:
        before, after = await schema.migrate(database)
        place = f"schema {database.schema} at {database.shown}"
        return f"{place}: version {before} → {after}" if after > before else f"{place}: version {after}, as it was"

    click.echo(_with(config, bring))


@fleet.command()
@config_option
def monitors(config: Path | None) -> None:
    """List the monitors of the fleet, and the leases of each."""
    from sidejudge.integrations.postgres import shared

    async def read(database: Database) -> str:
        async with database.transaction() as transaction:
            there = await shared.monitors(transaction)
            held = await transaction.rows(
                "SELECT split_part(holder, '/', 1), string_agg(name, ', ' ORDER BY name) FROM leases "
                "WHERE expires_at > now() GROUP BY 1"
            )
        leases: dict[str, str] = dict(held)
        lines = [
            f"{row.monitor}  {row.version}  {'left' if row.left else f'seen {row.age_s:.0f} s ago'}  "
            f"{leases.get(row.monitor, '')}".rstrip()
            for row in there
        ]
        return "\n".join(lines) or "no monitor was there yet"

    click.echo(_with(config, read))


def _with(config: Path | None, work: Callable[[Database], Awaitable[str]]) -> str:
    from sidejudge.integrations.postgres.database import DatabaseError

    section = runnable(config).config.fleet
    if section is None:
        raise CommandError("no fleet is configured", "name the configuration with --config", CALL)

    async def run() -> str:
        database = database_of(section)
        try:
            return await work(database)
        finally:
            database.close()

    try:
        return asyncio.run(run())
    except DatabaseError as error:
        cause, _, remedy = str(error).partition("\n")
        raise CommandError(cause, remedy or "see that the database answers, and call it again") from error

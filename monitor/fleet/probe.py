"""Whether the fleet's database answers, has this version's tables, and grants this role a monitor's rights."""

from __future__ import annotations

import time
from typing import Final

from sidejudge.integrations.postgres import schema
from sidejudge.integrations.postgres.database import DatabaseError
from sidejudge.monitor.config.fleet import FleetSection

from .fleet import SKEW_S, check_identity, database_of

_ABOUT: Final = """
SELECT current_setting('server_version'), current_setting('max_connections')::int, pg_is_in_recovery(),
    current_setting('transaction_read_only') = 'on', extract(epoch FROM clock_timestamp())::float8
"""
_RIGHTS: Final = """
SELECT tablename FROM pg_tables
WHERE schemaname = %s AND tablename <> 'schema_version'
    AND NOT has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT, INSERT, UPDATE')
ORDER BY 1
"""


async def try_database(section: FleetSection) -> tuple[str, str]:
    """(what was found, what to do about it; empty when it is well)."""
    database = database_of(section)
    begun_s = time.monotonic()
    try:
        async with database.transaction() as transaction:
            [(server, connections, standby, read_only, database_s)] = await transaction.rows(_ABOUT)
            skew_s = time.time() - database_s
            found = await schema.version_of(transaction)
            refused = [name for (name,) in await transaction.rows(_RIGHTS, (section.schema_name,))]
        took_ms = (time.monotonic() - begun_s) * 1e3
        known = f"PostgreSQL {server} at {database.shown}, {took_ms:.0f} ms, {connections} connections at most"
        if abs(skew_s) > SKEW_S:
            way = "behind" if skew_s > 0 else "ahead of"
            return f"{known}; its clock is {abs(skew_s):,.0f} s {way} this monitor's", "set both clocks by NTP"
        if standby or read_only:
            return (
                f"{known}; it {'is a standby' if standby else 'takes no writes'}",
                "name the primary: target_session_attrs=read-write in fleet.database",
            )
        if found.version == 0:
            return f"{known}; without tables", "" if section.migrate else "run `sidejudge fleet migrate`"
        if not section.migrate or found.version > schema.VERSION:
            found.check()
        if "leases" not in refused:
            async with database.transaction() as transaction:
                await check_identity(transaction, section)
        if refused:
            return (
                f"{known}; no rights on {', '.join(refused)}",
                "grant the rights that 'sidejudge help how-to/fleet' lists",
            )
    except DatabaseError as error:
        cause, _, remedy = str(error).partition("\n")
        return cause, remedy or "see that the database answers from here"
    finally:
        database.close()
    return f"{known}, tables of version {found.version}", ""

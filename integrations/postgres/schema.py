"""The schema of the fleet's database, brought forward by version; two versions of the program share it meanwhile.

A migration only adds: tables, columns with a default, indexes. A monitor of the version before goes on beside it. The
few that take something away raise ``oldest``, below which a monitor stays alone and reports that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from .database import Database, DatabaseRefuses, Transaction, queries

VERSION: Final = 1
"""The version of the schema that this program writes."""
OLDEST: Final[dict[int, int]] = {}
"""The oldest version of the program's schema that works on a version; where nothing is named, 1."""


class SchemaVersion(NamedTuple):
    """What the database holds: its version, 0 without tables, and the oldest program that works with it."""

    version: int
    oldest: int

    def check(self, program: int = VERSION) -> None:
        """Raise ``DatabaseRefuses`` where a program of this version cannot use it."""
        if self.version < program:
            raise DatabaseRefuses(
                f"fleet.database: its schema is of version {self.version}, this program needs {program}\n"
                "run `sidejudge fleet migrate` as the owner of the schema"
            )
        if self.oldest > program:
            raise DatabaseRefuses(
                f"fleet.database: its schema is of version {self.version}, this program knows {program}\n"
                "update this monitor"
            )


@cache
def statements(version: int) -> str:
    """What brings a database of the version before to this version. It is never changed afterwards."""
    return files(__package__).joinpath(f"schema_{version}.sql").read_text("utf-8")


async def version_of(transaction: Transaction) -> SchemaVersion:
    """The version of the schema that is there."""
    if not (await transaction.rows("SELECT to_regclass('schema_version')"))[0][0]:
        return SchemaVersion(0, 0)
    found = await transaction.rows("SELECT max(version), max(oldest) FROM schema_version")
    return SchemaVersion(found[0][0] or 0, found[0][1] or 0)


async def migrate(
    database: Database, *, to: int = VERSION, read: Callable[[int], str] = statements, timeout_s: float = 60.0
) -> tuple[int, int]:
    """Bring the schema forward in one transaction; the version before and after.

    Monitors that start together do it once. A database that is newer stays as it is. Rights to create are needed
    only where there is something to do.
    """
    async with database.transaction() as transaction:
        before = await version_of(transaction)
    if before.version >= to:
        return before.version, before.version
    async with database.transaction(timeout_s=timeout_s) as transaction:
        await transaction.execute(queries()["lock_schema"], (database.schema,))
        exists = await transaction.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", (database.schema,))
        if not exists:
            await transaction.execute(f"CREATE SCHEMA {quoted(database.schema)}")
        await transaction.execute(queries()["make_versions"])
        before = await version_of(transaction)
        for version in range(before.version + 1, to + 1):
            await transaction.execute(read(version))
            await transaction.execute(
                "INSERT INTO schema_version (version, oldest) VALUES (%s, %s)", (version, OLDEST.get(version, 1))
            )
        return before.version, max(before.version, to)


def quoted(name: str) -> str:
    """An identifier as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'

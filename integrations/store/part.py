"""Part: some of the store's tables with methods of their own, behind its one writer and its reading connection.

Texts by name that are read at a start have checksums: one of which a byte changed is left out, not read as another.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .connection import queries

Write: TypeAlias = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Does work in a transaction; returns what it returned once that is committed."""
Read: TypeAlias = Callable[[str, Sequence[object] | Mapping[str, object]], list[Any]]
"""Rows of a statement of ``queries.sql``, by its name."""

log = logging.getLogger("sidejudge")


def with_checksum(name: str, value: str) -> tuple[str, str, int]:
    """A row of a table of texts by name."""
    return name, value, zlib.crc32(f"{name}\0{value}".encode())


def as_written(rows: Iterable[tuple[str, str, int | None]]) -> dict[str, str]:
    """The texts of such rows that are what was written; the names of the others are logged."""
    found = dict[str, str]()
    for name, value, checksum in rows:
        if checksum is not None and (name, value, checksum) != with_checksum(name, value):
            log.warning("a text in the store is not what was written, and is left out", extra={"name_of": name[:200]})
            continue
        found[name] = value
    return found


class Part:
    """The store's access for each of its parts. Both raise ``StoreError``."""

    def __init__(self, *, write: Write, read: Read) -> None:
        self._write = write
        self._read = read
        self._sql = queries()

    async def _do(self, name: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> int:
        """Run one statement in a transaction; how many rows it changed."""
        return int(await self._write(lambda connection: connection.execute(self._sql[name], parameters).rowcount))

    async def _do_each(self, name: str, rows: Sequence[Sequence[object] | Mapping[str, object]]) -> None:
        """Run it for each of these rows, in one transaction."""
        await self._write(lambda connection: connection.executemany(self._sql[name], rows) and None)

"""Part: some of the store's tables with methods of their own, behind its one writer and its reading connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .connection import queries

Write: TypeAlias = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Does work in a transaction; returns what it returned once that is committed."""
Read: TypeAlias = Callable[[str, Sequence[object] | Mapping[str, object]], list[Any]]
"""Rows of a statement of ``queries.sql``, by its name."""


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

"""Part: some of the store's tables with methods of their own, behind its one writer and its reading connection.

Texts by name that are read at a start have checksums: a text with a changed byte is left out.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from .connection import queries

Write: TypeAlias = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Does work in a transaction; returns what it returned once that is committed."""
Read: TypeAlias = Callable[[str, Sequence[object] | Mapping[str, object]], list[Any]]
"""Rows of a statement of ``queries.sql``, by its name."""

log = logging.getLogger("sidejudge")

_END_OF_ROOM = "\x1f"
"""Stands between the name of a room and the name that it keeps something under."""


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


class TextsByName(Protocol):
    """Texts by name that outlive the process."""

    def all(self) -> dict[str, str]: ...
    async def change(self, values: Mapping[str, str | None], /) -> None: ...


class KeyValueTable(Part):
    """``change`` returns once committed. Raises ``StoreError``.

    What is kept under the name of a ``room`` is apart from everything else.
    """

    def all(self) -> dict[str, str]:
        """Everything that is kept, apart from what rooms keep."""
        return {name: text for name, text in as_written(self._read("kept", ())).items() if _END_OF_ROOM not in name}

    def room(self, name: str) -> KeyValueRoom:
        """The same table for the names of one room alone."""
        return KeyValueRoom(self, name + _END_OF_ROOM)

    def under(self, prefix: str) -> dict[str, str]:
        """The notes with this prefix, by the rest of the name."""
        kept = (row for row in self._read("kept", ()) if row[0].startswith(prefix))
        return {name.removeprefix(prefix): text for name, text in as_written(kept).items()}

    async def change(self, values: Mapping[str, str | None]) -> None:
        """Keep these, all or none; ``None`` lets a name go."""
        if not values:
            return
        kept = [with_checksum(name, value) for name, value in values.items() if value is not None]
        gone = [(name,) for name, value in values.items() if value is None]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["keep"], kept)
            connection.executemany(self._sql["let_go"], gone)

        await self._write(work)


class KeyValueRoom:
    """Names that one room keeps, changed together or not at all."""

    def __init__(self, table: KeyValueTable, prefix: str) -> None:
        self._table, self._prefix = table, prefix

    def all(self) -> dict[str, str]:
        """Everything that the room keeps."""
        return self._table.under(self._prefix)

    async def change(self, values: Mapping[str, str | None]) -> None:
        """Keep these, all or none; ``None`` lets a name go."""
        await self._table.change({self._prefix + name: value for name, value in values.items()})

"""Part: some tables of the store, with methods that use the store's one writer and its reading connection.

Texts by name (``KeyValueTable``) are read when the monitor starts. Each has a checksum, and a text with a changed byte
is left out. ``Lru`` is a bounded table of values that can be computed again: the value that was not used for longest
is deleted first. The times of use are written together with the next value, so that reading writes nothing; a crash
loses only the times of use since then.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from .connection import queries

Write: TypeAlias = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Does work in a transaction; returns what it returned once that is committed."""
Read: TypeAlias = Callable[[str, Sequence[object] | Mapping[str, object]], list[Any]]
"""Rows of a statement of ``queries.sql``, by its name."""

log = logging.getLogger("sidejudge")

_END_OF_ROOM = "\x1f"
"""Separates the name of a room from the name under which it keeps a text."""


def with_checksum(name: str, value: str) -> tuple[str, str, int]:
    """A row of a table of texts by name."""
    return name, value, zlib.crc32(f"{name}\0{value}".encode())


def as_written(rows: Iterable[tuple[str, str, int | None]]) -> dict[str, str]:
    """The texts whose checksum is right, by name; the names of the others are logged."""
    found = dict[str, str]()
    for name, value, checksum in rows:
        if checksum is not None and (name, value, checksum) != with_checksum(name, value):
            log.warning("a text in the store is not what was written, and is left out", extra={"name_of": name[:200]})
            continue
        found[name] = value
    return found


class Part:
    """A part's access to the store. Reading and writing raise ``StoreError``."""

    def __init__(self, *, write: Write, read: Read) -> None:
        self._write = write
        self._read = read
        self._sql = queries()

    async def _do(self, name: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> int:
        """Run one statement in a transaction, and return how many rows it changed."""
        return int(await self._write(lambda connection: connection.execute(self._sql[name], parameters).rowcount))

    async def _do_each(self, name: str, rows: Sequence[Sequence[object] | Mapping[str, object]]) -> None:
        """Run one statement for each of these rows, in one transaction."""
        await self._write(lambda connection: connection.executemany(self._sql[name], rows) and None)

    def _text_change(
        self, put: str, delete: str, values: Mapping[str, str | None]
    ) -> Callable[[sqlite3.Connection], None]:
        """The work that writes texts by name with these two statements; ``None`` deletes a text."""
        kept = [with_checksum(name, value) for name, value in values.items() if value is not None]
        gone = [(name,) for name, value in values.items() if value is None]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql[put], kept)
            connection.executemany(self._sql[delete], gone)

        return work


class TextsByName(Protocol):
    """Texts by name that outlive the process."""

    def all(self) -> dict[str, str]: ...
    async def change(self, values: Mapping[str, str | None], /) -> None: ...


class KeyValueTable(Part):
    """The table of texts by name. Methods raise ``StoreError``.

    A ``room`` has texts of its own, which do not mix with the others.
    """

    def all(self) -> dict[str, str]:
        """All texts except the rooms' own."""
        return {name: text for name, text in as_written(self._read("kept", ())).items() if _END_OF_ROOM not in name}

    def room(self, name: str) -> KeyValueRoom:
        """The texts of one room."""
        return KeyValueRoom(self, name + _END_OF_ROOM)

    def under(self, prefix: str) -> dict[str, str]:
        """The texts whose names have this prefix, by the rest of the name."""
        kept = (row for row in self._read("kept", ()) if row[0].startswith(prefix))
        return {name.removeprefix(prefix): text for name, text in as_written(kept).items()}

    async def change(self, values: Mapping[str, str | None]) -> None:
        """Write these texts in one transaction, and return once it is committed; ``None`` deletes a text."""
        if values:
            change = self._text_change("keep", "let_go", values)
            await self._write(change)


class KeyValueRoom:
    """The texts of one room of a ``KeyValueTable``, by name."""

    def __init__(self, table: KeyValueTable, prefix: str) -> None:
        self._table, self._prefix = table, prefix

    def all(self) -> dict[str, str]:
        """All texts of the room."""
        return self._table.under(self._prefix)

    async def change(self, values: Mapping[str, str | None]) -> None:
        """As ``KeyValueTable.change``."""
        await self._table.change({self._prefix + name: value for name, value in values.items()})


V = TypeVar("V", str, bytes)

_ROOM: Final = 100
"""An eviction leaves room for a hundredth of the bound, so that it is rare."""


class Lru(Part, Generic[V]):
    """A bounded table of values by key; ``name`` begins its statements in ``queries.sql``. Raises ``StoreError``."""

    def __init__(self, name: str, *, write: Write, read: Read) -> None:
        super().__init__(write=write, read=read)
        self._name = name
        self._used: dict[str, int] = {}
        self._put_since_count: float = math.inf  # until the table is counted for the first time

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, V]:
        """The stored values of these keys; each counts as used now."""
        found = dict(self._read(self._name, (json.dumps(list(keys)),)))
        self._used.update(dict.fromkeys(found, now_ns))
        return found

    async def put(self, things: Mapping[str, V], now_ns: int, most: int) -> None:
        """Write values by key. Beyond ``most`` values, the least recently used are deleted."""
        used, self._used = self._used, {}
        uses = [(at, key) for key, at in used.items()]
        rows = [(key, now_ns, thing) for key, thing in things.items()]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql[f"{self._name}_used"], uses)
            connection.executemany(self._sql[f"{self._name}_put"], rows)
            self._evict(connection, len(rows), most)

        await self._write(work)

    async def trim(self, most: int) -> None:
        """Delete the values that were not used for longest, until there are at most ``most``."""
        await self._write(lambda connection: self._forget_beyond(connection, most))

    def _evict(self, connection: sqlite3.Connection, added: int, most: int) -> None:
        # Counting reads the whole table, so it is done once for as many things as there is room for.
        room = most // _ROOM
        self._put_since_count += added
        if self._put_since_count > room:
            self._forget_beyond(connection, most - room)
            self._put_since_count = 0

    def _forget_beyond(self, connection: sqlite3.Connection, most: int) -> None:
        (held,) = connection.execute(self._sql[f"{self._name}_count"]).fetchone()
        connection.execute(self._sql[f"{self._name}_forget"], (max(0, held - most),))


class JudgeCacheTable(Lru[str]):
    """The judge's cached answers (JSON by key), and the dollars spent by hour. Writes return once committed."""

    def __init__(self, *, write: Write, read: Read) -> None:
        super().__init__("judged", write=write, read=read)

    async def spend(self, hour_s: int, usd: float) -> None:
        """Add dollars to the hour that begins at ``hour_s``, in seconds since the epoch."""
        await self._do("spend_add", (hour_s, usd))

    def spent_since(self, since_s: int) -> dict[int, float]:
        """The dollars spent in each hour that began at ``since_s`` or later, by its beginning."""
        return dict(self._read("spend_since", (since_s,)))

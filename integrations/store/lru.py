"""A bounded table of things that can be made again: what was not used for longest is forgotten first.

When something was used is written with the next thing that is put in, so a hit costs no write; a crash forgets some of
that, and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeVar

from .part import Part, Read, Write

V = TypeVar("V", str, bytes)

_ROOM: Final = 100
"""An eviction leaves room for a hundredth of the bound, so that it is rare."""


class Lru(Part, Generic[V]):
    """The table whose statements of ``queries.sql`` begin with ``name``. Raises ``StoreError``."""

    def __init__(self, name: str, *, write: Write, read: Read) -> None:
        super().__init__(write=write, read=read)
        self._name = name
        self._used: dict[str, int] = {}
        self._put_since_count: int | None = None

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, V]:
        """The stored values of these keys; each counts as used now."""
        found = dict(self._read(self._name, (json.dumps(list(keys)),)))
        self._used.update(dict.fromkeys(found, now_ns))
        return found

    async def put(self, things: Mapping[str, V], now_ns: int, most: int) -> None:
        """Keep things by key. Of more than ``most`` those that were not used for longest are forgotten."""
        used, self._used = self._used, {}
        uses = [(at, key) for key, at in used.items()]
        rows = [(key, now_ns, thing) for key, thing in things.items()]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql[f"{self._name}_used"], uses)
            connection.executemany(self._sql[f"{self._name}_put"], rows)
            self._evict(connection, len(rows), most)

        await self._write(work)

    async def trim(self, most: int) -> None:
        """Forget what was not used for longest, until there are at most ``most``."""

        def work(connection: sqlite3.Connection) -> None:
            (held,) = connection.execute(self._sql[f"{self._name}_count"]).fetchone()
            connection.execute(self._sql[f"{self._name}_forget"], (max(0, held - most),))

        await self._write(work)

    def _evict(self, connection: sqlite3.Connection, added: int, most: int) -> None:
        # Counting reads the whole table, so it is done once for as many things as there is room for.
        room = most // _ROOM
        self._put_since_count = None if self._put_since_count is None else self._put_since_count + added
        if self._put_since_count is not None and self._put_since_count <= room:
            return
        (held,) = connection.execute(self._sql[f"{self._name}_count"]).fetchone()
        connection.execute(self._sql[f"{self._name}_forget"], (max(0, held - (most - room)),))
        self._put_since_count = 0


class JudgeCacheTable(Lru[str]):
    """Answers (JSON by key), which are a cache, and dollars. Methods that write return once committed."""

    def __init__(self, *, write: Write, read: Read) -> None:
        super().__init__("judged", write=write, read=read)

    async def spend(self, hour_s: int, usd: float) -> None:
        """Add dollars to the hour that began so many seconds after the epoch."""
        await self._do("spend_add", (hour_s, usd))

    def spent_since(self, since_s: int) -> dict[int, float]:
        """Dollars by the hour, of hours that began at or after this."""
        return dict(self._read("spend_since", (since_s,)))

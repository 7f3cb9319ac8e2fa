"""What judges answered and what they cost: the part of the store that a live judge uses.

Answers are a cache: bounded, and those that were not used for longest go first. When they were used is written with the
next answer that is put in, so a hit costs no write; a crash forgets some of that, and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from .statements import queries

_ROOM: Final = 100
"""An eviction leaves room for a hundredth of the bound, so that it is rare."""


class Judged:
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def __init__(
        self,
        *,
        write: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]],
        read: Callable[[str, Sequence[object]], list[Any]],
    ) -> None:
        self._write = write
        self._read = read
        self._sql = queries()
        self._used: dict[str, int] = {}
        self._put_since_count: int | None = None

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, str]:
        """The answers that are known, as they were put in; each counts as used now."""
        found = dict(self._read("judged", (json.dumps(list(keys)),)))
        self._used.update(dict.fromkeys(found, now_ns))
        return found

    async def put(self, answers: Mapping[str, str], now_ns: int, most: int) -> None:
        """Keep answers (JSON by key). Of more than ``most`` those that were not used for longest are forgotten."""
        used, self._used = self._used, {}
        uses = [(at, key) for key, at in used.items()]
        rows = [(key, now_ns, answer) for key, answer in answers.items()]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["judged_used"], uses)
            connection.executemany(self._sql["judged_put"], rows)
            self._evict(connection, len(rows), most)

        await self._write(work)

    async def spend(self, hour_s: int, usd: float) -> None:
        """Add dollars to the hour that began so many seconds after the epoch."""
        await self._write(lambda connection: connection.execute(self._sql["spend_add"], (hour_s, usd)) and None)

    def spent_since(self, since_s: int) -> dict[int, float]:
        """Dollars by the hour, of hours that began at or after this."""
        return dict(self._read("spend_since", (since_s,)))

    def _evict(self, connection: sqlite3.Connection, added: int, most: int) -> None:
        # Counting reads the whole table, so it is done once for as many answers as there is room for.
        room = most // _ROOM
        self._put_since_count = None if self._put_since_count is None else self._put_since_count + added
        if self._put_since_count is not None and self._put_since_count <= room:
            return
        (held,) = connection.execute(self._sql["judged_count"]).fetchone()
        connection.execute(self._sql["judged_forget"], (max(0, held - (most - room)),))
        self._put_since_count = 0

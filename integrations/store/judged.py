"""What judges answered and what they cost: the part of the store that a live judge uses."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .lru import Lru
from .statements import queries


class Judged(Lru[str]):
    """Answers (JSON by key), which are a cache, and dollars. Methods that write return once committed."""

    def __init__(
        self,
        *,
        write: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]],
        read: Callable[[str, Sequence[object]], list[Any]],
    ) -> None:
        super().__init__("judged", write=write, read=read)

    async def spend(self, hour_s: int, usd: float) -> None:
        """Add dollars to the hour that began so many seconds after the epoch."""
        sql = queries()["spend_add"]
        await self._write(lambda connection: connection.execute(sql, (hour_s, usd)) and None)

    def spent_since(self, since_s: int) -> dict[int, float]:
        """Dollars by the hour, of hours that began at or after this."""
        return dict(self._read("spend_since", (since_s,)))

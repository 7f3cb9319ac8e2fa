"""What judges answered and what they cost: the part of the store that a live judge uses."""

from __future__ import annotations

from .lru import Lru
from .part import Read, Write


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

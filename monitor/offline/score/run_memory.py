"""Run memory: a judge's answers and dollars that outlive a run, in a store beside the verdicts that they led to.

A run that is called again in the same way goes on where it ended, so its judge must too: an hourly budget that began
anew with each call would be spent with each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sidejudge.integrations.store.sqlite import Store

from .request import LruCache


class RunMemory:
    """A judge's answers and dollars in a store of the run's own. ``forgetful``: dollars alone."""

    def __init__(self, path: Path, *, forgetful: bool) -> None:
        self._store = Store(path)
        self._answers: LruCache[str] | None = LruCache(0) if forgetful else None

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, str]:
        return (self._answers or self._store.judged).get(keys, now_ns)

    async def put(self, things: Mapping[str, str], now_ns: int, most: int) -> None:
        await (self._answers or self._store.judged).put(things, now_ns, most)

    async def spend(self, hour_s: int, usd: float) -> None:
        await self._store.judged.spend(hour_s, usd)

    def spent_since(self, since_s: int) -> dict[int, float]:
        return self._store.judged.spent_since(since_s)

    def close(self) -> None:
        """Close the store; idempotent."""
        self._store.close()


def memory_of(out: str) -> Path | None:
    """Where the judge of a run that writes there remembers; None where nothing of a run stays on this machine."""
    if out == "-" or "://" in out:
        return None
    path = Path(out).absolute()
    return path.with_name(f"{path.name}.judge") if path.is_file() or path.is_dir() or not path.exists() else None

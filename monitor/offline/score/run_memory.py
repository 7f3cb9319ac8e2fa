"""Run memory: judged answers, their cost, and vectors: in bounded memory, or in a store beside the verdicts.

The store of ``store.path`` belongs to a running monitor; a run over a file has its own memory. A run that is called
again in the same way goes on where it ended, so its judge must too: an hourly budget that began anew with each call
would be spent with each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final, Generic, TypeVar

V = TypeVar("V", str, bytes)

MOST_VECTORS: Final = 10_000
"""Vectors that a run keeps: some 30 MB of 768 dimensions each."""


class LruCache(Generic[V]):
    """Things by key, the least lately used forgotten first; never more than ``most``."""

    def __init__(self, most: int | None = None) -> None:
        self._held: dict[str, V] = {}
        self._most = most
        self._one = Lock()  # it is read in several threads

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, V]:  # noqa: ARG002  # the order is by age
        with self._one:
            found = {key: self._held.pop(key) for key in keys if key in self._held}
            self._held.update(found)
        return found

    async def put(self, things: Mapping[str, V], now_ns: int, most: int) -> None:  # noqa: ARG002  # likewise
        most = most if self._most is None else min(most, self._most)
        with self._one:
            self._held.update(things)
            for key in list(islice(self._held, max(0, len(self._held) - most))):
                del self._held[key]


class Transient(LruCache[str]):
    """A cache of judged answers, and dollars by the hour. ``forgetful``: no answer is kept."""

    def __init__(self, *, forgetful: bool = False) -> None:
        super().__init__(0 if forgetful else None)
        self._spent: dict[int, float] = {}

    async def spend(self, hour_s: int, usd: float) -> None:
        self._spent[hour_s] = self._spent.get(hour_s, 0.0) + usd

    def spent_since(self, since_s: int) -> dict[int, float]:
        return {hour_s: usd for hour_s, usd in self._spent.items() if hour_s >= since_s}


class RunMemory:
    """A judge's answers and dollars in a store of the run's own. ``forgetful``: dollars alone."""

    def __init__(self, path: Path, *, forgetful: bool) -> None:
        from sidejudge.integrations.store.sqlite import Store  # noqa: PLC0415  # SQLite only where a judge is asked

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

"""A queue in bounded memory, for what may be lost with the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sidejudge.scoring.status.snapshots import QueueStatus

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemoryItem(Generic[T]):
    """An item of a ``MemoryQueue``."""

    seq: int
    queued_ns: int
    body: T


class MemoryQueue(Generic[T]):
    """Bounded, and gone with the process. When it is full the oldest item that is not under way goes.

    Args:
        most: items that may wait; 1 or more.
        clock_ns: ns since the epoch.
    """

    def __init__(self, most: int, clock_ns: Callable[[], int]) -> None:
        self._waiting: deque[MemoryItem[T]] = deque()
        self._under_way: list[MemoryItem[T]] = []
        self._most, self._clock_ns = most, clock_ns
        self._seq = self._lost = 0
        self._reason: str | None = None
        self.on_put: Callable[[], object] = _nothing
        self.on_dropped: Callable[[], object] = _nothing

    def put(self, body: T) -> None:
        """Put in the newest."""
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self._lost += 1
            self.on_dropped()
        self._seq += 1
        self._waiting.append(MemoryItem(self._seq, self._clock_ns(), body))
        self.on_put()

    def waiting(self, limit: int) -> Sequence[MemoryItem[T]]:
        """The first that wait. They are under way from now on, until each of them is settled."""
        while self._waiting and len(self._under_way) < limit:
            self._under_way.append(self._waiting.popleft())
        return self._under_way[:limit]

    async def settle(self, delivered: Collection[int], refused: Mapping[int, str]) -> None:
        """Let go of both: there is no place to set anything aside."""
        self.remove({*delivered, *refused})
        self._lost += len(refused)

    def remove(self, done: Collection[int]) -> None:
        """Let go of items that are under way, by ``seq``."""
        self._under_way = [item for item in self._under_way if item.seq not in done]

    async def retry_refused(self) -> int:
        """Nothing is set aside in memory."""
        return 0

    def status(self) -> QueueStatus:
        first = next(iter((*self._under_way[:1], *list(self._waiting)[:1])), None)
        return QueueStatus(
            waiting=len(self._under_way) + len(self._waiting),
            oldest_ns=None if first is None else first.queued_ns,
            parked=self._lost,
        )


def _nothing() -> None:
    pass

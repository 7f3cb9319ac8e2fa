"""What waits for one destination, in order; ``integrations.memory_queue`` is the other one, for what may be lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from sidejudge.integrations.store.notification_outbox import NotificationOutbox, PendingNotice
from sidejudge.scoring.status.export_snapshot import QueueStatus

T_co = TypeVar("T_co", covariant=True)


class PendingItem(Protocol):
    """Something that waits: ``seq`` is its place and its name, ``queued_ns`` when it came, in ns since the epoch."""

    @property
    def seq(self) -> int: ...
    @property
    def queued_ns(self) -> int: ...


class Queue(Protocol[T_co]):
    """What waits for one destination. Methods that write return once that is safe; they raise ``StoreError``."""

    def waiting(self, limit: int, /) -> Sequence[T_co]:
        """The first that wait, in order."""

    async def settle(self, delivered: Collection[int], refused: Mapping[int, str], /) -> None:
        """Let go of what was delivered, and set aside what was refused, with the reason, by ``seq``."""

    async def retry_refused(self) -> int:
        """Let what was set aside wait again; how many that are."""

    def status(self) -> QueueStatus:
        """How much waits, since when, and how much is set aside."""


class StoredQueue:
    """One destination's part of the notification outbox: nothing of it is lost when the process is killed."""

    def __init__(self, outbox: NotificationOutbox, destination: str) -> None:
        self._outbox, self._destination = outbox, destination

    def waiting(self, limit: int) -> list[PendingNotice]:
        return self._outbox.waiting(self._destination, limit)

    async def settle(self, delivered: Collection[int], refused: Mapping[int, str]) -> None:
        await self._outbox.settle(list(delivered), refused)

    async def retry_refused(self) -> int:
        return await self._outbox.unpark(self._destination)

    def status(self) -> QueueStatus:
        return self._outbox.queue(self._destination)

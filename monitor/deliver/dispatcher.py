"""Delivers the items of a queue to one destination, in order and at least once.

An item that a destination cannot take now delays the items behind it, with growing pauses, until it is too old; then it
is set aside. Refused or unreadable items are set aside at once. Items that the store holds aside wait again from the
next start on, when the configuration may have been corrected.

The task of every sink is here too: it works step by step, waits longer after each failure, and records how delivery
stands.
"""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from sidejudge.integrations.backoff import Backoff, DestinationUnreachableError, RefusedError
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.notification_outbox import NotificationOutbox, PendingNotice
from sidejudge.scoring.status.snapshots import ExportSnapshot, ExportState, QueueStatus
from sidejudge.scoring.trace.time_units import DAY_NS

log = logging.getLogger("sidejudge.deliver")

FLUSH_S: Final = 5.0
"""How long a stop waits for possible deliveries."""
_LEVELS: Final[Mapping[ExportState, int]] = {"ok": logging.INFO, "retrying": logging.WARNING, "stopped": logging.ERROR}
_MESSAGES: Final[Mapping[ExportState, str]] = {
    "ok": "delivery works",
    "retrying": "delivery fails and is tried again; what is to be delivered waits",
    "stopped": "delivery is refused",
}


class DeliveryCounters(Protocol):
    """Counts items handed to a destination, and those not accepted, by reason."""

    def exported(self, destination: str, count: int = 1, *, at_s: float | None = None) -> None: ...
    def export_failed(self, destination: str, reason: str, count: int = 1) -> None: ...


class DeliveryStatus:
    """The state of delivery to one destination. Each change of state is logged once."""

    def __init__(self, destination: str) -> None:
        self.destination = destination
        self.state: ExportState = "starting"
        self.reason = ""
        self.last_success_ns: int | None = None

    @property
    def last_success_s(self) -> float | None:
        """When the destination last took something, in s since the epoch."""
        return None if self.last_success_ns is None else self.last_success_ns / 1e9

    def change(self, state: ExportState, reason: str = "") -> None:
        """Record a state, and why it is not ok."""
        if state != self.state and not (state == "ok" and self.state == "starting"):
            log.log(_LEVELS[state], _MESSAGES[state], extra={"destination": self.destination, "cause": reason})
        self.state, self.reason = state, reason


class DeliveryTask(ABC):
    """One destination's deliveries, as a task of the event loop between ``start`` and ``close``."""

    def __init__(self, name: str, backoff: Backoff | None = None) -> None:
        self.name = name
        self.status = DeliveryStatus(name)
        self._backoff = Backoff(random.random) if backoff is None else backoff
        self._wake, self._closing = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def step(self) -> float | None:
        """Deliver the due items.

        Returns:
            Seconds to rest before the next step; None: until ``wake`` is called.
        """

    @abstractmethod
    async def flush(self) -> None:
        """Deliver the waiting items once before the process ends; stop at the first failure."""

    @abstractmethod
    def snapshot(self) -> ExportSnapshot:
        """How far it has come."""

    @property
    def working(self) -> bool:
        """Whether the task still runs."""
        return self._task is None or not self._task.done()

    async def start(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Something is to be delivered."""
        self._wake.set()

    async def close(self) -> None:
        """Deliver for a moment, and end. Unfinished deliveries are cut off."""
        self._closing.set()
        self._wake.set()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=FLUSH_S)
            for task in late:
                task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            try:
                pause_s = await self.step()
            except StoreError as error:
                log.warning("the store cannot be used; delivery waits", extra=self._about(error))
                pause_s = self._backoff.after_failure(None)
            except Exception:
                log.exception("a delivery failed in an unforeseen way; it is tried again", extra=self._about())
                pause_s = self._backoff.after_failure(None)
            await self._rest(pause_s)
        try:
            await self.flush()
        except StoreError as error:
            log.warning(
                "the store cannot be used; what waits is delivered after the next start", extra=self._about(error)
            )

    async def _rest(self, pause_s: float | None) -> None:
        """Wait until the pause is over or the task is to end; without a pause until something is to be delivered."""
        if pause_s is None:
            await self._wake.wait()
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), pause_s)

    def _about(self, error: Exception | None = None) -> dict[str, str]:
        return {"destination": self.name} if error is None else {"destination": self.name, "cause": str(error)}


NOT_DELIVERED: Final = "not_delivered"
"""Why a delivery failed: the destination refused it, or could not take it in time."""
LONGEST_PAUSE_S: Final = 300.0
EXPIRES_NS: Final = DAY_NS
"""How old something grows before it is set aside because its destination cannot be reached."""
KEEP_PARKED_NS: Final = 7 * EXPIRES_NS
"""How long items that were set aside are kept."""
T_co = TypeVar("T_co", covariant=True)


class PendingItem(Protocol):
    """Something that waits: ``seq`` is its place and its name, ``queued_ns`` when it came, in ns since the epoch."""

    @property
    def seq(self) -> int: ...
    @property
    def queued_ns(self) -> int: ...


P = TypeVar("P", bound=PendingItem)


class Queue(Protocol[T_co]):
    """The queue of one destination. Methods that write return once that is safe; they raise ``StoreError``."""

    def waiting(self, limit: int, /) -> Sequence[T_co]:
        """The first that wait, in order."""

    async def settle(self, delivered: Collection[int], refused: Mapping[int, str], /) -> None:
        """Drop delivered items, and set refused ones aside with the reason, by ``seq``."""

    async def retry_refused(self) -> int:
        """Let items that were set aside wait again; returns their number."""

    def status(self) -> QueueStatus:
        """How much waits, since when, and how much is set aside."""


class StoredQueue:
    """One destination's part of the notification outbox: nothing of it is lost when the process is killed.

    ``subject`` is as in ``NotificationOutbox.settle``.
    """

    def __init__(self, outbox: NotificationOutbox, destination: str, *, subject: int = 0) -> None:
        self._outbox, self._destination, self._subject = outbox, destination, subject

    def waiting(self, limit: int) -> list[PendingNotice]:
        return self._outbox.waiting(self._destination, limit)

    async def settle(self, delivered: Collection[int], refused: Mapping[int, str]) -> None:
        await self._outbox.settle(list(delivered), refused, subject=self._subject)

    async def retry_refused(self) -> int:
        return await self._outbox.unpark(self._destination)

    def status(self) -> QueueStatus:
        return self._outbox.queue(self._destination)


class Destination(Protocol[P]):
    """Takes entries of a queue, at most ``batch`` at once.

    ``gather_s`` is how long a delivery waits for further entries of the same message.
    """

    @property
    def name(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def gather_s(self) -> float: ...

    def together(self, entries: Sequence[P], /) -> Sequence[P]:
        """The first entries, at least one, that fit into one delivery."""

    async def deliver(self, entries: Sequence[P], /) -> Mapping[int, str]:
        """Deliver the entries.

        Returns:
            Why each entry that was not taken is refused for good, by ``seq``; all the others were taken.

        Raises:
            DestinationUnreachableError: they may be taken later.
            RefusedError: none of them will ever be taken.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTerms:
    """When a dispatcher gives something up, and how that is counted.

    ``expires_ns`` is how old an item grows while its destination cannot be reached; ``refused`` and ``expired`` are the
    reasons that metrics name.
    """

    expires_ns: int = EXPIRES_NS
    first_pause_s: float = 1.0
    longest_pause_s: float = LONGEST_PAUSE_S
    refused: str = NOT_DELIVERED
    expired: str = NOT_DELIVERED


class Dispatcher(DeliveryTask, Generic[P]):
    """One destination's deliveries, as a task of the event loop between ``start`` and ``close``."""

    def __init__(
        self,
        destination: Destination[P],
        queue: Queue[P],
        *,
        clock_ns: Callable[[], int],
        counters: DeliveryCounters | None = None,
        terms: DeliveryTerms | None = None,
    ) -> None:
        self._terms = terms = DeliveryTerms() if terms is None else terms
        backoff = Backoff(random.random, first_s=terms.first_pause_s, longest_s=terms.longest_pause_s)
        super().__init__(destination.name, backoff)
        self._destination, self._queue, self._clock_ns = destination, queue, clock_ns
        self._counters = counters

    async def start(self) -> None:
        """Begin, with what was set aside before."""
        again = await self._queue.retry_refused()
        if again:
            log.info("what was set aside is tried again", extra={"destination": self.name, "items": again})
        await super().start()

    def snapshot(self) -> ExportSnapshot:
        """Its status; where it is ok and something was set aside before, ``reason`` is why."""
        queue = self._queue.status()
        return ExportSnapshot(
            destination=self.name, state=self.status.state, reason=self.status.reason or queue.reason or "",
            waiting=queue.waiting, oldest_s=None if queue.oldest_ns is None else queue.oldest_ns / 1e9,
            dead=queue.parked, last_success_s=self.status.last_success_s,
        )  # fmt: skip

    async def step(self) -> float | None:
        if self._destination.gather_s and self._queue.waiting(1):
            await self._gather()
        while not self._closing.is_set():
            waiting = self._queue.waiting(self._destination.batch)
            if not waiting:
                return None
            pause_s = await self._deliver(waiting)
            if pause_s is not None:
                return pause_s
        return 0.0

    async def flush(self) -> None:
        # What failed a moment ago, perhaps by hanging, would only make the stop take longer.
        while self.status.state != "retrying" and (waiting := self._queue.waiting(self._destination.batch)):
            await self._deliver(waiting)

    async def _gather(self) -> None:
        """Wait for further entries of the same message, at most as long as the destination requests."""
        until = asyncio.get_running_loop().time() + self._destination.gather_s
        while (
            not self._closing.is_set() and len(self._queue.waiting(self._destination.batch)) < self._destination.batch
        ):
            left_s = until - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), left_s)
            except TimeoutError:
                return

    async def _deliver(self, entries: Sequence[P]) -> float | None:
        """Try the first of them that go together once.

        Returns:
            None when they are settled, else the seconds to wait before the next attempt.
        """
        try:
            entries = self._destination.together(entries)
            refused = await self._destination.deliver(entries)
        except DestinationUnreachableError as error:
            return await self._unreachable(entries, error)
        except RefusedError as error:
            refused = {entry.seq: error.reason for entry in entries}
        except (LookupError, TypeError, ValueError) as error:
            if len(entries) > 1:  # one by one, so that those that are sound go out
                return await self._each(entries)
            log.exception(
                "what waits to be delivered cannot be read, and is set aside", extra={"destination": self.name}
            )
            refused = {entry.seq: f"it cannot be read: {type(error).__name__}" for entry in entries}
        taken = [entry.seq for entry in entries if entry.seq not in refused]
        now_ns = self._clock_ns()
        await self._queue.settle(taken, refused)
        self._backoff.succeeded()
        if taken:
            self.status.last_success_ns = now_ns
        self._count(len(entries), len(refused), self._terms.refused, now_ns)
        if taken:
            self.status.change("ok")
        else:
            self.status.change("stopped", next(iter(refused.values()), ""))
        return None

    async def _each(self, entries: Sequence[P]) -> float | None:
        for entry in entries:
            if (pause_s := await self._deliver((entry,))) is not None:
                return pause_s
        return None

    async def _unreachable(self, entries: Sequence[P], error: DestinationUnreachableError) -> float:
        now_ns = self._clock_ns()
        self.status.change("retrying", error.reason)
        old = {
            entry.seq: f"not taken in time: {error.reason}"
            for entry in entries
            if now_ns - entry.queued_ns >= self._terms.expires_ns
        }
        if old:
            await self._queue.settle((), old)
            self._count(len(old), len(old), self._terms.expired, now_ns)
        return self._backoff.after_failure(error.retry_after_s)

    def _count(self, count: int, failed: int, reason: str, now_ns: int) -> None:
        if self._counters is not None:
            self._counters.exported(self.name, count, at_s=now_ns / 1e9 if count > failed else None)
            if failed:
                self._counters.export_failed(self.name, reason, failed)

"""Courier: takes what waits in the mail to one destination, in order, at least once.

What a destination cannot take now holds up what is behind it, with growing pauses, for as long as ``patience``; then it
is set aside, as is at once what the destination refuses. What is set aside waits again from the next start on, when
somebody may have mended the configuration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from integrations.delivery_errors import DestinationUnreachableError, RefusedError
from integrations.store.notification_outbox import NotificationOutbox, NotificationQueue, PendingNotice
from integrations.store.sqlite import StoreError
from scoring.status.export_snapshot import ExportSnapshot, ExportState

log = logging.getLogger("sidejudge.courier")

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
PATIENCE_NS = 24 * 3_600 * 10**9
"""How old something grows before it is set aside because its destination cannot be reached."""
KEEP_PARKED_NS = 7 * PATIENCE_NS
"""How long what was set aside is kept."""
_LAST_TRY_S = 5.0


class Destination(Protocol):
    """Whoever takes entries of the mail, at most ``batch`` at once.

    ``gather_s`` are waited when something was put in, for what belongs to it.
    """

    @property
    def name(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def gather_s(self) -> float: ...

    def together(self, entries: Sequence[PendingNotice], /) -> Sequence[PendingNotice]:
        """The first of them, at least one, that go in one delivery."""

    async def deliver(self, entries: Sequence[PendingNotice], /) -> Mapping[int, str]:
        """Return once all are taken but those that are returned: why each was refused for good, by ``seq``.

        Raises ``DestinationUnreachableError`` when they may be taken later, ``RefusedError`` when none of them ever
        will be.
        """


Exported = Callable[[str, int, int, int], None]
"""Is told destination, how many were handed over, how many of them were not accepted, and when (ns)."""


class Dispatcher:
    """One destination's deliveries, as a task of the event loop between ``start`` and ``close``."""

    def __init__(
        self,
        destination: Destination,
        mail: NotificationOutbox,
        *,
        clock_ns: Callable[[], int],
        exported: Exported = lambda *_: None,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self.name = destination.name
        self._destination, self._mail, self._clock_ns, self._exported = destination, mail, clock_ns, exported
        self._first_pause_s = self._pause_s = first_pause_s
        self._wake, self._ending = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._last_success_ns: int | None = None
        self._state: ExportState = "starting"
        self._reason = ""

    async def start(self) -> None:
        """Begin, with what was set aside before."""
        again = await self._mail.unpark(self.name)
        if again:
            log.info("what was set aside is tried again", extra={"destination": self.name, "items": again})
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Something was put in."""
        self._wake.set()

    async def close(self) -> None:
        """End. A delivery under way may end; one that does not is made again at the next start."""
        self._ending.set()
        self._wake.set()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=_LAST_TRY_S)
            for task in late:
                task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def standing(self, shelves: Mapping[str, NotificationQueue]) -> ExportSnapshot:
        """How it stands; where it is well and something was set aside before, the reason says why that was."""
        shelf = shelves.get(self.name, NotificationQueue())
        last_ns = self._last_success_ns
        return ExportSnapshot(
            destination=self.name, state=self._state, reason=self._reason or shelf.reason or "",
            waiting=shelf.waiting, oldest_s=None if shelf.oldest_ns is None else shelf.oldest_ns / 1e9,
            dead=shelf.parked, last_success_s=None if last_ns is None else last_ns / 1e9,
        )  # fmt: skip

    async def _run(self) -> None:
        while not self._ending.is_set():
            self._wake.clear()
            try:
                pause_s = await self._round()
            except StoreError as error:
                log.warning("the mail cannot be read or written", extra={"cause": str(error)})
                pause_s = self._next_pause()
            except Exception:
                log.exception("a delivery failed in an unforeseen way; it is tried again")
                pause_s = self._next_pause()
            await self._rest(pause_s)

    async def _round(self) -> float | None:
        """Deliver what waits; how long to rest then, ``None``: until something is put in."""
        if self._destination.gather_s and self._mail.waiting(self.name, 1):
            await self._rest(self._destination.gather_s)
        while waiting := self._mail.waiting(self.name, self._destination.batch):
            if self._ending.is_set():
                return 0.0
            entries = self._destination.together(waiting)
            try:
                refused = await self._destination.deliver(entries)
            except DestinationUnreachableError as error:
                return await self._unreachable(entries, error)
            except RefusedError as error:
                refused = {entry.seq: error.reason for entry in entries}
            await self._settle(entries, refused)
        return None

    async def _settle(self, entries: Sequence[PendingNotice], refused: Mapping[int, str]) -> None:
        now_ns = self._clock_ns()
        taken = [entry.seq for entry in entries if entry.seq not in refused]
        await self._mail.settle(taken, refused)
        self._exported(self.name, len(entries), len(refused), now_ns)
        for reason in set(refused.values()):
            log.error("refused and set aside", extra={"destination": self.name, "cause": reason})
        self._state, self._reason, self._pause_s = ("ok", "", self._first_pause_s)
        if taken:
            self._last_success_ns = now_ns
        else:
            self._state, self._reason = "stopped", next(iter(refused.values()), "")

    async def _unreachable(self, entries: Sequence[PendingNotice], error: DestinationUnreachableError) -> float:
        now_ns = self._clock_ns()
        if self._state != "retrying":
            log.warning("cannot deliver; tried again", extra={"destination": self.name, "cause": error.reason})
        self._state, self._reason = "retrying", error.reason
        old = {e.seq: f"not taken in time: {error.reason}" for e in entries if now_ns - e.queued_ns >= PATIENCE_NS}
        if old:
            await self._mail.settle((), old)
            self._exported(self.name, len(old), len(old), now_ns)
        return max(self._next_pause(), error.retry_after_s or 0.0)

    def _next_pause(self) -> float:
        pause_s = self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        return pause_s

    async def _rest(self, pause_s: float | None) -> None:
        """Until the pause is over or it is to end; without a pause until it is woken."""
        if pause_s is None:
            await self._wake.wait()
            return
        waiting: Awaitable[bool] = self._ending.wait()
        try:
            await asyncio.wait_for(waiting, pause_s)
        except TimeoutError:
            return

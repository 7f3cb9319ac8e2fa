"""The task that every sink runs: work step by step, wait longer after each failure, and record how delivery stands."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.store.errors import StoreError
from sidejudge.scoring.status.snapshots import ExportSnapshot, ExportState

log = logging.getLogger("sidejudge.deliver")

FLUSH_S: Final = 5.0
"""How long a stop waits for what can still be delivered."""
_LEVELS: Final[Mapping[ExportState, int]] = {"ok": logging.INFO, "retrying": logging.WARNING, "stopped": logging.ERROR}
_MESSAGES: Final[Mapping[ExportState, str]] = {
    "ok": "delivery works",
    "retrying": "delivery fails and is tried again; what is to be delivered waits",
    "stopped": "delivery is refused",
}


class DeliveryCounters(Protocol):
    """Counts what was handed to a destination, and what of it was not accepted and why."""

    def exported(self, destination: str, count: int = 1, *, at_s: float | None = None) -> None: ...
    def export_failed(self, destination: str, reason: str, count: int = 1) -> None: ...


class DeliveryStatus:
    """How delivery to one destination stands. Each change of state is logged once."""

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
        """Deliver what is due.

        Returns:
            Seconds to rest before the next step; None: until ``wake`` is called.
        """

    @abstractmethod
    async def flush(self) -> None:
        """Deliver what waits, once, before the process ends; stop at the first failure."""

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
        """Deliver for a moment what can be delivered, and end. What is under way then is cut off."""
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

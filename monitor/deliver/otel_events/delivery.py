"""Delivery: what waits of one signal goes out in batches, as a task of the event loop. Nobody ever waits for it.

Telemetry lives in memory alone: what cannot be delivered for long goes, and is counted. A batch that is refused goes
at once, for it would be refused again; so does one that a server fails on time and again while it may take others.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from integrations.delivery_errors import DestinationUnreachableError, RefusedError
from integrations.otel_events.queue import TelemetryQueue
from integrations.otel_events.request import HEADERS, Signal
from integrations.post import Poster
from scoring.status.export_snapshot import ExportState

from .destination import DESTINATION, NO_ROOM, NOT_DELIVERED, REFUSED

log = logging.getLogger("sidejudge.otel")

BATCH: Final = 512
GATHER_S: Final = 1.0
"""How long what comes after the first is waited for before a batch goes out."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
PATIENCE_NS: Final = 300 * 10**9
"""How long one batch is tried."""


class SignalCounters(Protocol):
    """Who counts what was handed over, and what became of it."""

    def exported(self, destination: str, count: int = 1, *, at_s: float | None = None) -> None: ...
    def export_failed(self, destination: str, reason: str, count: int = 1) -> None: ...


class SignalDelivery:
    """One signal's way to its endpoint. ``state`` and ``reason`` say how that stands, ``given_up`` counts what went."""

    def __init__(
        self,
        signal: Signal,
        queue: TelemetryQueue[Any],
        poster: Poster,
        headers: Mapping[str, str],
        *,
        counted: SignalCounters,
        clock_ns: Callable[[], int],
        gather_s: float = GATHER_S,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self._signal, self._queue, self._poster = signal, queue, poster
        self._headers = {**HEADERS, **headers}
        self._counted, self._clock_ns = counted, clock_ns
        self._gather_s, self._first_pause_s = gather_s, first_pause_s
        self._some, self._many = asyncio.Event(), asyncio.Event()
        self._batch: Sequence[Any] = ()
        self._since_ns = 0
        queue.filled, queue.dropped = self._arrived, self._dropped
        self.state: ExportState = "starting"
        self.reason = ""
        self.given_up = 0
        self.last_success_ns: int | None = None

    @property
    def waiting(self) -> int:
        """Items that were not taken yet, those under way among them."""
        return len(self._queue) + len(self._batch)

    @property
    def oldest_ns(self) -> int | None:
        """Since when the oldest of them waits, in ns since the epoch."""
        return self._since_ns if self._batch else self._queue.oldest_ns

    async def run(self) -> None:
        """Deliver until cancelled; what is under way then is still there for ``flush``."""
        while True:
            await self._some.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._many.wait(), self._gather_s)
            while self._next_batch():
                await self._insist()
            self._some.clear()
            self._many.clear()

    async def flush(self) -> None:
        """Try once what waits, as long as it is taken. What is left is given up, when this is cancelled likewise."""
        try:
            while self._next_batch() and await self._deliver() is None:
                pass
        finally:
            left = [*self._batch, *self._queue.take(len(self._queue))]
            self._batch = ()
            self._give_up(NOT_DELIVERED, len(left))

    def _arrived(self) -> None:
        self._some.set()
        if len(self._queue) >= BATCH:
            self._many.set()

    def _next_batch(self) -> bool:
        """Whether there is anything to deliver; what is under way goes first."""
        if not self._batch:
            self._since_ns = self._queue.oldest_ns or 0
            self._batch = self._queue.take(BATCH)
        return bool(self._batch)

    async def _insist(self) -> None:
        """Deliver the batch, with growing pauses, or give it up."""
        pause_s, tried_ns = self._first_pause_s, self._clock_ns()
        while (asked_s := await self._deliver()) is not None:
            if self._clock_ns() - tried_ns > PATIENCE_NS:
                self._give_up(NOT_DELIVERED, len(self._batch))
                self._batch = ()
                return
            await asyncio.sleep(max(asked_s, pause_s * (0.5 + random.random() / 2)))  # noqa: S311  # only spreads load
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _deliver(self) -> float | None:
        """Try once; None when the batch is off our hands, else how many seconds the endpoint asks to be left alone."""
        try:
            body = await asyncio.to_thread(self._signal.body, self._batch)
            answer = await self._poster.post(body, self._headers)
        except DestinationUnreachableError as error:
            self._stands("retrying", error.reason)
            return error.retry_after_s or 0.0
        except RefusedError as error:
            self._stands("stopped", f"{error.reason}; check sinks.otel_events (Langfuse takes traces only)")
            self._give_up(REFUSED, len(self._batch))
        except Exception as error:  # noqa: BLE001  # it costs a batch, not the task; its text may hold what a trace said
            self._stands("stopped", f"it could not be written or sent: {type(error).__name__}")
            self._give_up(NOT_DELIVERED, len(self._batch))
        else:
            rejected, why = self._signal.rejected(answer)
            self._taken(len(self._batch), min(rejected, len(self._batch)), why)
        self._batch = ()
        return None

    def _taken(self, count: int, rejected: int, why: str) -> None:
        self._give_up(REFUSED, rejected)
        if rejected == count:
            self._stands("stopped", f"it refuses what it is sent: {why}")
            return
        self.last_success_ns = self._clock_ns()
        self._counted.exported(DESTINATION, count - rejected, at_s=self.last_success_ns / 1e9)
        self._stands("ok", "")

    def _dropped(self) -> None:
        self._give_up(NO_ROOM, 1)

    def _give_up(self, reason: str, count: int) -> None:
        if count:
            self.given_up += count
            self._counted.exported(DESTINATION, count)
            self._counted.export_failed(DESTINATION, reason, count)

    def _stands(self, state: ExportState, reason: str) -> None:
        told = f"{self._signal.path}: {reason}" if reason else ""
        if state != self.state and (state != "ok" or self.state != "starting"):
            if state == "ok":
                log.info("own telemetry is taken again", extra={"signal": self._signal.name})
            else:
                log.warning("own telemetry is not taken", extra={"signal": self._signal.name, "cause": told})
        self.state, self.reason = state, told

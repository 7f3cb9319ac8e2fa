"""Sink: own traces and events to one OTLP endpoint, put together from the configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Final

from integrations.otel_events.providers import telemetry
from integrations.otel_events.request import LOGS, TRACES
from integrations.post import Poster
from monitor.config.otel_events import OtelEventsSink
from scoring.status.export_snapshot import ExportSnapshot, ExportState
from scoring.verdict.rubric import Rubric

from .delivery import SignalCounters, SignalDelivery
from .destination import DESTINATION
from .recorder import Recorder

log = logging.getLogger("sidejudge.otel")

FLUSH_S: Final = 5.0
"""How long a stop waits for what can still be sent."""
_WORST_FIRST: Final[tuple[ExportState, ...]] = ("stopped", "retrying", "ok", "starting")


class OtelEvents:
    """``recorder`` observes judging and listens to endings; a task for each signal sends what it wrote down.

    Raises ``DisabledError`` where OpenTelemetry's SDK is switched off in this process.
    """

    def __init__(
        self,
        config: OtelEventsSink,
        *,
        rubrics: Mapping[str, Rubric],
        counted: SignalCounters,
        clock_ns: Callable[[], int],
    ) -> None:
        made = telemetry(version=version("sidejudge"), environment=config.environment, clock_ns=clock_ns)
        wanted = [
            (signal, queue)
            for signal, queue in ((TRACES, made.spans), (LOGS, made.events))
            if signal.name in config.signals
        ]
        self.recorder = Recorder(
            made, rubrics=rubrics, clock_ns=clock_ns,
            traces="traces" in config.signals, events="logs" in config.signals,
        )  # fmt: skip
        self._endpoint = config.endpoint
        self._deliveries = [
            SignalDelivery(
                signal, queue, Poster(config.endpoint + signal.path, config.timeout.seconds), config.sent_headers,
                counted=counted, clock_ns=clock_ns,
            )
            for signal, queue in wanted
        ]  # fmt: skip
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(delivery.run()) for delivery in self._deliveries]

    async def stop(self) -> None:
        """Send for a moment what can be sent; what is left is lost, for it lives in memory alone."""
        self.recorder.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        waiting = sum(delivery.waiting for delivery in self._deliveries)
        before = sum(delivery.given_up for delivery in self._deliveries)
        try:
            async with asyncio.timeout(FLUSH_S):
                await asyncio.gather(*(delivery.flush() for delivery in self._deliveries))
        except TimeoutError:
            pass
        lost = sum(delivery.given_up for delivery in self._deliveries) - before
        if lost:
            log.warning("own telemetry was not delivered before the end", extra={"items": lost, "of": waiting})

    def standing(self) -> ExportSnapshot:
        """How far both signals have come, the worse of the two first."""
        worst = min(self._deliveries, key=lambda delivery: _WORST_FIRST.index(delivery.state))
        oldest = [each.oldest_ns for each in self._deliveries if each.oldest_ns is not None]
        taken = [each.last_success_ns for each in self._deliveries if each.last_success_ns is not None]
        return ExportSnapshot(
            destination=DESTINATION,
            state=worst.state,
            reason=worst.reason,
            server=self._endpoint,
            waiting=sum(each.waiting for each in self._deliveries),
            oldest_s=min(oldest) / 1e9 if oldest else None,
            dead=sum(each.given_up for each in self._deliveries),
            last_success_s=max(taken) / 1e9 if taken else None,
        )

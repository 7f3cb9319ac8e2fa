"""The sink of own traces and events, put together from the configuration. Without it, OpenTelemetry is not imported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.post import Poster
from sidejudge.monitor.config.sinks import OtelEventsSink
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms, Dispatcher
from sidejudge.monitor.deliver.sink import Sink, SinkParts
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.status.snapshots import ExportSnapshot, ExportState
from sidejudge.scoring.trace.time_units import MINUTE_NS

if TYPE_CHECKING:
    from sidejudge.integrations.otel_events.providers import MemoryItem, MemoryQueue
    from sidejudge.integrations.otel_events.request import Signal
    from sidejudge.integrations.provider.attempt import JudgeObserver

    from .recorder import Recorder

log = logging.getLogger("sidejudge.otel")

OTEL_EVENTS: Final = "otel_events"
NO_ROOM: Final = "no_room"
"""Too many waited."""
REFUSED: Final = "refused"
"""The endpoint will never take them, or they cannot be written."""
NOT_DELIVERED: Final = "not_delivered"
"""The endpoint could not take them for too long, or until the process ended."""
REASONS: Final = (NO_ROOM, REFUSED, NOT_DELIVERED)
BATCH: Final = 512
GATHER_S: Final = 1.0
"""How long a batch waits after its first item."""
EXPIRES_NS: Final = 5 * MINUTE_NS
"""Greatest age of waiting items while the endpoint cannot be reached."""
TERMS: Final = DeliveryTerms(
    expires_ns=EXPIRES_NS, longest_pause_s=60.0, refused=REFUSED, expired=NOT_DELIVERED
)  # fmt: skip
_WORST_FIRST: Final[tuple[ExportState, ...]] = ("stopped", "retrying", "ok", "starting")


def otel_events_sink(section: OtelEventsSink, parts: SinkParts) -> OtelEvents | None:
    """The configured sink, not started yet; None where OpenTelemetry's SDK is disabled."""
    from sidejudge.integrations.otel_events.providers import DisabledError  # noqa: PLC0415  # only where it is configured

    try:
        return OtelEvents(section, parts)
    except DisabledError as error:
        log.warning("sinks.otel_events is configured and sends nothing", extra={"cause": str(error)})
        return None


class OtelEvents(Sink):
    """``recorder`` observes judging and receives results; a dispatcher for each signal sends what it recorded.

    Raises:
        DisabledError: OpenTelemetry's SDK is switched off in this process.
    """

    def __init__(self, config: OtelEventsSink, parts: SinkParts) -> None:
        from sidejudge.integrations.otel_events.providers import telemetry  # noqa: PLC0415  # only where it is configured
        from sidejudge.integrations.otel_events.request import LOGS, TRACES  # noqa: PLC0415  # as above

        from .recorder import Recorder  # noqa: PLC0415  # as above

        clock_ns, self._counters = parts.clock_ns, parts.counters
        made = telemetry(version=version("sidejudge"), environment=config.environment, clock_ns=clock_ns)
        self.recorder: Recorder = Recorder(
            made, rubrics=parts.rubrics, clock_ns=clock_ns,
            traces="traces" in config.signals, events="logs" in config.signals,
        )  # fmt: skip
        self._endpoint = config.endpoint
        self._queues: list[MemoryQueue[Any]] = []
        dispatchers: list[Dispatcher[MemoryItem[Any]]] = []
        queues: tuple[MemoryQueue[Any], ...] = (made.spans, made.events)
        for signal, queue in zip((TRACES, LOGS), queues, strict=True):
            if signal.name not in config.signals:
                continue
            poster = Poster(config.endpoint + signal.path, config.timeout.seconds)
            destination = SignalDestination(signal, poster, config.sent_headers)
            dispatcher = Dispatcher(destination, queue, clock_ns=clock_ns, counters=parts.counters, terms=TERMS)
            queue.on_put = dispatcher.wake
            queue.on_dropped = lambda: self._lost(OTEL_EVENTS, NO_ROOM, 1)
            self._queues.append(queue)
            dispatchers.append(dispatcher)
        self.deliveries = tuple(dispatchers)

    def committed(self, result: TraceResult) -> None:
        """Record the result of a trace."""
        self.recorder.ended(result)

    async def stop(self) -> None:
        """Send for a moment; the remaining items are lost, because they are only in memory."""
        self.recorder.close()
        waiting = sum(queue.status().waiting for queue in self._queues)
        await super().stop()
        lost = sum(queue.status().waiting for queue in self._queues)
        if lost:
            self._lost(OTEL_EVENTS, NOT_DELIVERED, lost)
            log.warning("own telemetry was not delivered before the end", extra={"items": lost, "of": waiting})

    @property
    def working(self) -> bool:
        """The monitor is live without its own telemetry."""
        return True

    def snapshots(self) -> Sequence[ExportSnapshot]:
        """How far both signals have come: the state of the worse of the two, the sums of both."""
        each = super().snapshots()
        worst = min(each, key=lambda one: _WORST_FIRST.index(one.state))
        return [
            ExportSnapshot(
                destination=worst.destination,
                state=worst.state,
                reason=worst.reason,
                server=self._endpoint,
                waiting=sum(one.waiting for one in each),
                oldest_s=min((one.oldest_s for one in each if one.oldest_s is not None), default=None),
                dead=sum(one.dead for one in each),
                last_success_s=max(
                    (one.last_success_s for one in each if one.last_success_s is not None), default=None
                ),
            )
        ]

    def _lost(self, destination: str, reason: str, count: int) -> None:
        self._counters.exported(destination, count)
        self._counters.export_failed(destination, reason, count)


def observing(counting: JudgeObserver | None, own: OtelEvents | None) -> JudgeObserver | None:
    """The observers of judging: one counts it, one records it. None without a judge."""
    if own is None or counting is None:
        return counting
    from sidejudge.monitor.evaluate.judge.observer import JudgeObservers  # noqa: PLC0415  # only where a judge is configured

    return JudgeObservers(counting, own.recorder)


class SignalDestination:
    """Traces or events, posted to one endpoint in batches. No caller waits for it.

    Telemetry is only in memory: items that cannot be delivered for long are dropped and counted.
    """

    name = OTEL_EVENTS
    batch = BATCH

    def __init__(
        self, signal: Signal, poster: Poster, headers: Mapping[str, str], *, gather_s: float = GATHER_S
    ) -> None:
        self._signal, self._poster = signal, poster
        from sidejudge.integrations.otel_events.request import HEADERS  # noqa: PLC0415  # the sink's name is needed without the SDK

        self._headers = {**HEADERS, **headers}
        self.gather_s = gather_s

    def together(self, entries: Sequence[MemoryItem[object]]) -> Sequence[MemoryItem[object]]:
        """All of them."""
        return entries

    async def deliver(self, entries: Sequence[MemoryItem[object]]) -> Mapping[int, str]:
        """Post the entries as one request; see ``Destination``."""
        path = self._signal.path
        try:
            body = await asyncio.to_thread(self._signal.body, [entry.body for entry in entries])
            answer = await self._poster.post(body, self._headers)
        except DestinationUnreachableError as error:
            raise DestinationUnreachableError(f"{path}: {error.reason}", error.retry_after_s) from None
        except RefusedError as error:
            raise RefusedError(
                f"{path}: {error.reason}; check sinks.otel_events (Langfuse takes traces only)"
            ) from None
        except Exception as error:  # noqa: BLE001  # it costs a batch, not the task; its text may quote a trace
            raise RefusedError(f"{path}: it could not be written or sent: {type(error).__name__}") from None
        rejected, why = self._signal.rejected(answer)
        # A partial success states how many were rejected, not which.
        return {entry.seq: f"{path}: it refuses what it is sent: {why}" for entry in entries[:rejected]}


_PATHS = {"traces": "/v1/traces", "logs": "/v1/logs"}


async def try_endpoint(section: OtelEventsSink) -> tuple[str, str]:
    """The finding, and the remedy, empty when all is well."""
    headers = {"content-type": "application/x-protobuf", **section.sent_headers}
    for signal in section.signals:
        path = _PATHS[signal]
        try:
            await Poster(section.endpoint + path, section.timeout.seconds).post(b"", headers)
        except DestinationUnreachableError as error:
            return f"{path}: {error.reason}", "check sinks.otel_events.endpoint and that it runs"
        except RefusedError as error:
            remedy = "check endpoint, authorization and headers of sinks.otel_events; Langfuse: signals: [traces]"
            return f"{path}: {error.reason}", remedy
    return f"{section.endpoint} takes {' and '.join(section.signals)}", ""

"""Own providers: a tracer and a logger of OpenTelemetry's SDK that only the monitor uses.

The global providers are left alone, so that nothing else in this process is exported with it. The environment variables
of an application's SDK (its limits, its sampler, its resource) do not apply to the monitor, which may share that
environment.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from opentelemetry._logs import Logger, NoOpLogger
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LogRecordLimits,
    LogRecordProcessor,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NoOpTracer, Tracer

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.status.snapshots import QueueStatus
from sidejudge.scoring.trace.loop_guard import OWN_SCOPE, OWN_SERVICE

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
        """Drop both: there is no place to set items aside."""
        self.remove({*delivered, *refused})
        self._lost += len(refused)

    def remove(self, done: Collection[int]) -> None:
        """Drop items in delivery, by ``seq``."""
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


ROOM: Final = 4096
"""Spans, and events, that may wait; 1 to 4 kB each."""
_MOST_ATTRIBUTES: Final = 64
_LONGEST: Final = 2_000
"""Characters of an attribute's value."""


class DisabledError(SidejudgeError):
    """OpenTelemetry's SDK is switched off in this process."""


class TraceIds(RandomIdGenerator):
    """Ids of spans by chance; the id of the next trace may be given."""

    next_trace_id: int | None = None

    def generate_trace_id(self) -> int:
        given, self.next_trace_id = self.next_trace_id, None
        return super().generate_trace_id() if given is None else given


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Writes spans and events into their queues. ``ids`` makes the ids of its traces."""

    ids: TraceIds
    tracer: Tracer
    logger: Logger
    spans: MemoryQueue[ReadableSpan]
    events: MemoryQueue[ReadableLogRecord]


def telemetry(*, version: str, environment: str | None, clock_ns: Callable[[], int], room: int = ROOM) -> Telemetry:
    """Providers that mark everything as a monitor's own, by service and scope.

    ``environment`` is the deployment environment of the resource, None for none; ``room`` how much of each signal may
    wait. Raises :class:`DisabledError`.
    """
    spans: MemoryQueue[ReadableSpan] = MemoryQueue(room, clock_ns)
    events: MemoryQueue[ReadableLogRecord] = MemoryQueue(room, clock_ns)
    stated = {
        "service.name": OWN_SERVICE,
        "service.version": version,
        "service.instance.id": str(uuid.uuid4()),
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "opentelemetry",
        "deployment.environment.name": environment,
    }
    resource = Resource({key: value for key, value in stated.items() if value is not None})
    ids = TraceIds()
    tracers = TracerProvider(
        id_generator=ids,
        sampler=ALWAYS_ON,
        resource=resource,
        shutdown_on_exit=False,
        span_limits=SpanLimits(
            max_attributes=_MOST_ATTRIBUTES, max_events=_MOST_ATTRIBUTES, max_links=_MOST_ATTRIBUTES,
            max_span_attributes=_MOST_ATTRIBUTES, max_event_attributes=_MOST_ATTRIBUTES,
            max_link_attributes=_MOST_ATTRIBUTES, max_attribute_length=_LONGEST, max_span_attribute_length=_LONGEST,
        ),
        meter_provider=NoOpMeterProvider(),
    )  # fmt: skip
    tracers.add_span_processor(SpansInto(spans))
    loggers = LoggerProvider(
        resource=resource,
        shutdown_on_exit=False,
        meter_provider=NoOpMeterProvider(),
        log_record_limits=LogRecordLimits(
            max_attributes=_MOST_ATTRIBUTES, max_attribute_length=_LONGEST,
            max_log_record_attributes=_MOST_ATTRIBUTES, max_log_record_attribute_length=_LONGEST,
        ),
    )  # fmt: skip
    loggers.add_log_record_processor(EventsInto(events))
    tracer, logger = tracers.get_tracer(OWN_SCOPE, version), loggers.get_logger(OWN_SCOPE, version)
    if isinstance(tracer, NoOpTracer) or isinstance(logger, NoOpLogger):
        raise DisabledError("OTEL_SDK_DISABLED is set in this process's environment")
    return Telemetry(ids=ids, tracer=tracer, logger=logger, spans=spans, events=events)


class SpansInto(SpanProcessor):
    """Puts spans that have ended into a queue."""

    def __init__(self, queue: MemoryQueue[ReadableSpan]) -> None:
        self._queue = queue

    def on_end(self, span: ReadableSpan) -> None:
        self._queue.put(span)


class EventsInto(LogRecordProcessor):
    """Puts events into a queue."""

    def __init__(self, queue: MemoryQueue[ReadableLogRecord]) -> None:
        self._queue = queue

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self._queue.put(
            ReadableLogRecord(
                log_record=log_record.log_record,
                resource=log_record.resource or Resource({}),
                instrumentation_scope=log_record.instrumentation_scope,
                limits=log_record.limits,
            )
        )

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the delivery empties the queue
        return True

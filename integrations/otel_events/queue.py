"""Queue: what waits to be exported of one signal, in bounded memory.

Where it is full the oldest goes: what is told after an outage is how things stand, not how they once stood. It is
filled and emptied in the event loop, and never waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

T = TypeVar("T")


class TelemetryQueue(Generic[T]):
    """``filled`` is called whenever something was put in, ``dropped`` when something was let go for want of room."""

    def __init__(self, most: int, clock_ns: Callable[[], int]) -> None:
        self._waiting: deque[tuple[int, T]] = deque()
        self._most, self._clock_ns = most, clock_ns
        self.filled: Callable[[], None] = _nothing
        self.dropped: Callable[[], None] = _nothing

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest_ns(self) -> int | None:
        """Since when the oldest waits, in ns since the epoch."""
        return self._waiting[0][0] if self._waiting else None

    def put(self, item: T) -> None:
        """Put in the newest."""
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.dropped()
        self._waiting.append((self._clock_ns(), item))
        self.filled()

    def take(self, count: int) -> Sequence[T]:
        """Take out the oldest, at most so many."""
        return [self._waiting.popleft()[1] for _ in range(min(count, len(self._waiting)))]


def _nothing() -> None:
    pass


class SpansInto(SpanProcessor):
    """Puts spans that have ended into a queue."""

    def __init__(self, queue: TelemetryQueue[ReadableSpan]) -> None:
        self._queue = queue

    def on_start(self, span: Span, parent_context: Context | None = None) -> None: ...

    def on_end(self, span: ReadableSpan) -> None:
        self._queue.put(span)

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the delivery empties the queue
        return True


class EventsInto(LogRecordProcessor):
    """Puts events into a queue."""

    def __init__(self, queue: TelemetryQueue[ReadableLogRecord]) -> None:
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

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # as above
        return True

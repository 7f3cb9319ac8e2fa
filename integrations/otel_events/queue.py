"""Processors of OpenTelemetry's SDK that put spans and events into a queue, in the event loop, without waiting."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from sidejudge.integrations.memory_queue import MemoryQueue


class SpansInto(SpanProcessor):
    """Puts spans that have ended into a queue."""

    def __init__(self, queue: MemoryQueue[ReadableSpan]) -> None:
        self._queue = queue

    def on_start(self, span: Span, parent_context: Context | None = None) -> None: ...

    def on_end(self, span: ReadableSpan) -> None:
        self._queue.put(span)

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the delivery empties the queue
        return True


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

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # as above
        return True

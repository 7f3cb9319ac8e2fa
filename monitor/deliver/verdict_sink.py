"""A sink of whole verdicts: each new or changed one is committed with its trace and delivered from the outbox."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from sidejudge.integrations.jsonl import line
from sidejudge.integrations.store.notification_outbox import Entry, PendingNotice
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.status.export_snapshot import ExportSnapshot

from .dispatcher import DeliveryTerms, Dispatcher
from .queue import StoredQueue
from .sink import Sink, SinkParts


class VerdictSink(Sink):
    """A sink that is the destination of its own dispatcher. ``name`` is its name in the outbox, metrics and logs."""

    batch = 256
    """Verdicts delivered in one go, and settled in one transaction."""
    gather_s = 0.0

    def __init__(self, name: str, parts: SinkParts, terms: DeliveryTerms, queue: StoredQueue | None = None) -> None:
        self.name = name
        queue = StoredQueue(parts.store.notifications, name) if queue is None else queue
        self._dispatcher = Dispatcher(self, queue, clock_ns=parts.clock_ns, counters=parts.counters, terms=terms)

    @abstractmethod
    async def deliver(self, entries: Sequence[PendingNotice], /) -> Mapping[int, str]:
        """Deliver verdicts, each a line of JSON; see ``Destination``."""

    def entries(self, result: TraceResult) -> Sequence[Entry]:
        """The verdicts that are new or changed."""
        changed = {verdict.rubric for verdict in result.changed}
        return [
            Entry(
                destination=self.name,
                id=f"{result.trace_id.hex()}/{verdict.rubric}/{verdict.revision}",
                body=line(record).decode(),
            )
            for verdict, record in zip(result.verdicts, result.verdicts_json, strict=True)
            if verdict.rubric in changed
        ]

    def committed(self, result: TraceResult) -> None:
        """Wake the dispatcher."""
        if result.changed:
            self._dispatcher.wake()

    def together(self, entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
        """All of them."""
        return entries

    @property
    def working(self) -> bool:
        return self._dispatcher.working

    async def start(self) -> None:
        await self._dispatcher.start()

    async def stop(self) -> None:
        await self._dispatcher.close()

    def snapshots(self) -> Sequence[ExportSnapshot]:
        return [self._dispatcher.snapshot()]

"""Sinks: their interface to the commit and to the process, their parts, and one of whole verdicts."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.integrations.jsonl import line
from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.store.notification_outbox import Entry, PendingNotice
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms, Dispatcher, StoredQueue
from sidejudge.monitor.deliver.task import DeliveryCounters, DeliveryTask
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.status.snapshots import ExportSnapshot
from sidejudge.scoring.verdict.rubric import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkParts:
    """The services that every sink may use."""

    config: Config
    store: Store
    connections: Connections
    counters: DeliveryCounters
    rubrics: Mapping[str, Rubric]
    clock_ns: Callable[[], int]
    fleet: Fleet | None = None


class Sink:
    """Where results go. ``scores`` and ``entries`` are committed in the transaction that ends the trace.

    ``deliveries`` are the tasks that deliver what was committed.
    """

    deliveries: Sequence[DeliveryTask] = ()

    def scores(self, _result: TraceResult) -> Sequence[ScoreRow] | None:
        """Every score that the result is to have; None for a sink that keeps no scores."""
        return None

    def entries(self, _result: TraceResult) -> Sequence[Entry]:
        """The entries of the result to be delivered."""
        return ()

    def committed(self, result: TraceResult) -> None:
        """Receive a result that is on disk, in the event loop."""

    def undelivered(self) -> int:
        """How many deliveries wait at this moment; ``snapshots`` may be some seconds old."""
        return sum(snapshot.waiting for snapshot in self.snapshots())

    @property
    def working(self) -> bool:
        """Whether it still delivers; where it does not, the process is not live."""
        return all(task.working for task in self.deliveries)

    async def start(self) -> None:
        """Begin to deliver; raise ``SinkError`` where it never can."""
        for task in self.deliveries:
            await task.start()

    async def stop(self) -> None:
        """Deliver for a moment what can be delivered, and end."""
        await asyncio.gather(*(task.close() for task in self.deliveries))

    def snapshots(self) -> Sequence[ExportSnapshot]:
        """How far deliveries have come."""
        return [task.snapshot() for task in self.deliveries]


class VerdictSink(Sink, ABC):
    """A sink that is the destination of its own dispatcher. ``name`` is its name in the outbox, metrics and logs."""

    batch = 256
    """Verdicts delivered in one go, and settled in one transaction."""
    gather_s = 0.0

    def __init__(self, name: str, parts: SinkParts, terms: DeliveryTerms, queue: StoredQueue | None = None) -> None:
        self.name = name
        queue = StoredQueue(parts.store.notifications, name) if queue is None else queue
        self._dispatcher = Dispatcher(self, queue, clock_ns=parts.clock_ns, counters=parts.counters, terms=terms)
        self.deliveries = (self._dispatcher,)

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

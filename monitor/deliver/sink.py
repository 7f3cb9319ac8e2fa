"""Sink: its interface to the commit and to the process, and its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.store.notification_outbox import Entry
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.status.export_snapshot import ExportSnapshot
from sidejudge.scoring.verdict.rubric import Rubric

from .task import DeliveryCounters


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


class Sink(ABC):
    """Where results go. ``scores`` and ``entries`` are committed in the transaction that ends the trace."""

    def scores(self, _result: TraceResult) -> Sequence[ScoreRow] | None:
        """Every score that the result is to have; None for a sink that keeps no scores."""
        return None

    def entries(self, _result: TraceResult) -> Sequence[Entry]:
        """The entries of the result to be delivered."""
        return ()

    def committed(self, result: TraceResult) -> None:  # noqa: B027  # a sink may have nothing to do then
        """Receive a result that is on disk, in the event loop."""

    def undelivered(self) -> int:
        """How many deliveries wait at this moment; ``snapshots`` may be some seconds old."""
        return sum(snapshot.waiting for snapshot in self.snapshots())

    @property
    @abstractmethod
    def working(self) -> bool:
        """Whether it still delivers; where it does not, the process is not live."""

    @abstractmethod
    async def start(self) -> None:
        """Begin to deliver; raise ``SinkError`` where it never can."""

    @abstractmethod
    async def stop(self) -> None:
        """Deliver for a moment what can be delivered, and end."""

    @abstractmethod
    def snapshots(self) -> Sequence[ExportSnapshot]:
        """How far deliveries have come."""

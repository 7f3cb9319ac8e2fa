"""The sinks: each that ships is a folder beside this file and one line here; installed packages bring others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.store.notification_outbox import Entry
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.fleet import FLEET, NOT_ARCHIVED, fleet_sink
from sidejudge.monitor.deliver.jsonl import JSONL, NOT_WRITTEN, jsonl_sink
from sidejudge.monitor.deliver.parquet import NOT_WRITTEN as NOT_IN_HISTORY
from sidejudge.monitor.deliver.parquet import PARQUET, parquet_sink
from sidejudge.monitor.deliver.plugin import plugin_sinks
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.status.snapshots import ExportSnapshot

from .dispatcher import NOT_DELIVERED
from .langfuse.delivery import LANGFUSE
from .langfuse.delivery import REASONS as LANGFUSE_REASONS
from .langfuse.sink import LangfuseScores, langfuse_sink
from .otel_events.destination import OTEL_EVENTS
from .otel_events.destination import REASONS as OTEL_EVENTS_REASONS
from .otel_events.sink import OtelEvents, otel_events_sink
from .sink import Sink, SinkParts


@dataclass(frozen=True, slots=True)
class SinkKind:
    """One kind of sink: its key in ``sinks`` and label in metrics, why it may fail, and how it is built."""

    name: str
    reasons: Sequence[str]
    build: Callable[[SinkParts], Sink | None]


KINDS: Final = (
    SinkKind(JSONL, (NOT_WRITTEN,), jsonl_sink),
    SinkKind(LANGFUSE, LANGFUSE_REASONS, langfuse_sink),
    SinkKind(OTEL_EVENTS, OTEL_EVENTS_REASONS, otel_events_sink),
    SinkKind(PARQUET, (NOT_IN_HISTORY,), parquet_sink),
)


def failure_reasons(config: Config) -> Mapping[str, Sequence[str]]:
    """Why each configured sink may not take what it is sent, by its name."""
    shipped = {kind.name: kind.reasons for kind in KINDS if getattr(config.sinks, kind.name) is not None}
    if config.fleet is not None and config.fleet.archive is not None:
        shipped[FLEET] = (NOT_ARCHIVED,)
    return shipped | dict.fromkeys(config.sinks.plugins, (NOT_DELIVERED,))


class Sinks:
    """The configured sinks of one monitor, as one."""

    def __init__(self, parts: SinkParts) -> None:
        built = [*(kind.build(parts) for kind in KINDS), fleet_sink(parts)]
        self._sinks = [sink for sink in (*built, *plugin_sinks(parts)) if sink is not None]

    @property
    def langfuse(self) -> LangfuseScores | None:
        """The sink of scores, for others that use the same project."""
        return next((sink for sink in self._sinks if isinstance(sink, LangfuseScores)), None)

    @property
    def otel_events(self) -> OtelEvents | None:
        """The sink of own telemetry, which observes judging."""
        return next((sink for sink in self._sinks if isinstance(sink, OtelEvents)), None)

    @property
    def working(self) -> bool:
        """Whether all of them still deliver."""
        return all(sink.working for sink in self._sinks)

    def scores(self, result: TraceResult) -> list[ScoreRow] | None:
        """Every score that the result is to have; None where no sink keeps scores."""
        kept = [rows for sink in self._sinks if (rows := sink.scores(result)) is not None]
        return [row for rows in kept for row in rows] if kept else None

    def entries(self, result: TraceResult) -> list[Entry]:
        """The entries of the result to be delivered."""
        return [entry for sink in self._sinks for entry in sink.entries(result)]

    def committed(self, result: TraceResult) -> None:
        """Pass on a result that is on disk."""
        for sink in self._sinks:
            sink.committed(result)

    async def start(self) -> None:
        """Begin to deliver. Raises ``SinkError`` where a sink never can."""
        for sink in self._sinks:
            await sink.start()

    async def stop(self) -> None:
        """Deliver for a moment what can be delivered, and end."""
        for sink in self._sinks:
            await sink.stop()

    def undelivered(self) -> int:
        """How many deliveries wait at this moment."""
        return sum(sink.undelivered() for sink in self._sinks)

    def snapshots(self) -> list[ExportSnapshot]:
        """How far deliveries have come, destination by destination."""
        return [snapshot for sink in self._sinks for snapshot in sink.snapshots()]

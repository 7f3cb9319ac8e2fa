"""The sinks: each built-in one is a line of ``KINDS``; small ones are in this file. Installed packages bring others."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sidejudge.integrations.backoff import DestinationUnreachableError
from sidejudge.integrations.jsonl import JsonLines
from sidejudge.integrations.plugin_calls import PluginObject
from sidejudge.integrations.store.notification_outbox import Entry, PendingNotice
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.plugins import SINKS, factory
from sidejudge.monitor.config.section import Section
from sidejudge.monitor.config.sinks import JsonlSink, PluginSink
from sidejudge.monitor.deliver.fleet import FLEET, NOT_ARCHIVED, fleet_sink
from sidejudge.monitor.deliver.otel_events.sink import OTEL_EVENTS
from sidejudge.monitor.deliver.otel_events.sink import REASONS as OTEL_EVENTS_REASONS
from sidejudge.monitor.deliver.parquet import PARQUET, ParquetHistory
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.status.snapshots import ExportSnapshot

from .dispatcher import NOT_DELIVERED, DeliveryTerms
from .langfuse.delivery import REASONS as LANGFUSE_REASONS
from .langfuse.reading_back import LANGFUSE
from .langfuse.sink import LangfuseScores, langfuse_sink
from .otel_events.sink import OtelEvents, otel_events_sink
from .sink import FILE_TERMS, NOT_WRITTEN, Sink, SinkParts, VerdictSink

log = logging.getLogger("sidejudge.deliver")

JSONL: Final = "jsonl"
_READ_BY_OTHERS: Final = 0o044


class VerdictLines(VerdictSink):
    """Appends each new or changed verdict to a file, as one line. The file is a copy; the store keeps the truth.

    Lines pass through the outbox, so that no kill costs one.
    """

    def __init__(self, section: JsonlSink, parts: SinkParts) -> None:
        super().__init__(JSONL, parts, FILE_TERMS)
        self._lines = JsonLines(section.path, int(section.mode, 8))

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Append the lines; see ``Destination``."""
        await asyncio.to_thread(self._lines.append, [entry.body.encode() for entry in entries])
        return {}

    async def start(self) -> None:
        if self._lines.check() & _READ_BY_OTHERS:
            log.warning("others may read the file of sinks.jsonl, for it was there with a mode of its own: chmod it")
        await super().start()


_LONGEST: Final = 300


class PluginVerdicts(VerdictSink):
    """Hands verdicts to one object of a plugin, at most ``batch`` at a time, in order, each at least once.

    A package that cannot be loaded, raises or hangs affects only its own deliveries: they wait in the outbox, are
    retried, and are set aside after a day until the next start.
    """

    def __init__(self, name: str, section: PluginSink, parts: SinkParts) -> None:
        super().__init__(name, parts, DeliveryTerms())
        self._object = PluginObject(name, factory(SINKS, section.use or name), section.arguments, "deliver")

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Call the plugin; see ``Destination``. It may return why it refuses a verdict, by its position."""
        returned = await self._object.call([json.loads(entry.body) for entry in entries])
        if returned is None:
            return {}
        if not isinstance(returned, Mapping) or not all(each in range(len(entries)) for each in returned):
            cause = f"deliver returns {label(repr(returned), _LONGEST)}, not None or a map from positions to reasons"
            raise DestinationUnreachableError(f"{self.name}: {cause}")
        return {entries[at].seq: label(str(why), _LONGEST) for at, why in returned.items()}


@dataclass(frozen=True, slots=True)
class SinkKind:
    """One kind of sink: its key in ``sinks`` and label in metrics, why it may fail, and how it is built of its section.

    None is built where the process is to have none in spite of the section.
    """

    name: str
    reasons: Sequence[str]
    build: Callable[[Any, SinkParts], Sink | None]


KINDS: Final = (
    SinkKind(JSONL, (NOT_WRITTEN,), VerdictLines),
    SinkKind(LANGFUSE, LANGFUSE_REASONS, langfuse_sink),
    SinkKind(OTEL_EVENTS, OTEL_EVENTS_REASONS, otel_events_sink),
    SinkKind(PARQUET, (NOT_WRITTEN,), ParquetHistory),
)


def failure_reasons(config: Config) -> Mapping[str, Sequence[str]]:
    """Why each configured sink may refuse its deliveries, by its name."""
    shipped = {kind.name: kind.reasons for kind, _ in _configured(config)}
    if config.fleet is not None and config.fleet.archive is not None:
        shipped[FLEET] = (NOT_ARCHIVED,)
    return shipped | dict.fromkeys(config.sinks.plugins, (NOT_DELIVERED,))


def _configured(config: Config) -> list[tuple[SinkKind, Section]]:
    named = [(kind, getattr(config.sinks, kind.name)) for kind in KINDS]
    return [(kind, section) for kind, section in named if section is not None]


class Sinks:
    """The configured sinks of one monitor, as one."""

    def __init__(self, parts: SinkParts) -> None:
        built = [*(kind.build(section, parts) for kind, section in _configured(parts.config)), fleet_sink(parts)]
        plugins = (PluginVerdicts(name, section, parts) for name, section in parts.config.sinks.plugins.items())
        self._sinks = [sink for sink in (*built, *plugins) if sink is not None]

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

    async def look(self) -> None:
        """Deliver what commands have left in the store."""
        for sink in self._sinks:
            sink.look()

    async def start(self) -> None:
        """Begin to deliver. Raises ``SinkError`` where a sink never can."""
        for sink in self._sinks:
            await sink.start()

    async def stop(self) -> None:
        """Deliver for a moment, and end."""
        for sink in self._sinks:
            await sink.stop()

    def undelivered(self) -> int:
        """How many deliveries wait at this moment."""
        return sum(sink.undelivered() for sink in self._sinks)

    def snapshots(self) -> list[ExportSnapshot]:
        """How far deliveries have come, destination by destination."""
        return [snapshot for sink in self._sinks for snapshot in sink.snapshots()]

"""The sink that appends verdicts to a file, one line each: through the outbox, so that no kill costs a line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from integrations.jsonl import JsonLines, line
from integrations.store.notification_outbox import Entry, PendingNotice
from monitor.deliver.dispatcher import DeliveryTerms, Dispatcher
from monitor.deliver.queue import StoredQueue
from monitor.deliver.sink import Sink, SinkParts
from monitor.evaluate.result import TraceResult
from scoring.status.export_snapshot import ExportSnapshot

JSONL: Final = "jsonl"
NOT_WRITTEN: Final = "not_written"
"""Why a verdict is not in the file: it could not be appended to for a day."""
BATCH: Final = 256
"""Lines written in one go, and settled in one transaction."""
_TERMS: Final = DeliveryTerms(refused=NOT_WRITTEN, expired=NOT_WRITTEN)


def jsonl_sink(parts: SinkParts) -> VerdictLines | None:
    """The configured sink; None without one."""
    section = parts.config.sinks.jsonl
    return None if section is None else VerdictLines(JsonLines(section.path), parts)


class VerdictLines(Sink):
    """Each new or changed verdict is one line. The file is a copy for people; the store keeps the truth."""

    name = JSONL
    batch = BATCH
    gather_s = 0.0

    def __init__(self, lines: JsonLines, parts: SinkParts) -> None:
        self._lines = lines
        queue = StoredQueue(parts.store.mail, JSONL)
        self._dispatcher = Dispatcher(self, queue, clock_ns=parts.clock_ns, counters=parts.counters, terms=_TERMS)

    def entries(self, result: TraceResult) -> Sequence[Entry]:
        """The lines of the verdicts that are new or changed."""
        changed = {verdict.rubric for verdict in result.changed}
        return [
            Entry(
                destination=JSONL,
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

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Append the lines; see ``Destination``."""
        await asyncio.to_thread(self._lines.append, [entry.body.encode() for entry in entries])
        return {}

    @property
    def working(self) -> bool:
        return self._dispatcher.working

    async def start(self) -> None:
        self._lines.check()
        await self._dispatcher.start()

    async def stop(self) -> None:
        await self._dispatcher.close()

    def snapshots(self) -> Sequence[ExportSnapshot]:
        return [self._dispatcher.snapshot()]

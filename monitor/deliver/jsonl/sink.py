"""The sink that appends verdicts to a file, one line each: through the outbox, so that no kill costs a line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from sidejudge.integrations.jsonl import JsonLines
from sidejudge.integrations.store.notification_outbox import PendingNotice
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms
from sidejudge.monitor.deliver.sink import SinkParts
from sidejudge.monitor.deliver.verdict_sink import VerdictSink

JSONL: Final = "jsonl"
NOT_WRITTEN: Final = "not_written"
"""Why a verdict is not in the file: it could not be appended to for a day."""
_TERMS: Final = DeliveryTerms(refused=NOT_WRITTEN, expired=NOT_WRITTEN)


def jsonl_sink(parts: SinkParts) -> VerdictLines | None:
    """The configured sink; None without one."""
    section = parts.config.sinks.jsonl
    return None if section is None else VerdictLines(JsonLines(section.path, int(section.mode, 8)), parts)


class VerdictLines(VerdictSink):
    """Each new or changed verdict is one line. The file is a copy for people; the store keeps the truth."""

    def __init__(self, lines: JsonLines, parts: SinkParts) -> None:
        super().__init__(JSONL, parts, _TERMS)
        self._lines = lines

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Append the lines; see ``Destination``."""
        await asyncio.to_thread(self._lines.append, [entry.body.encode() for entry in entries])
        return {}

    async def start(self) -> None:
        self._lines.check()
        await super().start()

"""The sink that appends verdicts to a file, one line each: through the outbox, so that no kill costs a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from sidejudge.integrations.jsonl import JsonLines
from sidejudge.integrations.store.notification_outbox import PendingNotice
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms
from sidejudge.monitor.deliver.sink import SinkParts, VerdictSink

log = logging.getLogger("sidejudge.deliver")

JSONL: Final = "jsonl"
NOT_WRITTEN: Final = "not_written"
"""Why a verdict is not in the file: it could not be appended to for a day."""
_READ_BY_OTHERS: Final = 0o044
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
        if self._lines.check() & _READ_BY_OTHERS:
            log.warning("others may read the file of sinks.jsonl, for it was there with a mode of its own: chmod it")
        await super().start()

"""Untaken: traces whose spans were to go on and that upstream has not taken; scores of them would hang in the air.

A mark is committed with the first spans of a trace, before it is known what becomes of them, and goes with the first
request of the trace that upstream takes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Final

from .connection import queries
from .part import Part, Read, Write

ASK_AFTER_NS: Final = 60 * 10**9
"""After how long a destination is first asked whether it has the trace all the same."""
KEPT_NS: Final = 6 * 24 * 3600 * 10**9
"""How much longer a mark stays, at most, while the spans of its trace may be kept to go on later."""
_EARLIER_NS: Final = 300 * 10**9
"""How much earlier than its request is kept a trace may be marked."""


def mark(connection: sqlite3.Connection, trace_ids: Iterable[bytes], now_ns: int) -> None:
    """Mark traces inside the transaction that commits their spans, before these are written."""
    rows = [{"trace_id": each, "now": now_ns, "due": now_ns + ASK_AFTER_NS} for each in set(trace_ids)]
    connection.executemany(queries()["untaken_mark"], rows)


class Untaken(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def __init__(self, *, write: Write, read: Read) -> None:
        super().__init__(write=write, read=read)
        self.kept_since_ns: Callable[[], int | None] = lambda: None
        """Since when requests are kept that are to go on, ns since the epoch; None: there are none."""
        self.any = bool(read("untaken_any", ())[0][0])
        """Whether there may be marks; without any, nothing is written about what upstream took."""

    def __contains__(self, trace_id: bytes) -> bool:
        return self.any and bool(self._read("untaken_is", (trace_id,)))

    async def took(self, trace_ids: Iterable[bytes]) -> None:
        """Upstream took spans of these traces."""
        if self.any:
            await self._do_each("untaken_took", [(each,) for each in trace_ids])
            self.any = bool(self._read("untaken_any", ())[0][0])

    def to_ask_for(self, now_ns: int, limit: int) -> list[tuple[bytes, int]]:
        """Traces whose scores wait and that are to be looked for at their destination, and how often they were."""
        return self._read("untaken_due", {"now": now_ns, "limit": limit}) if self.any else []

    async def asked(self, trace_id: bytes, due_ns: int) -> None:
        """It is not there; to be looked for again at ``due_ns``."""
        await self._do("untaken_asked", {"trace_id": trace_id, "due": due_ns})

    async def forget(self, before_ns: int) -> int:
        """Let go the marks that were made before, with the scores that they hold back; the number of these.

        Those of traces whose spans may be kept stay longer, by ``KEPT_NS`` at most.
        """
        if not self.any:
            return 0
        kept_ns = self.kept_since_ns()
        if kept_ns is not None:
            before_ns = max(min(before_ns, kept_ns - _EARLIER_NS), before_ns - KEPT_NS)

        def work(connection: sqlite3.Connection) -> int:
            scores = connection.execute(self._sql["untaken_scores_forget"], {"before": before_ns}).rowcount
            connection.execute(self._sql["untaken_forget"], {"before": before_ns})
            return scores

        return int(await self._write(work))

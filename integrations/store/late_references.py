"""Late references: traces to be read and judged once more, for a reference came when their spans were gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .part import Part


@dataclass(frozen=True, slots=True)
class DueRevision:
    """A trace that waits. ``wanted`` are 16 bytes that stand for its references as they are by now.

    ``since_ns`` is when the change was noticed, ns since the epoch; ``attempts`` came to nothing so far.
    """

    trace_id: bytes
    wanted: bytes
    since_ns: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRevisions:
    """How far one trace has come. ``reason`` is why the latest attempt came to nothing; ``over``: it was given up."""

    since_ns: int
    due_ns: int
    attempts: int
    reason: str | None
    over: bool


@dataclass(frozen=True, slots=True)
class LateReferenceQueue:
    """So many wait, the oldest since ``oldest_ns`` (None when none does), and so many were given up."""

    waiting: int
    oldest_ns: int | None
    over: int


class LateReferenceTable(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def due(self, now_ns: int, limit: int) -> list[DueRevision]:
        """Traces that are due, the longest waiting first."""
        return [DueRevision(*row) for row in self._read("belated_due", {"now": now_ns, "limit": limit})]

    def of(self, trace_id: bytes) -> PendingRevisions | None:
        """How far a trace has come; None where no re-evaluation is due."""
        rows = self._read("belated_of", (trace_id,))
        if not rows:
            return None
        since_ns, due_ns, attempts, reason, over = rows[0]
        return PendingRevisions(since_ns=since_ns, due_ns=due_ns, attempts=attempts, reason=reason, over=bool(over))

    def status(self) -> LateReferenceQueue:
        """How many there are."""
        return LateReferenceQueue(*self._read("belated_status", ())[0])

    async def note(self, wanted: Mapping[bytes, bytes], now_ns: int, due_ns: int) -> None:
        """Traces whose references changed, and what they are by now; they are due at ``due_ns``.

        What is known already changes nothing.
        """
        rows = [
            {"trace_id": trace_id, "wanted": what, "now": now_ns, "due": due_ns} for trace_id, what in wanted.items()
        ]
        if rows:
            await self._do_each("belated_note", rows)

    async def postpone(self, each: DueRevision, due_ns: int, reason: str, *, over: bool) -> None:
        """An attempt came to nothing: not before ``due_ns`` again, or never (``over``)."""
        postponed = {"due": due_ns, "reason": reason, "over": int(over)}
        await self._do("belated_postpone", {"trace_id": each.trace_id, "wanted": each.wanted, **postponed})

    async def revive(self, reason: str, now_ns: int) -> None:
        """Traces given up for this reason are due once more: it holds no longer."""
        await self._do("belated_revive", {"reason": reason, "now": now_ns})

    async def done(self, each: DueRevision) -> None:
        """Nothing is owed to it any more, unless its references have changed meanwhile."""
        await self._do("belated_done", {"trace_id": each.trace_id, "wanted": each.wanted})

"""Pulled: which traces were read out of Langfuse, so that each is taken once, whatever happens to the process.

Also which of them are read and judged once more, because a reference came when their spans were gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.trace.time_units import HOUR_NS

from .part import Part

LONGEST_NS = 6 * HOUR_NS
"""The longest that a trace waits to be judged once more."""
_SLICE = 1_000
_ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a trace. ``reason``: why it ended without being read, None when it was taken in.

    ``spans`` are the ids of its rows that were taken, 8 bytes each; ``last_ns`` is when the latest row that was seen
    began, ns since the epoch.
    """

    trace_id: str
    last_ns: int
    reason: str | None
    spans: frozenset[bytes] = frozenset()


class Pulled(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def known(self, trace_ids: Iterable[str]) -> dict[str, tuple[str | None, frozenset[bytes]]]:
        """The processed ones of these traces: why unread, and the rows that were taken."""
        rows = self._read("pulled_known", (json.dumps(list(trace_ids)),))
        return {trace_id: (reason, _unpacked(spans)) for trace_id, reason, spans in rows}

    def taken(self, from_ns: int, limit: int) -> list[tuple[str, int]]:
        """Traces that were taken, each with when its latest row began: the first from this time on."""
        return self._read("pulled_taken", {"from_ns": from_ns, "limit": limit})

    async def put(self, taken: Sequence[Taken]) -> None:
        """Record traces in one transaction."""
        rows = [(t.trace_id, t.last_ns, t.reason, b"".join(sorted(t.spans))) for t in taken]
        if rows:
            await self._do_each("pulled_put", rows)

    async def forget(self, before_ns: int) -> None:
        """Delete traces whose rows all began before this; no reading goes back so far."""
        while await self._do("pulled_forget", {"before": before_ns, "limit": _SLICE}) == _SLICE:
            pass


def _unpacked(spans: bytes) -> frozenset[bytes]:
    return frozenset(spans[at : at + _ID_BYTES] for at in range(0, len(spans), _ID_BYTES))


@dataclass(frozen=True, slots=True)
class DueRevision:
    """A trace that waits to be evaluated again. ``wanted`` is a digest (16 bytes) of its references as they are now.

    ``since_ns`` is when the change was noticed, ns since the epoch; ``attempts`` counts those that failed.
    """

    trace_id: bytes
    wanted: bytes
    since_ns: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRevisions:
    """The state of a trace's re-evaluation. ``reason`` is why the latest attempt failed; ``over``: it was given up."""

    since_ns: int
    due_ns: int
    attempts: int
    reason: str | None
    over: bool


@dataclass(frozen=True, slots=True)
class LateReferenceQueue:
    """The number of waiting traces, when the oldest began to wait (``oldest_ns``, or None), and the number given up."""

    waiting: int
    oldest_ns: int | None
    over: int


class LateReferenceTable(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def due(self, now_ns: int, limit: int) -> list[DueRevision]:
        """Traces that are due, the longest waiting first."""
        ahead = {"now": now_ns, "ahead": now_ns + LONGEST_NS, "limit": limit}
        return [DueRevision(*row) for row in self._read("belated_due", ahead)]

    def of(self, trace_id: bytes) -> PendingRevisions | None:
        """How far a trace has come; None where no re-evaluation is due."""
        rows = self._read("belated_of", (trace_id,))
        if not rows:
            return None
        since_ns, due_ns, attempts, reason, over = rows[0]
        return PendingRevisions(since_ns=since_ns, due_ns=due_ns, attempts=attempts, reason=reason, over=bool(over))

    def status(self) -> LateReferenceQueue:
        """The state of the queue."""
        return LateReferenceQueue(*self._read("belated_status", ())[0])

    async def note(self, wanted: Mapping[bytes, bytes], now_ns: int, due_ns: int) -> None:
        """Record traces whose references changed, with a digest of the references; they are due at ``due_ns``.

        A trace that is recorded with the same digest stays as it is.
        """
        rows = [
            {"trace_id": trace_id, "wanted": what, "now": now_ns, "due": due_ns} for trace_id, what in wanted.items()
        ]
        if rows:
            await self._do_each("belated_note", rows)

    async def postpone(self, each: DueRevision, due_ns: int, reason: str, *, over: bool) -> None:
        """Record a failed attempt: the next one is due at ``due_ns``; with ``over`` there is none."""
        postponed = {"due": due_ns, "reason": reason, "over": int(over)}
        await self._do("belated_postpone", {"trace_id": each.trace_id, "wanted": each.wanted, **postponed})

    async def revive(self, reason: str, now_ns: int) -> None:
        """Make traces due again that were given up for this reason, because it no longer holds."""
        await self._do("belated_revive", {"reason": reason, "now": now_ns})

    async def done(self, each: DueRevision) -> None:
        """Remove a trace, unless its references have changed again meanwhile."""
        await self._do("belated_done", {"trace_id": each.trace_id, "wanted": each.wanted})

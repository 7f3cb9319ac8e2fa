"""Deferred traces: closed traces that wait until the judge can be asked, oldest first, bounded in number and time.

Only ids are kept in memory. The spans are in the store, where the trace is still open, so a restart finds it again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sidejudge.monitor.ingest.assembled_trace import Closing

from .evaluation import JudgementsByMetric


@dataclass(frozen=True, slots=True)
class DeferredPlace:
    """A trace's place in the order of age. ``since_ns`` is when it was first deferred, in ns.

    ``share`` is the judged share at which it was drawn, None before the draw; a trace is drawn once. ``attempts``
    counts failed requests to the judge, ``judgements`` are those requests.
    """

    since_ns: int
    number: int
    share: float | None = None
    attempts: int = 0
    judgements: JudgementsByMetric = field(default_factory=dict, compare=False)


class DeferredTraces:
    """Traces in order of age. ``max_waiting`` bounds their number, ``max_wait_ns`` the wait of each in ns."""

    def __init__(self, *, max_waiting: int, max_wait_ns: int) -> None:
        self._max_waiting, self._max_wait_ns = max_waiting, max_wait_ns
        self._closings: dict[bytes, tuple[DeferredPlace, Closing]] = {}
        self._order: list[tuple[int, int, bytes]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._closings)

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._closings

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest was deferred, ns since the epoch; None when none waits."""
        return self._order[0][0] if self._closings else None

    @property
    def oldest(self) -> Closing | None:
        """The oldest; None when none waits."""
        return self._closings[self._order[0][-1]][1] if self._closings else None

    def place(self, now_ns: int) -> DeferredPlace:
        """A place behind all others."""
        self._number += 1
        return DeferredPlace(now_ns, self._number)

    def park(self, closing: Closing, place: DeferredPlace) -> None:
        """Defer a trace at its place; a trace that comes back keeps its old place."""
        self._closings[closing.trace_id] = (place, closing)
        heapq.heappush(self._order, (place.since_ns, place.number, closing.trace_id))

    def renew(self, closing: Closing) -> None:
        """Late spans arrived while it waits: it is judged once, with them, under the revision that it waits for."""
        place, waiting = self._closings[closing.trace_id]
        self._closings[closing.trace_id] = (place, replace(closing, revision=waiting.revision))

    def next(self) -> tuple[DeferredPlace, Closing]:
        """Remove and return the oldest."""
        *_, trace_id = heapq.heappop(self._order)
        return self._closings.pop(trace_id)

    def overdue(self, now_ns: int) -> Iterator[tuple[DeferredPlace, Closing]]:
        """Remove and yield traces that waited too long, and the oldest while too many wait."""
        while self._order:
            late = self._order[0][0] + self._max_wait_ns <= now_ns
            if not late and len(self._closings) <= self._max_waiting:
                return
            yield self.next()

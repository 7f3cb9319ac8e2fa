"""Backlog: closed traces that wait until the judge can be asked, oldest first, bounded in number and in time.

Only ids are kept; the spans are in the store, where the trace is still open, so that a restart takes it up again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from monitor.ingest.assembler import Closing

from .evaluation import Spent


@dataclass(frozen=True, slots=True)
class DeferredPlace:
    """A trace's place in the order of age. ``since_ns`` is when it first had to wait, in ns since the epoch.

    ``share`` is the judged share at which it was drawn, None before: asked again, it is not drawn again. ``attempts``
    is how often the judge was asked in vain, ``spent`` what that cost.
    """

    since_ns: int
    number: int
    share: float | None = None
    attempts: int = 0
    spent: Spent = field(default_factory=dict, compare=False)


class DeferredTraces:
    """Traces in order of age. ``max_waiting`` bounds how many, ``max_wait_ns`` how long each."""

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
        """Since when the oldest waits; None when none does."""
        return self._order[0][0] if self._closings else None

    def place(self, now_ns: int) -> DeferredPlace:
        """A place behind all others."""
        self._number += 1
        return DeferredPlace(now_ns, self._number)

    def park(self, closing: Closing, place: DeferredPlace) -> None:
        """Let a trace wait at its place; one that comes back stands where it stood."""
        self._closings[closing.trace_id] = (place, closing)
        heapq.heappush(self._order, (place.since_ns, place.number, closing.trace_id))

    def renew(self, closing: Closing) -> None:
        """Late spans came while it waits: it will be judged once, with them, as the revision that it waits for."""
        place, waiting = self._closings[closing.trace_id]
        self._closings[closing.trace_id] = (place, replace(closing, revision=waiting.revision))

    def next(self) -> tuple[DeferredPlace, Closing]:
        """Take out the oldest."""
        *_, trace_id = heapq.heappop(self._order)
        return self._closings.pop(trace_id)

    def overdue(self, now_ns: int) -> Iterator[tuple[DeferredPlace, Closing]]:
        """Take out what is beyond the bounds: what has waited too long, and the oldest while too many wait."""
        while self._order:
            late = self._order[0][0] + self._max_wait_ns <= now_ns
            if not late and len(self._closings) <= self._max_waiting:
                return
            yield self.next()

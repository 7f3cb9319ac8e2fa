"""Rate limits: a call's estimated tokens come in, a slot to run it goes out, within limits per minute and at once.

Requests and tokens are paced by the generic cell rate algorithm (ITU-T I.371): each takes its share of the minute, and
one second's worth may come at once, first come first served. The real usage corrects the estimate afterwards: a wrong
estimate delays later calls and does not accumulate.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_MINUTE_S: Final = 60.0
_BURST_S: Final = 1.0


class Pace:
    """A limit by minute. Pure given ``now`` in seconds."""

    def __init__(self, per_minute: float) -> None:
        if per_minute <= 0:
            raise ValueError(f"a rate is above 0 a minute, got {per_minute!r}")
        self._takes_s = _MINUTE_S / per_minute
        self._free_at = float("-inf")

    def reserve(self, now: float, amount: float = 1.0) -> float:
        """Take ``amount`` from the future; the seconds to wait before using it, >= 0."""
        starts = max(self._free_at, now - _BURST_S)
        self._free_at = starts + amount * self._takes_s
        return max(0.0, starts - now)

    def settle(self, amount: float) -> None:
        """Correct a reservation by the actual excess (negative: less)."""
        self._free_at += amount * self._takes_s


class Slot:
    """A running call. ``used`` records its real tokens."""

    def __init__(self, tokens: Pace | None, estimate: int) -> None:
        self._tokens = tokens
        self._estimate = estimate

    def used(self, tokens: int) -> None:
        """Correct the estimate; the last call counts."""
        if self._tokens is not None:
            self._tokens.settle(tokens - self._estimate)
            self._estimate = tokens


class RateLimits:
    """The limits of one provider."""

    def __init__(
        self, concurrency: int, requests_per_minute: float | None = None, tokens_per_minute: float | None = None,
        *, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._running = asyncio.Semaphore(concurrency)
        self._requests = Pace(requests_per_minute) if requests_per_minute else None
        self._tokens = Pace(tokens_per_minute) if tokens_per_minute else None
        self._clock = clock

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[Slot]:
        """A slot for one call of about this many tokens, held while it runs."""
        async with self._running:
            now = self._clock()
            waits = [
                pace.reserve(now, amount) for pace, amount in ((self._requests, 1), (self._tokens, tokens)) if pace
            ]
            slot = Slot(self._tokens, tokens)
            try:
                await asyncio.sleep(max(waits, default=0.0))
            except asyncio.CancelledError:
                slot.used(0)
                raise
            yield slot

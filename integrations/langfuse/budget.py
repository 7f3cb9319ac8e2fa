"""Budget: how many requests a minute one Langfuse is sent, reading and writing together.

Langfuse counts requests of an organisation by the minute, whoever sends them, and names its limit only when it has
been exceeded (``X-RateLimit-Limit`` of a 429). So the budget begins at what is configured, keeps to four fifths of a
limit that the server names, and rests as long as the server asks. Callers are served in order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

_MINUTE_S: Final = 60.0
_SHARE: Final = 0.8
"""The used share of a limit that the server names: other programs of the organisation count towards it too."""
_LONGEST_REST_S: Final = 3600.0


class RequestBudget:
    """So many requests a minute, evenly, with a few seconds' worth at once. Shared by all that ask one Langfuse."""

    def __init__(
        self,
        per_minute: float,
        *,
        burst_s: float = 2.0,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if per_minute <= 0:
            raise ValueError(f"a rate is above 0 a minute, got {per_minute!r}")
        self._per_minute = per_minute
        self._burst_s = burst_s
        self._now_s = now_s
        self._sleep = sleep
        self._free_at = float("-inf")
        self._rests_until = float("-inf")

    @property
    def per_minute(self) -> float:
        """Requests a minute that it lets through."""
        return self._per_minute

    def reserve(self) -> float:
        """Take one request from the future; the seconds to wait before sending it, >= 0."""
        now = self._now_s()
        starts = max(self._free_at, now - self._burst_s, self._rests_until)
        self._free_at = starts + _MINUTE_S / self._per_minute
        return max(0.0, starts - now)

    async def take(self) -> None:
        """Wait for one request's turn."""
        wait_s = self.reserve()
        while wait_s > 0:
            await self._sleep(wait_s)
            wait_s = self._rests_until - self._now_s()  # a rest that began meanwhile holds for those who wait

    def limited(self, retry_after_s: float | None, per_minute: int | None) -> None:
        """The server answered 429: rest as long as it asks, and keep to the limit that it names."""
        if per_minute is not None:
            self._per_minute = min(self._per_minute, max(1.0, _SHARE * per_minute))
        rest_s = min(_MINUTE_S / self._per_minute if retry_after_s is None else retry_after_s, _LONGEST_REST_S)
        self._rests_until = max(self._rests_until, self._now_s() + rest_s)

"""Shared metrics: ``/metrics`` is written once a second at most, for all that ask, and compressed once.

Some may be written in a burst, so that a single scraper always gets those of its moment.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

_BURST: Final = 8
"""Writings that may follow each other at once, after as many seconds in which nobody asked."""
_LEVEL: Final = 1
"""Metrics shrink to a twelfth at the quickest level already."""


@dataclass(frozen=True, slots=True)
class _Written:
    plain: bytes
    content_type: str
    small: bytes


class SharedMetrics:
    """The latest metrics in each format. ``write`` makes them for a format."""

    def __init__(
        self, write: Callable[[bool], Awaitable[tuple[bytes, str]]], *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock_s
        self._latest: dict[bool, _Written] = {}
        self._making = asyncio.Lock()
        self._left, self._counted_s = float(_BURST), clock_s()

    async def get(self, *, openmetrics: bool, small: bool) -> tuple[bytes, Mapping[str, str]]:
        """Body and headers: in the format of OpenMetrics or the classic one, compressed or not."""
        asked_s = self._clock()
        async with self._making:
            found = self._latest.get(openmetrics)
            if found is None or (self._counted_s <= asked_s and self._may_write()):
                plain, content_type = await self._write(openmetrics)
                packed = await asyncio.to_thread(gzip.compress, plain, _LEVEL, mtime=0)
                found = self._latest[openmetrics] = _Written(plain, content_type, packed)
                self._counted_s = max(self._counted_s, self._clock())
        headers = {"content-type": found.content_type, "vary": "accept-encoding"}
        return (found.small, {**headers, "content-encoding": "gzip"}) if small else (found.plain, headers)

    def _may_write(self) -> bool:
        now_s = self._clock()
        self._left = min(float(_BURST), self._left + max(0.0, now_s - self._counted_s))
        self._counted_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

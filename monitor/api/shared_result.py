"""Shared result: made once for many callers, and cached in proportion to its cost.

A long response is gzipped, off the event loop, for those who accept it.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from fastapi import Request, Response

_REST = 10
"""A result that took t seconds is kept for 10 t, and no longer than ``_LONGEST_NS``, for any number of callers."""
_LONGEST_NS = 5 * 10**9
_QUESTIONS = 32

T = TypeVar("T")


class SharedResult(Generic[T]):
    """One result. Callers that come while it is made wait for it; ``clock_ns`` is read before and after."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._made: T | None = None
        self._due_ns = 0
        self._making = asyncio.Lock()

    async def get(self, make: Callable[[], Awaitable[T]]) -> T:
        """The result that is kept, else that of ``make``."""
        async with self._making:
            began_ns = self._clock_ns()
            # A clock that was set back makes it anew.
            if self._made is None or not self._due_ns - _LONGEST_NS <= began_ns < self._due_ns:
                self._made = await make()
                ended_ns = self._clock_ns()
                self._due_ns = ended_ns + min(_LONGEST_NS, _REST * max(0, ended_ns - began_ns))
            return self._made


class SharedResults(Generic[T]):
    """Results by what was asked, the latest ``_QUESTIONS`` of them."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._of: OrderedDict[Hashable, SharedResult[T]] = OrderedDict()

    async def get(self, asked: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The result that is kept for this question, else that of ``make``."""
        found = self._of.setdefault(asked, SharedResult(self._clock_ns))
        self._of.move_to_end(asked)
        if len(self._of) > _QUESTIONS:
            self._of.popitem(last=False)
        return await found.get(make)


# Shared metrics: ``/metrics`` is written once a second at most in each format, for all that ask, and compressed once.
#
# Some may be written in a burst, so that a single scraper always gets those of its moment. A format has writes of its
# own: whoever asks each second for one would leave the other as it was when it was last written. The price is two
# writes a second where both are asked for as often.

_BURST: Final = 8
"""Writes that may follow each other at once, after as many seconds without a request."""
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
        self._formats = {each: _Format(write, clock_s, openmetrics=each) for each in (False, True)}

    async def get(self, *, openmetrics: bool, small: bool) -> tuple[bytes, Mapping[str, str]]:
        """Body and headers: in the format of OpenMetrics or the classic one, compressed or not."""
        found = await self._formats[openmetrics].latest()
        headers = {"content-type": found.content_type, "vary": "accept-encoding"}
        return (found.small, {**headers, "content-encoding": "gzip"}) if small else (found.plain, headers)


class _Format:
    def __init__(
        self, write: Callable[[bool], Awaitable[tuple[bytes, str]]], clock_s: Callable[[], float], *, openmetrics: bool
    ) -> None:
        self._write, self._clock, self._openmetrics = write, clock_s, openmetrics
        self._latest: _Written | None = None
        self._making = asyncio.Lock()
        self._left, self._counted_s = float(_BURST), clock_s()

    async def latest(self) -> _Written:
        asked_s = self._clock()
        async with self._making:
            if self._latest is None or (self._counted_s <= asked_s and self._may_write()):
                plain, content_type = await self._write(self._openmetrics)
                self._latest = _Written(plain, content_type, await asyncio.to_thread(packed, plain))
                self._counted_s = max(self._counted_s, self._clock())
            return self._latest

    def _may_write(self) -> bool:
        now_s = self._clock()
        self._left = min(float(_BURST), self._left + max(0.0, now_s - self._counted_s))
        self._counted_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


_LEAST = 1024
"""Smallest response, in bytes, that is compressed."""


async def compressed(body: bytes, content_type: str, request: Request) -> Response:
    """A response with this body, compressed where it is long and the caller accepts it."""
    from fastapi import Response  # noqa: PLC0415  # metrics are shared without it

    headers = {"content-type": content_type, "vary": "accept-encoding"}
    if len(body) >= _LEAST and accepts_gzip(",".join(request.headers.getlist("accept-encoding"))):
        body = await asyncio.to_thread(packed, body)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers)


def packed(body: bytes) -> bytes:
    """A body, gzipped; the same bytes for the same body."""
    return gzip.compress(body, _LEVEL, mtime=0)


def accepts_gzip(encodings: str) -> bool:
    """Whether a caller with this ``Accept-Encoding`` accepts a compressed response."""
    for entry in encodings.lower().split(","):
        name, _, weight = entry.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False

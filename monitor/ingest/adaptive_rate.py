"""Adaptive sampling rate: every trace is drawn while there are few, and a share of them beyond so many an hour.

The rate is ``traces_per_hour`` divided by the traces of the last hour, at most 1. It is known before a trace's own
randomness is looked at, and depends on how many traces came, never on which of them were drawn. So the probability that
is recorded for each trace is the true one, and weighting by its inverse is unbiased however the rate changes
(``sampler.py``). The draw is made once, when the first span of a trace comes in.

Price: the rate follows a sudden load within the hour only. Of N traces in the first hour at most L(1 + ln(N / L)) are
drawn, L being the limit; from then on about L an hour.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from .sampler import threshold

_MINUTE_NS: Final = 60 * 10**9
_MINUTES: Final = 60
_REMEMBERED: Final = 10_000
"""Traces whose draw is remembered: those whose first chunks are on their way to a commit at the same time."""


class AdaptiveRate:
    """Counts the traces of the last hour by minute. Not thread-safe: it lives on the event loop."""

    def __init__(self, traces_per_hour: int, *, remembered: int = _REMEMBERED) -> None:
        self._limit, self._remembered = traces_per_hour, remembered
        self._counts = [0] * _MINUTES
        self._total = 0
        self._minute: int | None = None
        self._drawn: OrderedDict[bytes, int] = OrderedDict()

    def rate(self, now_ns: int) -> float:
        """The share of traces that is drawn now, in (0, 1]."""
        self._forget(now_ns // _MINUTE_NS)
        return 1.0 if self._total < self._limit else self._limit / (self._total + 1)

    def threshold(self, trace_id: bytes, now_ns: int) -> int:
        """The threshold that a trace which begins now must reach, in [0, 2**56]; the trace is counted.

        A trace whose parts arrive at the same moment has one threshold for all of them.
        """
        known = self._drawn.get(trace_id)
        if known is not None:
            return known
        drawn = threshold(self.rate(now_ns))
        self._counts[(self._minute or 0) % _MINUTES] += 1
        self._total += 1
        self._drawn[trace_id] = drawn
        if len(self._drawn) > self._remembered:
            self._drawn.popitem(last=False)
        return drawn

    def _forget(self, minute: int) -> None:
        """Leave out the minutes that are over an hour ago. A clock that is set back changes nothing."""
        if self._minute is None:
            self._minute = minute
        for passed in range(self._minute + 1, min(minute, self._minute + _MINUTES) + 1):
            self._total -= self._counts[passed % _MINUTES]
            self._counts[passed % _MINUTES] = 0
        self._minute = max(minute, self._minute)

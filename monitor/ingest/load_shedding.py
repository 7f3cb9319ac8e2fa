"""Rates that follow the load: fewer traces are drawn while more come than can or should be judged.

*Load shedding.* The fuller the queue of closed traces is, the lower the rate: from a quarter on it is halved step by
step. Traces that are not drawn end as *shed*. It is a draw like any other (``sampler.py``): on the trace's own
randomness, nested in what the rules draw, and the inclusion probability that is recorded is the product. So verdicts
become fewer under load, and estimates stay unbiased. Only a full queue refuses requests.

The draw is made when a trace closes, where it acts at once. Traces that would have been shed at any moment of the last
minute are not even opened, and so cost no write. Each of both draws has one threshold in [0, 2**56]; 0 sheds nothing.

*Traces an hour.* All traces are drawn up to a number an hour, and a share of them beyond it. The rate is
``traces_per_hour`` divided by the traces of the last hour, at most 1. It is known before a trace's own randomness is
looked at, and depends on how many traces came, never on which of them were drawn. So the probability that is recorded
for each trace is the true one, and weighting by its inverse is unbiased however the rate changes (``sampler.py``). The
draw is made once, when the first span of a trace comes in.

A restart goes on with what was counted; a crash loses the last minute of it.

Price: the rate follows a sudden load within the hour only. Of N traces in the first hour at most L(1 + ln(N / L)) are
drawn, L being the limit; from then on about L an hour.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from sidejudge.integrations.otlp.wire.tracestate import probability, threshold
from sidejudge.scoring.trace.time_units import MINUTE_NS

_BEGIN: Final = 0.25
"""Fullness of the queue at which the rate begins to fall."""
_STEPS: Final = 10
"""Halvings up to a full queue."""
_PERIOD_NS: Final = 30 * 10**9
"""The lowest threshold is known for the running period of this length and the one before."""


class LoadShedding:
    """``admission`` is the threshold of the sampler's first pass, ``max_waiting`` how many closed traces may wait."""

    def __init__(self, *, admission: int, max_waiting: int) -> None:
        rate = probability(admission)
        self._limits = (0, *(threshold(rate * 2.0**-steps) for steps in range(1, _STEPS + 1)))
        self._max_waiting = max_waiting
        self._waiting = self._steps = 0
        self._period = 0
        self._lowest = [0, 0]  # of the running period and the one before

    @property
    def share(self) -> float:
        """Share of the traces that sampling keeps that are judged now, in (0, 1]."""
        return float(2.0**-self._steps)

    @property
    def full(self) -> bool:
        """Whether no further trace is taken."""
        return self._waiting >= self._max_waiting

    @property
    def closing_threshold(self) -> int:
        """The threshold that a trace which closes now must reach."""
        return self._limits[self._steps]

    @property
    def opening_threshold(self) -> int:
        """The threshold that a trace which begins now must reach: none lower was in force for half a minute."""
        return min(self._lowest)

    def update(self, waiting: int, now_ns: int) -> None:
        """Note how many closed traces wait to be judged."""
        self._set(waiting)
        period, limit = now_ns // _PERIOD_NS, self.closing_threshold
        if period == self._period:
            self._lowest[0] = min(self._lowest[0], limit)
        else:
            before = self._lowest[0] if period == self._period + 1 else 0
            self._period, self._lowest = period, [limit, before]

    def added(self) -> None:
        """Note that one more waits. Many close at once, and the rate follows within them."""
        self._set(self._waiting + 1)

    def _set(self, waiting: int) -> None:
        self._waiting = waiting
        filled = waiting / self._max_waiting
        self._steps = 0 if filled <= _BEGIN else min(_STEPS, 1 + int((filled - _BEGIN) / (1 - _BEGIN) * _STEPS))


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

    def counts(self) -> dict[int, int]:
        """The traces of each minute of the last hour that had any, by the minute's number since the epoch."""
        last = self._minute or 0
        return {last - back: many for back in range(_MINUTES) if (many := self._counts[(last - back) % _MINUTES])}

    def restore(self, counts: Mapping[int, int], now_ns: int) -> None:
        """Go on with the counts of the process before; those from before a clock was set back are left out."""
        self._forget(now := now_ns // MINUTE_NS)
        for minute, many in counts.items():
            if now - _MINUTES < minute <= now:
                self._counts[minute % _MINUTES] += many
                self._total += many

    def rate(self, now_ns: int) -> float:
        """The share of traces that is drawn now, in (0, 1]."""
        self._forget(now_ns // MINUTE_NS)
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
        """Leave out the minutes that are over an hour ago. Once a clock is set back each is as long ago as before."""
        if self._minute is None:
            self._minute = minute
        if (ahead := self._minute - minute) > 0:
            self._counts = [self._counts[(place + ahead) % _MINUTES] for place in range(_MINUTES)]
        for passed in range(self._minute + 1, min(minute, self._minute + _MINUTES) + 1):
            self._total -= self._counts[passed % _MINUTES]
            self._counts[passed % _MINUTES] = 0
        self._minute = minute

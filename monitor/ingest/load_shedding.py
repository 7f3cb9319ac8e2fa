"""Load shedding: while more traces are closed than can be judged, fewer are drawn, each with its true probability.

The fuller the queue of closed traces is, the lower the rate: from a quarter on it is halved step by step. What is not
drawn any more ends as *shed*. It is a draw like any other (``sampler.py``): on the trace's own randomness, nested in
what the rules draw, and the inclusion probability that is recorded is the product. So verdicts become fewer under load,
and estimates stay unbiased. Only a full queue refuses requests.

The draw is made when a trace closes, where it acts at once. What would have been shed in any moment of the last minute
is not even opened: it costs no write. Both look at one threshold each, in [0, 2**56]; 0 sheds nothing.
"""

from __future__ import annotations

from typing import Final

from .sampler import probability, threshold

_BEGIN: Final = 0.25
"""Share of the queue from which on the rate is lowered."""
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

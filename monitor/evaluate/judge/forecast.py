"""Forecast: what judging everything would cost a second, by priority, estimated from the recent past.

Arrivals are a point process; their rate is an exponentially weighted sum of the events. Two memories: ten minutes,
which is exact on average however traffic comes in bursts; half a minute, of which a third is believed, so that a spike
that stays is felt within seconds and a short burst is not taken for one.
"""

from __future__ import annotations

import math
from typing import Final

LONG_S: Final = 600.0
SHORT_S: Final = 30.0
_BELIEVED: Final = 1 / 3
_CASES_REMEMBERED: Final = 50


class SpendingRate:
    """Events a second with a memory of ``tau_s``. Pure given ``now``."""

    def __init__(self, tau_s: float) -> None:
        self._tau_s = tau_s
        self._sum = 0.0
        self._at = -math.inf

    def add(self, now: float) -> None:
        self._sum = self._sum * self._decay(now) + 1.0
        self._at = max(now, self._at)

    def per_s(self, now: float) -> float:
        """The rate; the last event counts half, for it is at an event that one asks (the midpoint rule)."""
        return max(0.0, self._sum - 0.5) * self._decay(now) / self._tau_s

    def _decay(self, now: float) -> float:
        return math.exp(-max(0.0, now - self._at) / self._tau_s)


class Demand:
    """What judging every case of one priority would cost: arrivals a second × mean dollars a judged case."""

    def __init__(self) -> None:
        self._long = SpendingRate(LONG_S)
        self._short = SpendingRate(SHORT_S)
        self._judged = 0
        self.mean_usd: float | None = None
        """Mean dollars of a judged case, those answered from the cache for nothing included; None: none yet."""

    def arrived(self, now: float) -> None:
        self._long.add(now)
        self._short.add(now)

    def judged(self, cost_usd: float, *, again: bool = False) -> None:
        """A case cost so much; ``again``: so much more than was recorded for it before."""
        if again and self.mean_usd is not None:
            self.mean_usd += cost_usd / self._judged
            return
        self._judged = min(self._judged + 1, _CASES_REMEMBERED)
        mean = self.mean_usd or 0.0
        self.mean_usd = mean + (cost_usd - mean) / self._judged

    def cases_per_s(self, now: float) -> float:
        return max(self._long.per_s(now), _BELIEVED * self._short.per_s(now))

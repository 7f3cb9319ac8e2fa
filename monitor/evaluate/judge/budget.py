"""Budget: dollars an hour and a day for judging, kept by judging a smaller share of the cases, not by stopping.

The cost of judging everything is forecast for each priority (``forecast``). The allowance is the rest of the hour's and
of the day's budget, spread over the remaining time of each (UTC); the smaller counts. Where the forecast exceeds it,
the judged share ``q`` of cases falls, low priorities first; each keeps a twentieth of the allowance, so that none falls
silent. A case is judged with probability ``q``, which its verdict's inclusion probability records, so estimates stay
unbiased (Horvitz–Thompson). When the budget is spent no case is judged (q = 0): that time is not covered.

The forecast comes from the recent past. Arrivals are a point process; their rate is an exponentially weighted sum of
the events, by two memories: ten minutes, which is exact on average however traffic comes in bursts; half a minute, with
a weight of a third, so that a lasting spike counts within seconds and a short burst hardly does.

Pure given ``now``: seconds since the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidejudge.monitor.config.evaluators import Priority

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
        self._at = now  # also where the clock was set back: what is added from now on fades from now on

    def per_s(self, now: float) -> float:
        """The rate; the last event counts half, because the rate is read at events (the midpoint rule)."""
        return max(0.0, self._sum - 0.5) * self._decay(now) / self._tau_s

    def _decay(self, now: float) -> float:
        return math.exp(-max(0.0, now - self._at) / self._tau_s)


class Demand:
    """The cost of judging every case of one priority: arrivals a second × mean dollars a judged case."""

    def __init__(self) -> None:
        self._long = SpendingRate(LONG_S)
        self._short = SpendingRate(SHORT_S)
        self._judged = 0
        self.mean_usd: float | None = None
        """Mean dollars of a judged case, including free answers from the cache; None: none yet."""

    def arrived(self, now: float) -> None:
        self._long.add(now)
        self._short.add(now)

    def judged(self, cost_usd: float, *, again: bool = False) -> None:
        """Record the cost of a case; ``again``: the cost in addition to an earlier record."""
        if again and self.mean_usd is not None:
            self.mean_usd += cost_usd / self._judged
            return
        self._judged = min(self._judged + 1, _CASES_REMEMBERED)
        mean = self.mean_usd or 0.0
        self.mean_usd = mean + (cost_usd - mean) / self._judged

    def cases_per_s(self, now: float) -> float:
        return max(self._long.per_s(now), _BELIEVED * self._short.per_s(now))


HOUR_S: Final = 3600
DAY_S: Final = 86_400
KEPT: Final = 0.05
"""Share of the allowance that each priority keeps, regardless of the others."""
_SHORTEST_S: Final = 1.0
AHEAD_S: Final = 600.0
"""How long a fleet's grant to a monitor should last."""


PRIORITIES: Final[tuple[Priority, ...]] = ("high", "normal", "low")
"""Whose cases are thinned last, to whose are thinned first."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money set aside for a call that is under way."""

    usd: float


class JudgeBudget:
    """Keeps the spending by the hour, and returns the share of the traffic that may be judged.

    ``per_hour`` and ``per_day`` in US dollars, None without a limit. ``spent`` is the store's record: dollars by the
    second since the epoch at which an hour began. All hours are remembered, for a clock may be set by any time, and a
    year of them takes a megabyte.
    """

    def __init__(
        self, *, per_hour: float | None = None, per_day: float | None = None, spent: Mapping[int, float] | None = None
    ) -> None:
        self.limits = [(length, usd) for length, usd in ((HOUR_S, per_hour), (DAY_S, per_day)) if usd is not None]
        # What calls were set aside for and gave back leaves a residue of rounding, which may lie below nothing.
        self._spent = {hour: max(0.0, usd) for hour, usd in (spent or {}).items()}
        self.grants: Mapping[int, float] | None = None
        """Dollars by the hour that the fleet grants this monitor; they take the place of the limits. None: alone."""
        self.refused_usd = 0.0
        """The dearest call since ``take_refused`` that a limit refused."""
        self._reserved = 0.0
        self._demand: dict[Priority, Demand] = {priority: Demand() for priority in PRIORITIES}

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.limits)

    def arrive(self, priority: Priority, now: float) -> float:
        """A case is about to be judged: the probability in [0, 1] with which it may be. To be called once a case."""
        self._demand[priority].arrived(now)
        return self.q(priority, now)

    def judged(self, priority: Priority, cost_usd: float, *, again: bool = False) -> None:
        """Record the cost of a judged case (0 when the cache answered all of it); ``again``: it was counted before."""
        self._demand[priority].judged(cost_usd, again=again)

    def q(self, priority: Priority, now: float) -> float:
        """The share of this priority's cases that may be judged now, in [0, 1]."""
        if not self.limits:
            return 1.0
        allowance = self.allowance(now)
        if self._left(now) <= (self._mean_usd(priority) or 0.0):
            return 0.0  # before the draw: a case that is drawn and then refused would be missing from the estimate
        forecast = {each: self.forecast(each, now) for each in PRIORITIES}
        kept = {each: min(forecast[each], KEPT * allowance) for each in PRIORITIES}
        free = max(0.0, allowance - sum(kept.values()))
        for each in PRIORITIES:
            granted = min(forecast[each], kept[each] + free)
            free = max(0.0, free - (granted - kept[each]))
            if each is priority:
                return granted / forecast[each] if forecast[each] > 0.0 else 1.0
        raise AssertionError(priority)

    def forecast(self, priority: Priority, now: float) -> float:
        """Dollars a second for judging all cases of this priority, as far as known."""
        return self._demand[priority].cases_per_s(now) * (self._mean_usd(priority) or 0.0)

    def allowance(self, now: float) -> float:
        """Dollars a second that may be spent now: the smallest rest by remaining time; inf without a limit."""
        left = [
            (limit - self.spent(length, now) - self._reserved, over_s) for length, limit, over_s in self._in_force(now)
        ]
        return min((max(0.0, usd) / max(_SHORTEST_S, seconds) for usd, seconds in left), default=float("inf"))

    def reserve(self, usd: float, now: float) -> Reservation | None:
        """Set money aside for a call; None when a limit would be exceeded: the hard stop."""
        for length, limit, _ in self._in_force(now):
            if self.spent(length, now) + self._reserved + usd > limit:
                self.refused_usd = max(self.refused_usd, usd)
                return None
        self._reserved += usd
        return Reservation(usd)

    def fits_later(self, usd: float, now: float) -> bool:
        """Whether a call that is refused now would fit once the calls under way have settled for less."""
        return self._reserved > 0.0 and all(
            self.spent(length, now) + usd <= limit for length, limit, _ in self._in_force(now)
        )

    def refusal(self, usd: float, now: float) -> str:
        """Why a call is refused: the spending and the limit that it would exceed, and its possible cost."""
        for length, limit, _ in self._in_force(now):
            if (spent := self.spent(length, now)) + usd > limit:
                period = "hour" if length == HOUR_S else "day"
                return f"{spent:.4f} of {limit:.4f} USD this {period}, and the next call may cost {usd:.4f}"
        return f"the next call may cost {usd:.4f} USD"

    def settle(self, reservation: Reservation, cost_usd: float, now: float) -> None:
        """End the call with its cost, which counts for the hour in which it ended."""
        self._reserved = max(0.0, self._reserved - reservation.usd)
        hour = int(now // HOUR_S) * HOUR_S
        self._spent[hour] = self._spent.get(hour, 0.0) + cost_usd

    def spent(self, length_s: int, now: float) -> float:
        """Dollars spent in the running hour or day (``HOUR_S``, ``DAY_S``), later too: the clock may be set back."""
        begun = int(now // length_s) * length_s
        return sum(self._spent.get(hour, 0.0) for hour in range(begun, begun + length_s, HOUR_S))

    def spent_in(self, hour: int) -> float:
        """Dollars spent in the hour that began then."""
        return self._spent.get(hour, 0.0)

    def count(self, hour: int, usd: float) -> None:
        """The hour that began then cost this much in all, whatever is recorded here."""
        self._spent[hour] = usd

    def committed(self, now: float) -> float:
        """Dollars of the running hour that are spent or set aside."""
        return self.spent(HOUR_S, now) + self._reserved

    def demand(self, now: float) -> float:
        """Dollars a second for judging all cases, as far as known."""
        return sum(self.forecast(each, now) for each in PRIORITIES)

    def take_refused(self) -> float:
        """Return ``refused_usd`` and reset it."""
        refused, self.refused_usd = self.refused_usd, 0.0
        return refused

    def _left(self, now: float) -> float:
        return min(limit - self.spent(length, now) - self._reserved for length, limit, _ in self._in_force(now))

    def _in_force(self, now: float) -> list[tuple[int, float, float]]:
        """Each limit: the length of its time, dollars, and the seconds that they are to last from now on."""
        if self.grants is None or not self.limits:
            return [(length, usd, length - now % length) for length, usd in self.limits]
        hour = int(now // HOUR_S) * HOUR_S
        return [(HOUR_S, self.grants.get(hour, 0.0), min(AHEAD_S, HOUR_S - now % HOUR_S))]

    def _mean_usd(self, priority: Priority) -> float | None:
        """Mean cost of a case of this priority; while none was judged, the dearest of the others."""
        own = self._demand[priority].mean_usd
        return own if own is not None else max((d.mean_usd for d in self._demand.values() if d.mean_usd), default=None)

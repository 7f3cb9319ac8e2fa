"""Rhythm: the pass ratio that is usual at an hour of the day, where it is lower there day after day.

Other people ask other things at night. A ratio that falls each evening is no news, however sharply it falls; a change
detector that measures from the last hours would report it each evening.

Each hour of the day (UTC) remembers its last ``DAYS`` days. They are evidence against what is usual by the likelihood
of their ratios, each day for a quarter of ``PROOF`` at most and days that are better against it, so that an incident of
a day or two is no rhythm. Once that suffices, the median of the days is usual there. An hour that proves nothing alone
is taken with its neighbours, if it shows the same itself.
"""

from __future__ import annotations

import math
from array import array
from statistics import median
from typing import Final, NamedTuple

from sidejudge.scoring.trace.span import JsonRecord

DAYS: Final = 7
PROOF: Final = math.log(10_000)
"""In nats; a constant ratio gave as much in none of 50,000 hours, held against one standard error below its mean."""
HOUR_NS: Final = 3_600 * 10**9
_DAY: Final = 24
_LEAST_DAYS: Final = 4
_TOGETHER: Final = (range(1), range(2), range(-1, 2), range(4))
"""Which hours, counted from the present one, are taken together until something is proven."""
_LEAST_VARIANCE: Final = 1e-4
_OF_A_MEDIAN: Final = 1.25
"""The standard error of a median, in that of a mean."""


class _Stretch(NamedTuple):
    """Effective verdicts of a stretch of time, and how many of them failed."""

    n: float
    failed: float


class Rhythm:
    """The usual pass ratios of one service under one rubric by the hour of the day."""

    __slots__ = ("_below", "_days", "_failed", "_hour", "_squared", "_weight")

    def __init__(self) -> None:
        self._days: dict[int, array[float]] = {}
        """Of each hour of the day its days, the latest first, each as the two numbers of a stretch."""
        self._hour = -1
        self._weight = self._failed = self._squared = 0.0
        self._below: dict[int, float] = {}

    def add(self, *, passed: bool, weight: float, at_ns: int, worth: float = 1.0) -> None:
        """Take in verdicts of this weight, which together are worth so many (``design_effect``)."""
        if (hour := at_ns // HOUR_NS) > self._hour:
            self._close(hour)
        self._weight += worth * weight
        self._failed += worth * weight * (not passed)
        self._squared += worth * weight * weight

    def below(self, usual: float) -> float:
        """``usual``, or one standard error below what is usual at the hour of the latest verdict if that is lower."""
        cents = math.ceil(100 * usual)
        if cents not in self._below:
            self._below[cents] = self._of_the_hour(min(max(cents / 100, 0.01), 0.99))
        return min(usual, self._below[cents])

    def _of_the_hour(self, usual: float) -> float:
        for hours in _TOGETHER:
            days = self._together(hours)
            evidence = sum(min(PROOF / _LEAST_DAYS, _evidence(day, usual)) for day in days)
            if len(days) < _LEAST_DAYS or evidence <= 0:
                break  # of the hour itself nothing is known, or it has no part in what its neighbours show
            if evidence >= PROOF:
                failed, n = median(day.failed / day.n for day in days), sum(day.n for day in days)
                return 1 - failed - _OF_A_MEDIAN * math.sqrt(max(failed * (1 - failed), _LEAST_VARIANCE) / n)
        return 1.0

    def _together(self, steps: range) -> list[_Stretch]:
        """The days of the hours that are so far from the present one, added up."""
        hours = [self._days.get((self._hour + step) % _DAY, array("f")) for step in steps]
        return [
            _Stretch(sum(each[at] for each in hours), sum(each[at + 1] for each in hours))
            for at in range(0, min(map(len, hours)), 2)
        ]

    def _close(self, hour: int) -> None:
        if self._weight:
            n = self._weight**2 / self._squared
            days = self._days.setdefault(self._hour % _DAY, array("f"))
            days[:0] = array("f", (n, n * self._failed / self._weight))
            del days[2 * DAYS :]
        self._hour, self._weight, self._failed, self._squared = hour, 0.0, 0.0, 0.0
        self._below.clear()

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "days": [[hour, [round(each, 2) for each in days]] for hour, days in self._days.items()],
            "hour": self._hour, "weight": self._weight, "failed": self._failed, "squared": self._squared,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._days = {int(hour): array("f", days) for hour, days in record["days"]}
        self._hour = int(record["hour"])
        self._weight, self._failed, self._squared = (float(record[name]) for name in ("weight", "failed", "squared"))
        self._below.clear()


def _evidence(day: _Stretch, usual: float) -> float:
    """By how much the day's own ratio explains it better than the usual one, in nats; negative for a better day."""
    failed = day.failed / day.n
    parts = ((failed, 1 - usual), (1 - failed, usual))
    found = day.n * sum(part * math.log(part / expected) for part, expected in parts if part > 0)
    return found if failed > 1 - usual else -found

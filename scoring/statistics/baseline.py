"""Baseline: the pass ratio that a service usually has, from which a change detector measures a fall.

A detector that is designed for 0.90 alarms falsely at a constant 0.87, and is slow where 0.96 is usual. So it learns
the usual ratio, as self-starting charts do (Hawkins 1987, doi:10.2307/2348827): a fading mean of the last ``MEMORY``
verdicts that begins as ``PRIOR`` verdicts at the expected ratio. A fall within hours hardly moves it. The detector uses
one standard error below the mean, because a baseline that is too high by chance would alarm falsely.

*Anchor*: the pass ratio of a service over about the last week, which follows a slow decay only slowly. ``Baseline``
follows the last hundreds of verdicts, so that after a fall to a healthy ratio that ratio is soon the usual one. A decay
over days moves such a baseline too, and no detector that measures from it notices. The anchor's mean fades with time
instead: a week-old verdict counts for 1/e, however many came since. At first it leans on the expected ratio, as
``PRIOR`` verdicts; its users take one standard error below the mean.

A mean of the latest verdicts lags behind a sliding ratio by the fall within its memory. ``present`` corrects for three
quarters of that, because the noise of the mean already makes it too low often enough.

*By the hour*: the pass ratio that is usual at an hour of the day, where it is lower there day after day. Other people
ask other things at night. A ratio that falls each evening is no news, however sharply it falls; a change detector that
measures from the last hours would report it each evening.

Each hour of the day (UTC) remembers its last ``DAYS`` days. Each is evidence against what is usual, by the likelihood
of its ratio and for a quarter of ``PROOF`` at most; a better day is evidence for it. So an incident of a day or two
proves nothing. Once the days suffice, their median is usual at that hour. An hour that proves nothing alone is taken
with its neighbours, if it shows the same itself.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS

from .evidence import Scale, Together

MEMORY = 400.0
RECENT = 500.0
"""The memory of the ratio that is compared with the threshold itself once a change is proven (``anchor``)."""
PRIOR = 100.0
_LEAST_VARIANCE = 1e-4


def _below(failed: float, size: float, errors: float = 1.0) -> float:
    """So many standard errors below the pass ratio, for a share of failures among ``size`` effective verdicts."""
    return 1 - failed - errors * math.sqrt(max(failed * (1 - failed), _LEAST_VARIANCE) / size)


class Baseline:
    """The usual pass ratio of one service under one rubric; ``expected`` is where it begins.

    ``memory`` is the number of verdicts of equal weight after which one counts for 1/e.
    """

    __slots__ = ("_expected", "_failed", "_memory", "_scale", "_squared", "_weight")

    def __init__(self, expected: float, memory: float = MEMORY) -> None:
        self._expected, self._memory, self._scale = expected, memory, Scale()
        self._weight = self._squared = PRIOR
        self._failed = PRIOR * (1 - expected)

    def add(self, *, passed: bool, weight: float, worth: float = 1.0, at_ns: int | None = None) -> None:
        """Take in the next verdict, of weight 1/probability; ``worth`` as in ``design_effect``, a sum of several."""
        self._scale.pass_to(at_ns, weight)
        share = self._scale.share(weight)
        if share is None:
            self._begin_anew()
            share = 1.0
        counts = worth * share
        kept = max(0.0, 1 - counts / self._memory) if self._weight >= self._memory else 1.0
        self._weight = self._weight * kept + counts
        self._failed = self._failed * kept + counts * (not passed)
        self._squared = self._squared * kept * kept + counts * share

    def add_together(self, group: Sequence[Together], *, at_ns: int | None = None) -> None:
        """Take in verdicts that came together in an unknown order."""
        if not group:
            return
        self._scale.pass_together(at_ns, group)
        shares, anew = self._scale.shares_or_anew({each.weight for each in group})
        if anew:
            self._begin_anew()
        counts = math.fsum(each.worth * shares[each.weight] for each in group)
        if counts <= 0:
            return
        kept = math.exp(-counts / self._memory) if self._weight >= self._memory else 1.0
        used = self._memory * (1 - kept) / counts if kept < 1 else 1.0
        failed = math.fsum(each.worth * shares[each.weight] for each in group if not each.passed)
        squared = math.fsum(each.worth * shares[each.weight] ** 2 for each in group)
        self._weight = self._weight * kept + used * counts
        self._failed = self._failed * kept + used * failed
        self._squared = self._squared * kept * kept + used * squared

    @property
    def weight(self) -> float:
        """Its size as a number of verdicts of the largest weight."""
        return self._weight

    @property
    def mean(self) -> float:
        """The mean, in [0, 1]."""
        return 1 - self._failed / self._weight

    @property
    def lower(self) -> float:
        """One standard error below the mean, in (-1, 1)."""
        return _below(self._failed / self._weight, self._weight**2 / self._squared)

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {"weight": self._weight, "failed": self._failed, "squared": self._squared, **self._scale.to_json()}

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._weight, self._failed, self._squared = (float(record[name]) for name in ("weight", "failed", "squared"))
        self._scale = Scale.of_json(record)

    def _begin_anew(self) -> None:
        self._weight = self._squared = PRIOR
        self._failed = PRIOR * (1 - self._expected)


MEMORY_NS: Final = 7 * DAY_NS
_TAKEN_OFF: Final = 0.75
_MOST_AHEAD: Final = 0.25
"""The largest correction: with little traffic the latest verdicts and those of the week are nearly the same."""


class Anchor:
    """The pass ratio of the last week of one service under one rubric; ``expected`` is where it begins."""

    __slots__ = ("_expected", "_failed", "_last_ns", "_scale", "_squared", "_weight")

    def __init__(self, expected: float) -> None:
        self._expected, self._scale = expected, Scale()
        self._weight = self._failed = self._squared = 0.0
        self._last_ns: int | None = None

    def add(self, *, passed: bool, weight: float, at_ns: int, worth: float = 1.0) -> None:
        """Take in the next verdict, of weight 1/probability; ``worth`` as in ``design_effect``."""
        self.add_together([Together(passed, weight, 1, worth)], at_ns=at_ns)

    def add_together(self, group: Sequence[Together], *, at_ns: int) -> None:
        """Take in verdicts of this time in an unknown order."""
        if not group:
            return
        self._scale.pass_together(at_ns, group)
        shares, anew = self._scale.shares_or_anew({each.weight for each in group})
        if anew:
            self._weight = self._failed = self._squared = 0.0
        passed_ns = 0 if self._last_ns is None else max(0, at_ns - self._last_ns)
        self._last_ns = at_ns if self._last_ns is None else max(at_ns, self._last_ns)
        kept = math.exp(-passed_ns / MEMORY_NS)
        self._weight = self._weight * kept + math.fsum(each.worth * shares[each.weight] for each in group)
        self._failed = self._failed * kept + math.fsum(
            each.worth * shares[each.weight] for each in group if not each.passed
        )
        self._squared = self._squared * kept * kept + math.fsum(each.worth * shares[each.weight] ** 2 for each in group)

    @property
    def lower(self) -> float:
        """One standard error below the mean, in (-1, 1)."""
        weight = self._weight + PRIOR
        failed = (self._failed + PRIOR * (1 - self._expected)) / weight
        return _below(failed, weight**2 / (self._squared + PRIOR))

    def present(self, recent: Baseline) -> float:
        """The present pass ratio once a slide is proven, from the mean of the latest verdicts."""
        between, fell = self._weight - recent.weight, max(0.0, self.lower - recent.mean)
        ahead = min(_MOST_AHEAD, recent.weight / between) if between > 0 else _MOST_AHEAD
        return max(0.0, recent.mean - _TAKEN_OFF * ahead * fell)

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "weight": self._weight, "failed": self._failed, "squared": self._squared, "last_ns": self._last_ns,
            **self._scale.to_json(),
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._weight, self._failed, self._squared = (float(record[name]) for name in ("weight", "failed", "squared"))
        self._last_ns = record["last_ns"]
        self._scale = Scale.of_json(record)


DAYS: Final = 7
PROOF: Final = math.log(10_000)
"""In nats; a constant ratio gave as much in none of 50,000 hours, held against one standard error below its mean."""
_DAY: Final = 24
_LEAST_DAYS: Final = 4
_TOGETHER: Final = (range(1), range(2), range(-1, 2), range(4))
"""Which hours, counted from the present one, are taken together until something is proven."""
_OF_A_MEDIAN: Final = 1.25
"""The standard error of a median as a multiple of a mean's."""


class _Stretch(NamedTuple):
    """Effective verdicts of a stretch of time, and how many of them failed."""

    n: float
    failed: float


class UsualByHour:
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
        hour = at_ns // HOUR_NS
        if not 0 <= self._hour - hour <= 1:  # of the hour before it is a late one; of earlier ones the clock was wrong
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
                return _below(failed, n, _OF_A_MEDIAN)
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

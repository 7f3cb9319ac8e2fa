"""Arrivals: a service's usual verdicts at each hour of the week, and from when a silence is unusual.

The mean of each hour of the week (UTC) is learned over some weeks. Where clocks change, traffic that follows them moves
by an hour: an hour that is far from its own mean and near to that of the one beside it is learned anew, and for a week
a silence has to be unusual an hour earlier and later too. An hour that was never seen takes the mean of the same hour
on other days, and before there are any that of the quietest hour so far. The pace of the last verdicts is an upper
bound, so that a service that has become quiet is not expected to be busy.

How many verdicts make a burst is learned from the gaps between moments at which some came. Λ of a gap is its length in
usual verdicts. Where n verdicts come at each moment of a Poisson process, E Λ²/2 = n², so a burst is E Λ²/2 divided by
the mean n, and never less than that mean: verdicts of one moment are one burst, as those of a fleet's minute are. A
silence as long as more than ``PLAUSIBLE`` usual bursts has a chance of about e^-12. Of the hour of the last verdict
only what its mean leaves to come is awaited, because traffic may usually end within it: where more than usual had come,
a stop is noticed some minutes later.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import HOUR_NS

PLAUSIBLE: Final = 12.0
_DEVIATIONS: Final = 3.0
"""Standard deviations below the usual number that are plausible; n verdicts in bursts of b have the variance n·b."""
_WEEK: Final = 168
_WEEKS: Final = 4.0
"""Weeks after which a week counts for 1/e."""
LEARNED_NS: Final = 72 * HOUR_NS
"""Silence up to this long, such as a weekend, is learned as usual; a longer one is an outage."""
_LATEST: Final = 20
"""The number of latest moments whose pace bounds the expectation."""
_GAPS: Final = 200.0
"""Gaps after which one counts for 1/e."""
_SINGLE: Final = 20.0
"""Gaps of single verdicts that are assumed before the first gap."""
_MOVED: Final = _WEEK + 24
"""Hours after one that moved in which a silence has to be unusual an hour earlier and later too."""
_FAR: Final = 3.0
"""A count so many times its mean, or less than that part of it, is more than the difference between days."""
_LEAST_HOUR: Final = 0.25
"""Smallest known part of the first hour for it to count."""


class Arrivals:
    """The verdicts of one service under one rubric over the hours of the week."""

    __slots__ = (
        "_before", "_began_ns", "_bursts", "_count", "_gaps", "_hour", "_hours", "_latest", "_moved", "_size",
        "last_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self._hours: dict[int, tuple[float, float]] = {}
        self._hour, self._count, self._began_ns, self._moved = -1, 0.0, 0, -1
        self._gaps, self._size, self._bursts = 0.0, 1.0, 1.0
        self._latest: deque[tuple[int, int]] = deque(maxlen=_LATEST)
        self.last_ns: int | None = None
        self._before: JsonRecord | None = None  # what was known before the last leap of an hour or more

    def add(self, at_ns: int, n: int = 1) -> None:
        """Take in ``n`` verdicts at this time, in ns since the epoch; times may run back a little.

        What comes at the latest time or before it is of the same moment.
        """
        if self.last_ns is None:
            self._hour, self._began_ns = at_ns // HOUR_NS, at_ns
        elif at_ns > self.last_ns:
            if at_ns > self.last_ns + HOUR_NS:
                self._before = self.to_json()
            gap = min(self.usual(self.last_ns, at_ns), 3 * PLAUSIBLE * self._bursts)
            self._close(at_ns)
            self._learn_gap(gap)
        if self.last_ns is None or at_ns > self.last_ns:
            self._latest.append((at_ns, n))
            self._learn_size(n - 1)
            self.last_ns = at_ns
        else:
            latest_ns, before = self._latest.pop()
            self._latest.append((latest_ns, before + n))
            self._learn_size(n)
        self._count += n

    def no_later(self, now_ns: int) -> None:
        """Forget what came later by more than an hour: the clock was ahead, and was set back.

        What is known is that of before it went ahead; after a restart meanwhile it goes on from this time.
        """
        if self.last_ns is None or self.last_ns <= now_ns + HOUR_NS:
            return
        if self._before is not None and self._before["last_ns"] <= now_ns:
            self.restore(self._before)
            return
        self._hour, self._count, self._began_ns = now_ns // HOUR_NS, 0.0, now_ns
        self._moved = min(self._moved, self._hour)
        self._latest.clear()
        self._latest.append((now_ns, 1))
        self.last_ns = now_ns

    def usual(self, since_ns: int, until_ns: int, later: int = 0) -> float:
        """The usual number of verdicts between two times, at most a few days apart; or of so many hours later."""
        if self.last_ns is None or until_ns <= since_ns:
            return 0.0
        found, at_ns = 0.0, max(since_ns, until_ns - LEARNED_NS)
        while at_ns < until_ns:
            end_ns = min(until_ns, (at_ns // HOUR_NS + 1) * HOUR_NS)
            found += self._of_hour(at_ns // HOUR_NS + later) * (end_ns - at_ns) / HOUR_NS
            at_ns = end_ns
        return min(found, self._pace() * (until_ns - since_ns))

    def least(self, since_ns: int, until_ns: int) -> float:
        """The least number of verdicts that is plausible between two times: fewer come once in a thousand times."""
        usual = self.usual(since_ns, until_ns)
        return max(0.0, usual - _DEVIATIONS * math.sqrt(usual * self._bursts))

    def is_silent(self, now_ns: int, least_ns: int) -> bool:
        """Whether the silence since the last verdict is implausibly long; never before ``least_ns``."""
        if self.last_ns is None or now_ns - self.last_ns < least_ns:
            return False
        hours = (0, 1, -1) if now_ns // HOUR_NS - self._last_moved() <= _MOVED else (0,)
        end_ns = min(now_ns, (self.last_ns // HOUR_NS + 1) * HOUR_NS)
        for later in hours:
            left = max(0.0, self._of_hour(self._hour + later) - self._count)  # it may have ended within its hour
            missing = min(self.usual(self.last_ns, end_ns, later), left) + self.usual(end_ns, now_ns, later)
            if missing < PLAUSIBLE * self._bursts:
                return False
        return True

    def _pace(self) -> float:
        """Verdicts per nanosecond by the latest ones, infinite while they came at one moment."""
        span_ns = self._latest[-1][0] - self._latest[0][0]
        return sum(n for _, n in self._latest) / span_ns if span_ns > 0 else float("inf")

    def _of_hour(self, hour: int) -> float:
        known = self._hours.get(hour % _WEEK)
        if known is not None:
            return known[0]
        same = [mean for place, (mean, _) in self._hours.items() if place % 24 == hour % 24]
        if same:
            return sum(same) / len(same)
        if self._hours:
            return min(mean for mean, _ in self._hours.values())
        elapsed_ns = max((self.last_ns or 0) - self._began_ns, HOUR_NS // 60)
        return self._count * HOUR_NS / elapsed_ns

    def _close(self, at_ns: int) -> None:
        """Learn the hours that are over."""
        hour = at_ns // HOUR_NS
        if hour <= self._hour:
            return
        part = 1.0 if self._began_ns <= self._hour * HOUR_NS else 1 - (self._began_ns % HOUR_NS) / HOUR_NS
        if part >= _LEAST_HOUR:
            self._learn_hour(self._hour, self._count / part)
        if at_ns - (self.last_ns or at_ns) <= LEARNED_NS:
            for silent in range(self._hour + 1, hour):
                self._learn_hour(silent, 0.0)
        self._hour, self._count = hour, 0.0

    def _learn_hour(self, hour: int, count: float) -> None:
        mean, weeks = self._hours.get(hour % _WEEK, (0.0, 0.0))
        if weeks and self._is_moved(hour, count, mean):
            weeks, self._moved = 0.0, hour
        weeks = min(weeks + 1, _WEEKS)
        self._hours[hour % _WEEK] = round(mean + (count - mean) / weeks, 2), weeks

    def _last_moved(self) -> int:
        """The hour that moved last: a learned one, or the latest one, by verdicts that are unusual in it."""
        mean, weeks = self._hours.get(self._hour % _WEEK, (0.0, 0.0))
        moved = weeks and self._count > mean and self._is_moved(self._hour, self._count, mean)
        return self._hour if moved else self._moved

    def _is_moved(self, hour: int, count: float, mean: float) -> bool:
        """Whether a count is far from its hour's mean and near to that of the one before or behind: clocks changed.

        Days differ by more than chance, so that a count which only chance does not explain shows nothing.
        """
        least, most = sorted((count, mean))
        if most < _FAR * least or most - least <= _DEVIATIONS * math.sqrt(most * self._bursts):
            return False
        beside = (self._hours.get((hour + by) % _WEEK) for by in (1, -1))
        return any(known is not None and 2 * _apart(count, known[0]) <= _apart(count, mean) for known in beside)

    def _learn_gap(self, gap: float) -> None:
        """A gap, and after it a moment at which one verdict came."""
        self._gaps = min(self._gaps + 1, _GAPS)
        squares = self._bursts * self._size
        squares += (gap * gap / 2 - squares) / (self._gaps + _SINGLE)
        self._size += (1 - self._size) / (self._gaps + _SINGLE)
        self._bursts = max(self._size, squares / self._size)

    def _learn_size(self, more: int) -> None:
        """Further verdicts of the latest moment."""
        squares = self._bursts * self._size
        self._size += more / (self._gaps + _SINGLE)
        self._bursts = max(self._size, squares / self._size)

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "hours": [[place, mean, weeks] for place, (mean, weeks) in self._hours.items()], "hour": self._hour,
            "count": self._count, "began_ns": self._began_ns, "gaps": self._gaps, "size": self._size,
            "bursts": self._bursts, "latest": [at_ns for at_ns, _ in self._latest],
            "numbers": [n for _, n in self._latest], "last_ns": self.last_ns, "moved": self._moved,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Go on from what ``to_json`` wrote, in this version or an earlier one, for which each came alone."""
        self._hours = {int(place): (float(mean), float(weeks)) for place, mean, weeks in record["hours"]}
        self._hour, self._count, self._began_ns = int(record["hour"]), float(record["count"]), int(record["began_ns"])
        self._gaps, self._bursts = float(record["gaps"]), float(record["bursts"])
        self._size, self._moved = float(record.get("size", 1.0)), int(record.get("moved", -1))
        latest = record["latest"]
        self._latest = deque(zip(latest, record.get("numbers", [1] * len(latest)), strict=True), maxlen=_LATEST)
        self.last_ns = record["last_ns"]


def _apart(a: float, b: float) -> float:
    """How far two counts differ, on a scale on which chance is as large for any of them."""
    return abs(math.sqrt(a) - math.sqrt(b))

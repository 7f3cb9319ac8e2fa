"""Baseline: the pass ratio that a service usually has, from which a change detector measures a fall.

A detector that is designed for 0.90 alarms falsely at a constant 0.87, and is slow where 0.96 is usual. So it learns
the usual ratio, as self-starting charts do (Hawkins 1987, doi:10.2307/2348827): a fading mean of the last ``MEMORY``
verdicts that begins as ``PRIOR`` verdicts at the expected ratio. A fall within hours hardly moves it. The detector uses
one standard error below the mean, because a baseline that is too high by chance would alarm falsely.

Anchor: the pass ratio of a service over about the last week, which follows a slow decay only slowly.

``Baseline`` follows the last hundreds of verdicts, so that after a fall to a healthy ratio that ratio is soon the usual
one. A decay over days moves such a baseline too, and no detector that measures from it notices. The anchor's mean fades
with time instead: a week-old verdict counts for 1/e, however many came since. At first it leans on the expected ratio,
as ``PRIOR`` verdicts; its users take one standard error below the mean.

A mean of the latest verdicts lags behind a sliding ratio by the fall within its memory. ``present`` corrects for three
quarters of that, because the noise of the mean already makes it too low often enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from sidejudge.scoring.trace.span import JsonRecord

from .evidence import Scale, Together

MEMORY = 400.0
RECENT = 500.0
"""The memory of the ratio that is compared with the threshold itself once a change is proven (``anchor``)."""
PRIOR = 100.0
_LEAST_VARIANCE = 1e-4


class Baseline:
    """The usual pass ratio of one service under one rubric; ``expected`` is where it begins.

    ``memory`` is the number of verdicts of equal weight after which one counts for 1/e.
    """

    __slots__ = ("_expected", "_failed", "_memory", "_scale", "_squared", "_weight")

    def __init__(self, expected: float, memory: float = MEMORY) -> None:
        self._expected, self._memory, self._scale = expected, memory, Scale()
        self._weight = self._squared = PRIOR
        self._failed = PRIOR * (1 - expected)

    def add(self, *, passed: bool, weight: float, worth: float = 1.0) -> None:
        """Take in the next verdict, of weight 1/probability; ``worth`` as in ``design_effect``, a sum of several."""
        share = self._scale.share(weight)
        if share is None:
            self._begin_anew()
            share = 1.0
        counts = worth * share
        kept = max(0.0, 1 - counts / self._memory) if self._weight >= self._memory else 1.0
        self._weight = self._weight * kept + counts
        self._failed = self._failed * kept + counts * (not passed)
        self._squared = self._squared * kept * kept + counts * share

    def add_together(self, group: Sequence[Together]) -> None:
        """Take in verdicts that came together in an unknown order."""
        if not group:
            return
        weights = {each.weight for each in group}
        shares = self._scale.shares(weights)
        if shares is None:
            self._begin_anew()
            shares = {weight: weight / max(weights) for weight in weights}
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
        failed, size = self._failed / self._weight, self._weight**2 / self._squared
        return 1 - failed - math.sqrt(max(failed * (1 - failed), _LEAST_VARIANCE) / size)

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "weight": self._weight, "failed": self._failed, "squared": self._squared,
            "largest": self._scale.largest, "even": self._scale.even,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._weight, self._failed, self._squared = (float(record[name]) for name in ("weight", "failed", "squared"))
        self._scale = Scale(float(record["largest"]), even=bool(record["even"]))

    def _begin_anew(self) -> None:
        self._weight = self._squared = PRIOR
        self._failed = PRIOR * (1 - self._expected)


MEMORY_NS: Final = 7 * 24 * 3600 * 10**9
ANCHOR_PRIOR: Final = 100.0
_TAKEN_OFF: Final = 0.75
_MOST_AHEAD: Final = 0.25
"""The largest correction: with little traffic the latest verdicts and those of the week are nearly the same."""
_ANCHOR_VARIANCE: Final = 1e-4


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
        weights = {each.weight for each in group}
        shares = self._scale.shares(weights)
        if shares is None:
            self._weight = self._failed = self._squared = 0.0
            shares = {weight: weight / max(weights) for weight in weights}
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
        weight = self._weight + ANCHOR_PRIOR
        failed = (self._failed + ANCHOR_PRIOR * (1 - self._expected)) / weight
        size = weight**2 / (self._squared + ANCHOR_PRIOR)
        return 1 - failed - math.sqrt(max(failed * (1 - failed), _ANCHOR_VARIANCE) / size)

    def present(self, recent: Baseline) -> float:
        """The present pass ratio once a slide is proven, from the mean of the latest verdicts."""
        between, fell = self._weight - recent.weight, max(0.0, self.lower - recent.mean)
        ahead = min(_MOST_AHEAD, recent.weight / between) if between > 0 else _MOST_AHEAD
        return max(0.0, recent.mean - _TAKEN_OFF * ahead * fell)

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "weight": self._weight, "failed": self._failed, "squared": self._squared, "last_ns": self._last_ns,
            "largest": self._scale.largest, "even": self._scale.even,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._weight, self._failed, self._squared = (float(record[name]) for name in ("weight", "failed", "squared"))
        self._last_ns = record["last_ns"]
        self._scale = Scale(float(record["largest"]), even=bool(record["even"]))

"""Baseline: the pass ratio that a service usually has, from which a change detector measures a fall.

A detector that is designed for 0.90 alarms falsely at a constant 0.87, and is slow where 0.96 is usual. So it learns
what is usual, as self-starting charts do (Hawkins 1987, doi:10.2307/2348827): a mean of the last ``MEMORY`` verdicts,
older ones fading, that begins as ``PRIOR`` verdicts at the expected ratio. A fall within hours hardly moves it. What is
used is one standard error below the mean: a baseline that is too high by chance would alarm falsely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sidejudge.scoring.trace.span import JsonRecord

from .group import Together
from .scale import Scale

MEMORY = 400.0
RECENT = 500.0
"""The memory of the ratio that is held against the threshold itself, once a change is proven (``anchor``)."""
PRIOR = 100.0
_LEAST_VARIANCE = 1e-4


class Baseline:
    """The usual pass ratio of one service under one rubric; ``expected`` is where it begins.

    ``memory`` is after how many verdicts of equal weight one counts for 1/e.
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
        """Take in verdicts that came together, in an order that nobody knows."""
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
        """How many verdicts of the largest weight it is made of."""
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
        """What a restart needs."""
        return {
            "weight": self._weight, "failed": self._failed, "squared": self._squared,
            "largest": self._scale.largest, "even": self._scale.even,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Go on from what ``to_json`` wrote."""
        self._weight, self._failed, self._squared = (float(record[name]) for name in ("weight", "failed", "squared"))
        self._scale = Scale(float(record["largest"]), even=bool(record["even"]))

    def _begin_anew(self) -> None:
        self._weight = self._squared = PRIOR
        self._failed = PRIOR * (1 - self._expected)

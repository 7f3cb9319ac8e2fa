"""The tally of the verdicts on one model, by rubric and metric, in constant memory.

Means weigh each verdict by the inverse of the probability with which its case was drawn (Hájek); with equal
probabilities that is the plain mean. Sums are exact, so the order of the lines does not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.statistics.sums import ExactSum, FewCounts, FirstFew, OfParts
from sidejudge.scoring.verdict.verdict import State

from .verdict_line import ScoreLine, VerdictLine

_DIGITS = 12
MAX_NAMES = 20
"""Most distinct versions, judges, marks or foreign rubrics that are kept by name."""


@dataclass(slots=True)
class Mean(OfParts):
    """A weighted mean of ``n`` values."""

    n: int = 0
    _weights: ExactSum = field(default_factory=ExactSum)
    _values: ExactSum = field(default_factory=ExactSum)

    def add(self, value: float, weight: float) -> None:
        self.n += 1
        self._weights.add(weight)
        self._values.add(value * weight)

    @property
    def total(self) -> float:
        """The weighted sum of the values."""
        return self._values.value

    @property
    def unrounded(self) -> float | None:
        """The mean; None without values."""
        return self._values.value / self._weights.value if self.n else None

    @property
    def value(self) -> float | None:
        """The mean, rounded to 12 decimals as composites are; None without values."""
        mean = self.unrounded
        return None if mean is None else round(mean, _DIGITS)


class _Reasons(dict[str, str]):
    """By status one example of why there was no value: the first in alphabetical order."""

    def keep(self, status: str, reason: str) -> None:
        self[status] = min(reason, self.get(status, reason))

    def merge(self, later: _Reasons, /) -> None:
        for status, reason in later.items():
            self.keep(status, reason)


@dataclass(slots=True)
class MetricTally(OfParts):
    """One metric over the cases of a rubric. ``blocked`` counts the cases blocked by it."""

    mean: Mean = field(default_factory=Mean)
    raw: Mean = field(default_factory=Mean)
    blocked: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    reasons: _Reasons = field(default_factory=_Reasons)

    def add(self, score: ScoreLine, weight: float) -> None:
        if score.value is not None:
            self.mean.add(score.value, weight)
            if score.raw is not None:
                self.raw.add(score.raw, weight)
        elif score.status != Scored.status:
            self.missing[score.status] += 1
            self.reasons.keep(score.status, score.reason)


@dataclass(slots=True)
class RubricTally(OfParts):
    """All verdicts of one rubric: the mean composite, where an invalid case counts 0.

    An incomplete case does not count, nor one that a blocker disqualified before enough was scored for a composite;
    ``unweighed`` counts the latter.
    """

    mean: Mean = field(default_factory=Mean)
    states: Counter[State] = field(default_factory=Counter)
    metrics: dict[str, MetricTally] = field(default_factory=dict)
    versions: FirstFew[str] = field(default_factory=lambda: FirstFew(MAX_NAMES))
    pass_marks: FirstFew[float | None] = field(default_factory=lambda: FirstFew(2))
    unweighed: int = 0

    @property
    def n(self) -> int:
        """The number of verdicts with any result."""
        return self.states.total()

    def add(self, line: VerdictLine, wanted: frozenset[str]) -> None:
        """Count one verdict and its wanted metrics."""
        self.states[line.state] += 1
        self.versions.keep(line.rubric_version)
        self.pass_marks.keep(line.pass_mark)
        if line.composite is not None or line.state is State.INVALID:
            self.mean.add(line.composite or 0.0, line.weight)
        self.unweighed += line.composite is None and line.state is State.DISQUALIFIED
        for name, score in line.scores.items():
            if name in wanted:
                self.metrics.setdefault(name, MetricTally()).add(score, line.weight)
        for name in line.blockers & wanted:
            self.metrics.setdefault(name, MetricTally()).blocked += 1


@dataclass(slots=True, kw_only=True)
class ModelTally(OfParts):
    """All figures of the verdicts on one model. ``shown`` names the metrics that matter, by rubric.

    ``cost`` is the mean cost of the calls in US dollars over verdicts with a known cost, ``costless`` counts the
    others. ``others`` counts the verdicts of rubrics that are not shown, by name for the first of them.
    ``weights`` holds the first two distinct weights.
    """

    shown: dict[str, frozenset[str]]
    charged: frozenset[str]
    rubrics: dict[str, RubricTally] = field(default_factory=dict)
    cost: Mean = field(default_factory=Mean)
    costless: int = 0
    others: FewCounts[str] = field(default_factory=lambda: FewCounts(MAX_NAMES, rest="…"))
    weights: FirstFew[float] = field(default_factory=lambda: FirstFew(2))

    def add(self, line: VerdictLine) -> None:
        """Count one verdict."""
        if line.rubric not in self.shown:
            self.others.count(line.rubric)
            return
        self.weights.keep(line.weight)
        self.rubrics.setdefault(line.rubric, RubricTally()).add(line, self.shown[line.rubric])
        if line.rubric not in self.charged:
            return
        if line.cost_usd is None:
            self.costless += 1
        else:
            self.cost.add(line.cost_usd, line.weight)

    def part(self) -> ModelTally:
        """An empty tally, for a part of the lines."""
        return ModelTally(shown=self.shown, charged=self.charged, others=FewCounts(math.inf))

    @property
    def sums(self) -> ModelTally:
        """The sums of this part."""
        return self

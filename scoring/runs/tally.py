"""The tally of the verdicts on one model, by rubric and metric, in constant memory.

Means weigh each verdict by the inverse of the probability with which its case was drawn (Hájek); with equal
probabilities that is the plain mean. Sums are exact, so the order of the lines does not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.statistics.exact_sums import ExactSum
from sidejudge.scoring.verdict.verdict import State

from .verdict_line import ScoreLine, VerdictLine

K = TypeVar("K")

_DIGITS = 12
MAX_NAMES = 20
"""Most distinct versions, judges, marks or foreign rubrics that are kept by name."""


@dataclass(slots=True)
class Mean:
    """A weighted mean of ``n`` values."""

    n: int = 0
    _weights: ExactSum = field(default_factory=ExactSum)
    _values: ExactSum = field(default_factory=ExactSum)

    def add(self, value: float, weight: float) -> None:
        self.n += 1
        self._weights.add(weight)
        self._values.add(value * weight)

    def merge(self, other: Mean) -> None:
        """Add the sums of another."""
        self.n += other.n
        self._weights.merge(other._weights)
        self._values.merge(other._values)

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


@dataclass(slots=True)
class MetricTally:
    """One metric over the cases of a rubric. ``blocked`` counts the cases blocked by it.

    ``reasons`` holds by status one example of why there was no value: the first in alphabetical order.
    """

    mean: Mean = field(default_factory=Mean)
    raw: Mean = field(default_factory=Mean)
    blocked: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, score: ScoreLine, weight: float) -> None:
        if score.value is not None:
            self.mean.add(score.value, weight)
            if score.raw is not None:
                self.raw.add(score.raw, weight)
        elif score.status != Scored.status:
            self.missing[score.status] += 1
            self._keep(score.status, score.reason)

    def merge(self, other: MetricTally) -> None:
        """Add the counts of another."""
        self.mean.merge(other.mean)
        self.raw.merge(other.raw)
        self.blocked += other.blocked
        self.missing.update(other.missing)
        for status, reason in other.reasons.items():
            self._keep(status, reason)

    def _keep(self, status: str, reason: str) -> None:
        self.reasons[status] = min(reason, self.reasons.get(status, reason))


@dataclass(slots=True)
class RubricTally:
    """All verdicts of one rubric: the mean composite, where an invalid case counts 0.

    An incomplete case does not count, nor one that a blocker disqualified before enough was scored for a composite;
    ``unweighed`` counts the latter.
    """

    mean: Mean = field(default_factory=Mean)
    states: Counter[State] = field(default_factory=Counter)
    metrics: dict[str, MetricTally] = field(default_factory=dict)
    versions: dict[str, None] = field(default_factory=dict)
    pass_marks: dict[float | None, None] = field(default_factory=dict)
    unweighed: int = 0

    @property
    def n(self) -> int:
        """The number of verdicts with any result."""
        return self.states.total()

    def add(self, line: VerdictLine, wanted: frozenset[str]) -> None:
        """Count one verdict and its wanted metrics."""
        self.states[line.state] += 1
        keep_first(self.versions, (line.rubric_version,), MAX_NAMES)
        keep_first(self.pass_marks, (line.pass_mark,), 2)
        if line.composite is not None or line.state is State.INVALID:
            self.mean.add(line.composite or 0.0, line.weight)
        self.unweighed += line.composite is None and line.state is State.DISQUALIFIED
        for name, score in line.scores.items():
            if name in wanted:
                self.metrics.setdefault(name, MetricTally()).add(score, line.weight)
        for name in line.blockers & wanted:
            self.metrics.setdefault(name, MetricTally()).blocked += 1

    def merge(self, later: RubricTally) -> None:
        """Add the counts that another has made of the lines that follow."""
        self.mean.merge(later.mean)
        self.states.update(later.states)
        self.unweighed += later.unweighed
        for name, metric in later.metrics.items():
            self.metrics.setdefault(name, MetricTally()).merge(metric)
        keep_first(self.versions, later.versions, MAX_NAMES)
        keep_first(self.pass_marks, later.pass_marks, 2)


@dataclass(slots=True, kw_only=True)
class ModelTally:
    """All figures of the verdicts on one model. ``shown`` names the metrics that matter, by rubric.

    ``cost`` is the mean cost of the calls in US dollars over verdicts with a known cost, ``costless`` counts the
    others. ``others`` counts the verdicts of rubrics that are not shown, by name for at most ``most_others``.
    ``weights`` holds the first two distinct weights.
    """

    shown: dict[str, frozenset[str]]
    charged: frozenset[str]
    rubrics: dict[str, RubricTally] = field(default_factory=dict)
    cost: Mean = field(default_factory=Mean)
    costless: int = 0
    others: Counter[str] = field(default_factory=Counter)
    most_others: float = MAX_NAMES
    weights: dict[float, None] = field(default_factory=dict)

    def add(self, line: VerdictLine) -> None:
        """Count one verdict."""
        if line.rubric not in self.shown:
            self._count_other(line.rubric, 1)
            return
        keep_first(self.weights, (line.weight,), 2)
        self.rubrics.setdefault(line.rubric, RubricTally()).add(line, self.shown[line.rubric])
        if line.rubric not in self.charged:
            return
        if line.cost_usd is None:
            self.costless += 1
        else:
            self.cost.add(line.cost_usd, line.weight)

    def part(self) -> ModelTally:
        """An empty tally, for a part of the lines."""
        return ModelTally(shown=self.shown, charged=self.charged, most_others=math.inf)

    @property
    def sums(self) -> ModelTally:
        """The sums of this part."""
        return self

    def merge(self, later: ModelTally, /) -> None:
        """Add the counts that a part has made of the lines that follow."""
        for name, rubric in later.rubrics.items():
            self.rubrics.setdefault(name, RubricTally()).merge(rubric)
        self.cost.merge(later.cost)
        self.costless += later.costless
        for name, count in later.others.items():
            self._count_other(name, count)
        keep_first(self.weights, later.weights, 2)

    def _count_other(self, name: str, count: int) -> None:
        self.others[name if len(self.others) < self.most_others or name in self.others else "…"] += count


def keep_first(found: dict[K, None], more: Iterable[K], most: int) -> None:
    """Add what is not yet in ``found``, in order, while that holds fewer than ``most``."""
    for each in more:
        if len(found) < most:
            found[each] = None

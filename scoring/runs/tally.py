"""What the verdicts on one model come to, rubric by rubric and metric by metric, in constant memory.

Means weigh each verdict by the inverse of the probability with which its case was drawn (Hájek); where all were drawn
alike that is the plain mean. Sums are exact, so the order of the lines does not matter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from scoring.result.result import Scored
from scoring.statistics.exact_sum import ExactSum
from scoring.verdict.verdict import State

from .verdict_line import ScoreLine, VerdictLine

_DIGITS = 12
_MAX_NAMES = 20
"""Different versions, marks or foreign rubrics that are remembered by name."""


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

    @property
    def value(self) -> float | None:
        """The mean, rounded to 12 decimals as composites are; None without values."""
        return round(self._values.value / self._weights.value, _DIGITS) if self.n else None


@dataclass(slots=True)
class MetricTally:
    """One metric over the cases of a rubric. ``blocked`` counts the cases that it blocked.

    ``reasons`` holds one example a status of why there was no value: the first in alphabetical order.
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
            self.reasons[score.status] = min(score.reason, self.reasons.get(score.status, score.reason))


@dataclass(slots=True)
class RubricTally:
    """All verdicts of one rubric: the mean composite, where an invalid case counts 0 and an incomplete one not."""

    mean: Mean = field(default_factory=Mean)
    states: Counter[State] = field(default_factory=Counter)
    metrics: dict[str, MetricTally] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    pass_marks: set[float | None] = field(default_factory=set)

    @property
    def n(self) -> int:
        """Verdicts of any result."""
        return self.states.total()

    def add(self, line: VerdictLine, wanted: frozenset[str]) -> None:
        """Count one verdict, and of its metrics those that are wanted."""
        self.states[line.state] += 1
        if len(self.versions) < _MAX_NAMES:
            self.versions.add(line.rubric_version)
        if len(self.pass_marks) < 2:
            self.pass_marks.add(line.pass_mark)
        if line.state is not State.INCOMPLETE:
            self.mean.add(0.0 if line.composite is None else line.composite, line.weight)
        for name, score in line.scores.items():
            if name in wanted:
                self.metrics.setdefault(name, MetricTally()).add(score, line.weight)
        for name in line.blockers & wanted:
            self.metrics.setdefault(name, MetricTally()).blocked += 1


@dataclass(slots=True, kw_only=True)
class ModelTally:
    """All figures of the verdicts on one model. ``shown`` names the metrics that matter, by rubric.

    ``cost`` is the mean of the calls' cost in US dollars over the verdicts that know it, ``costless`` counts the
    others. ``others`` counts the verdicts of rubrics that are not shown. ``weights`` holds two different ones at most.
    """

    shown: dict[str, frozenset[str]]
    charged: frozenset[str]
    rubrics: dict[str, RubricTally] = field(default_factory=dict)
    cost: Mean = field(default_factory=Mean)
    costless: int = 0
    others: Counter[str] = field(default_factory=Counter)
    weights: set[float] = field(default_factory=set)

    def add(self, line: VerdictLine) -> None:
        """Count one verdict."""
        if line.rubric not in self.shown:
            self.others[line.rubric if len(self.others) < _MAX_NAMES or line.rubric in self.others else "…"] += 1
            return
        if len(self.weights) < 2:
            self.weights.add(line.weight)
        self.rubrics.setdefault(line.rubric, RubricTally()).add(line, self.shown[line.rubric])
        if line.rubric not in self.charged:
            return
        if line.cost_usd is None:
            self.costless += 1
        else:
            self.cost.add(line.cost_usd, line.weight)

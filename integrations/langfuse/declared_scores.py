"""Declared scores: which scores the verdicts of a rubric may have, what each is, and which of them are written.

A verdict has more scores than a person wants to see on a trace, so a setting selects them (``ScoreSelection``) by their
names, independent of the verdict: a score that only failures have would give averages over failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria
from sidejudge.scoring.verdict.score import composite_name, pass_name, score_name, state_name

DataType: TypeAlias = Literal["NUMERIC", "BOOLEAN", "CATEGORICAL"]
ScoreSelection: TypeAlias = Literal["summary", "failing", "all"]
"""Which scores of a verdict are written (``names_of``). ``failing`` is an earlier name of ``all``."""
MOST_IN_SUMMARY: Final = 4
"""Scores of a verdict that ``summary`` writes at most."""
COUNTED: Final = "counted"
NOT_COUNTED: Final = "not counted"
STEP: Final = "_step"
"""The end of the name of a score on an observation: under the metric's own it would go into averages over traces."""
_YES_OR_NO: Final = "pass or fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The definition of a score by its name: its type, its range or its categories, and what it means."""

    name: str
    data_type: DataType
    description: str
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()

    def allows(self, value: float | str) -> bool:
        """Whether a value lies within what is declared; Langfuse drops others without a word."""
        if isinstance(value, str):
            return value in self.categories
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def declared(rubric: Rubric) -> Iterator[Declared]:
    """Every score that a verdict of a rubric may have, whatever is selected."""
    mark = "" if rubric.pass_mark is None else f", it passes from {rubric.pass_mark:g}"
    yield Declared(
        name=composite_name(rubric.id), data_type="NUMERIC",
        description=f"{rubric.title}: {rubric.formula}. Higher is better{mark}.", low=0.0, high=rubric.scale,
    )  # fmt: skip
    yield Declared(
        name=pass_name(rubric.id), data_type="BOOLEAN", description=f"{rubric.title}: whether it passes. True is good."
    )
    yield Declared(
        name=state_name(rubric.id), data_type="CATEGORICAL",
        description=f"{rubric.title}: whether the verdict counts in pass rates. Without this score it does.",
        categories=(COUNTED, NOT_COUNTED),
    )  # fmt: skip
    for criterion in all_criteria(rubric):
        metric = criterion.metric
        yield Declared(
            name=score_name(rubric.id, metric),
            data_type=type_of(metric),
            description=f"{metric.title}: {metric.meaning} {_direction(metric)}",
            low=metric.bounds[0] if type_of(metric) == "NUMERIC" else None,
            high=metric.bounds[1] if type_of(metric) == "NUMERIC" else None,
        )


def names_of(rubric: Rubric, which: ScoreSelection) -> frozenset[str]:
    """The names of the scores that are written of a rubric's verdicts, of each as far as it has a value.

    ``all``: every one, and those of single steps. ``summary``: the pass and the composite, and the metrics that the
    composite is made of, where that makes four at most. Where it is the plain mean of three, they stand in its place.
    """
    every = frozenset(each.name for each in declared(rubric))
    if which != "summary":
        return every | {f"{score_name(rubric.id, c.metric)}{STEP}" for c in all_criteria(rubric)}
    short = {pass_name(rubric.id), composite_name(rubric.id)}
    metrics = {score_name(rubric.id, criterion.metric) for criterion in rubric.weighed}
    if len(short | metrics) <= MOST_IN_SUMMARY:
        return frozenset(short | metrics)
    if len(metrics) < MOST_IN_SUMMARY and len({round(c.weight, 9) for c in rubric.weighed}) == 1:
        return frozenset({pass_name(rubric.id)} | metrics)
    return frozenset(short)


def _direction(metric: Metric) -> str:
    """Which way is good."""
    if metric.bands is None:
        return "It is reported and not rated."
    if type_of(metric) == "BOOLEAN":
        return "True is good." if metric.bands.higher_is_better else "False is good."
    return f"{'Higher' if metric.bands.higher_is_better else 'Lower'} is better: {metric.bands.describe()}."


def type_of(metric: Metric) -> DataType:
    """A truth value where a metric is passed or failed, else a number."""
    return "BOOLEAN" if metric.unit == _YES_OR_NO else "NUMERIC"

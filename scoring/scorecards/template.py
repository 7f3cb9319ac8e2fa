"""The scorecard's rows from ``template.csv``, in the order and words of seed 000's Scorecard Template."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

from sidejudge.scoring.verdict.rubric import Criterion, Rubric

LEGEND = "`[!]` = Blocker — breach disqualifies the model for that task."


class RowKind(StrEnum):
    """The kind of a row."""

    HEADING = "heading"
    METRIC = "metric"
    BENCHMARK = "benchmark"
    """A binary; its raw value stands beside it."""
    SCORE = "score"
    """The composite of a rubric."""
    FINAL = "final"


class Unit(StrEnum):
    """The unit in which people read a row's number."""

    RATIO = "ratio"
    PERCENT = "percent"
    COUNT = "count"
    DOLLARS = "dollars"
    RANK = "rank"
    YES_NO = "yes_no"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardRow:
    """A row of the template. ``metric`` is the id of the metric, or of a value that the last section computes.

    ``blocker`` is the template's ``[!]``. ``unit`` is the unit of the value, for a benchmark of its raw value. ``own``
    is the rubric where it is a custom one.
    """

    title: str
    threshold: str
    kind: RowKind
    rubric: str | None = None
    metric: str | None = None
    blocker: bool = False
    unit: Unit = Unit.RATIO
    own: Rubric | None = None


def _rows() -> Iterator[ScorecardRow]:
    text = files("sidejudge.scoring").joinpath("scorecards", "template.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        yield ScorecardRow(
            title=row["title"], threshold=row["threshold"], kind=RowKind(row["kind"]), rubric=row["rubric"] or None,
            metric=row["metric"] or None, blocker=bool(row["blocker"]), unit=Unit(row["unit"]),
        )  # fmt: skip


ROWS = tuple(_rows())
"""Every row, headings included."""

SHOWN: dict[str, frozenset[str]] = {
    rubric: frozenset(row.metric for row in ROWS if row.rubric == rubric and row.metric is not None)
    for rubric in dict.fromkeys(row.rubric for row in ROWS if row.rubric is not None)
}
"""The metrics that the scorecard shows, by rubric, in the order of its sections."""


def rows_of(rubric: Rubric) -> tuple[ScorecardRow, ...]:
    """The rows of a custom rubric: its metrics, and its score."""
    mark = "" if rubric.pass_mark is None else f">= {rubric.pass_mark / rubric.scale:g}"
    return (
        ScorecardRow(title=rubric.title.upper(), threshold="", kind=RowKind.HEADING, rubric=rubric.id, own=rubric),
        *(_own_metric(rubric, criterion) for criterion in rubric.criteria),
        ScorecardRow(title=f"{rubric.title} score", threshold=mark, kind=RowKind.SCORE, rubric=rubric.id, own=rubric),
    )


def _own_metric(rubric: Rubric, criterion: Criterion) -> ScorecardRow:
    metric, blocker = criterion.metric, criterion.blocker
    limits = [each.describe() for each in (metric.bands, blocker) if each is not None]
    return ScorecardRow(
        title=metric.title, threshold="must = 1" if criterion.prerequisite else " | ".join(limits),
        kind=RowKind.METRIC, rubric=rubric.id, metric=metric.id, blocker=blocker is not None or criterion.prerequisite,
        unit=Unit.RATIO if metric.bounds == (0.0, 1.0) else Unit.COUNT, own=rubric,
    )  # fmt: skip

"""Cells: one row of the scorecard for one model, and why a value is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.result.result import Failed, NotApplicable, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from sidejudge.scoring.verdict.verdict import State

from .cost import Ranked
from .final import MIN_COVERAGE, Final
from .tally import MetricTally, ModelTally, RubricTally
from .template import ROWS, RowKind, ScorecardRow

BLOCKER = "blocker"
"""The rating of a cell whose blocker was reached."""
_STATUSES = (
    (NotApplicable.status, "not applicable"), (Unavailable.status, "unavailable"), (Failed.status, "failed"),
)  # fmt: skip
_CALLS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One row of one model: a value, or None with the reason in ``notes``; a value's notes name what it leaves out.

    ``rating`` is that of the metric's bands; ``blocker`` where the mean, or any case, reached the blocker. ``n`` counts
    the cases behind the value, ``blocked`` those that the metric (of a score: any metric) blocked. ``raw`` is the mean
    of a benchmark's values before they were made binary.
    """

    value: float | bool | None = None
    rating: str | None = None
    n: int = 0
    blocked: int = 0
    raw: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "value": self.value, "rating": self.rating, "n": self.n, "blocked": self.blocked, "raw": self.raw,
            "notes": list(self.notes),
        }  # fmt: skip


def judged_cell(row: ScorecardRow, tally: RubricTally | None) -> Cell:
    """The cell of a metric, a benchmark or a rubric's score."""
    if tally is None:
        return Cell(notes=(f"no verdict of rubric {row.rubric}",))
    if row.metric is None:
        return _score(_rubric_of(row), tally)
    metric = tally.metrics.get(row.metric)
    if metric is None:
        return Cell(notes=(f"no verdict names the metric {row.metric}",))
    value, n, notes = metric.mean.value, metric.mean.n, tuple(_gaps(metric))
    if value is not None and n < tally.n:
        notes = (f"{n} of {_cases(tally.n)} scored", *notes)
    return Cell(
        value=value,
        rating=_metric_rating(criterion_of(row), metric),
        n=n,
        blocked=metric.blocked,
        raw=metric.raw.value if row.kind is RowKind.BENCHMARK else None,
        notes=(*_blocked(metric.blocked, n), *notes),
    )


def criterion_of(row: ScorecardRow) -> Criterion | None:
    """The metric's part in its rubric; None for a row that shows no metric."""
    rubric = _rubric_of(row)
    return next((c for c in rubric.criteria if c.metric.id == row.metric), None) if rubric else None


def _rubric_of(row: ScorecardRow) -> Rubric | None:
    return row.own or RUBRICS.get(str(row.rubric))


def _metric_rating(criterion: Criterion | None, metric: MetricTally) -> str | None:
    value = metric.mean.value
    if metric.blocked:
        return BLOCKER
    if value is None or criterion is None:
        return None
    if criterion.blocker is not None and criterion.blocker.blocks(value):
        return BLOCKER
    if criterion.prerequisite and value < 1:
        return BLOCKER
    return criterion.metric.bands.rating(value) if criterion.metric.bands else None


def _gaps(metric: MetricTally) -> list[str]:
    """Why cases have no value: how many, and one reason of them."""
    return [
        f"{words} in {_cases(metric.missing[status])}"
        + (f" ({metric.reasons[status]})" if metric.reasons[status] else "")
        for status, words in _STATUSES
        if metric.missing[status]
    ]


def _blocked(blocked: int, n: int) -> list[str]:
    return [f"blocks {blocked} of {_cases(n)}"] if blocked and n else []


def _score(rubric: Rubric | None, tally: RubricTally) -> Cell:
    """A task's score: the mean over its cases, the invalid at 0, the incomplete left out (rubrics §7)."""
    invalid, disqualified = tally.states[State.INVALID], tally.states[State.DISQUALIFIED]
    value, of = tally.mean.value, _cases(tally.n)
    notes = [
        text
        for count, text in (
            (invalid, f"{invalid} of {of} invalid, counted as 0"),
            (disqualified, f"{disqualified} of {of} disqualified by a blocker"),
            (tally.unweighed, f"{tally.unweighed} of them without a score, left out of the mean"),
            (tally.states[State.INCOMPLETE], f"{tally.states[State.INCOMPLETE]} of {of} incomplete, left out"),
            (tally.states[State.PARTIAL], f"{tally.states[State.PARTIAL]} of {of} scored in part"),
        )
        if count
    ]  # fmt: skip
    rating = None
    if invalid or disqualified:
        rating = BLOCKER
    elif value is not None and rubric is not None and len(tally.pass_marks) == 1:
        # Rated by the mark that these verdicts were held to, which a configuration may have set.
        bands = rubric.with_overrides(pass_mark=next(iter(tally.pass_marks))).bands
        rating = bands.rating(value) if bands else None
    return Cell(value=value, rating=rating, n=tally.mean.n, blocked=invalid + disqualified, notes=tuple(notes))


def final_cell(final: Final) -> Cell:
    """A final score under one option."""
    return Cell(value=final.value, notes=(final.reason,) if final.reason else ())


def cost_cell(tally: ModelTally, reported: float | None) -> Cell:
    """US dollars per 1000 calls: as reported, else 1000 times the mean cost of a call by the verdicts."""
    if reported is not None:
        return Cell(value=reported)
    known = tally.cost.n
    total = known + tally.costless
    if not known:
        what = "no verdict carries cost_usd" if total else "no verdict of a call task"
        return Cell(notes=(f"{what}; name the cost with --cost",))
    if known / total < MIN_COVERAGE:
        return Cell(notes=(f"only {known} of {total} verdicts carry cost_usd; name the cost with --cost",))
    value = round((tally.cost.value or 0.0) * _CALLS, 9)
    return Cell(value=value, n=known, notes=(f"from cost_usd of {known} of {total} verdicts",))


def rank_cell(place: Ranked, used: Final) -> Cell:
    """The place by cost efficiency."""
    if place.rank is None or place.efficiency is None:
        return Cell(notes=(place.reason,))
    return Cell(value=float(place.rank), notes=(f"cost efficiency {place.efficiency:.4g} by Option {used.option.id}",))


def blocker_cell(tally: ModelTally, rows: Sequence[ScorecardRow] = ROWS) -> Cell:
    """Whether any case was blocked, and by what; of a No, which blockers were not checked in every case."""
    judged = {name: tally.rubrics[name] for name in tally.shown if name in tally.rubrics}
    if not judged:
        return Cell(notes=("no verdict of any task",))
    blocked = sum(found.states[State.INVALID] + found.states[State.DISQUALIFIED] for found in judged.values())
    n = sum(found.n for found in judged.values())
    reached = [
        f"{row.rubric}.{row.metric}"
        for row in rows
        if row.blocker and judged_cell(row, tally.rubrics.get(str(row.rubric))).rating == BLOCKER
    ]
    if blocked or reached:
        named = ", ".join(reached) or "a blocker that is not shown"
        return Cell(value=True, rating=BLOCKER, n=n, blocked=blocked, notes=(f"{named}; {blocked} of {n} verdicts",))
    unchecked = [
        f"{row.rubric}.{row.metric}"
        for row in rows
        if row.blocker and (row.rubric not in judged or _unchecked(judged[row.rubric], str(row.metric)))
    ]
    return Cell(value=False, n=n, notes=(f"not checked in every case: {', '.join(unchecked)}",) if unchecked else ())


def _unchecked(tally: RubricTally, metric: str) -> bool:
    found = tally.metrics.get(metric)
    return found is None or bool(found.missing[Unavailable.status] or found.missing[Failed.status])


def _cases(number: int) -> str:
    return amount(number, "case")

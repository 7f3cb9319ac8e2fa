"""Scorecard: each row of the template for each model, with the number of verdicts and the reason for a missing value.

A cell is one row of the scorecard for one model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.result.result import Failed, NotApplicable, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.final import (
    BENCHMARKS,
    MIN_COVERAGE,
    OPTION_A,
    OPTION_B,
    TASKS,
    Final,
    Option,
    Ranked,
    final_score,
    rank_by_cost,
)
from sidejudge.scoring.runs.tally import MetricTally, ModelTally, RubricTally
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from sidejudge.scoring.verdict.verdict import State

from .template import ROWS, SHOWN, RowKind, ScorecardRow, rows_of

BLOCKER = "blocker"
"""The rating of a cell whose blocker was reached."""
_STATUSES = (
    (NotApplicable.status, "not applicable"), (Unavailable.status, "unavailable"), (Failed.status, "failed"),
)  # fmt: skip
_CALLS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One row of one model: a value, or None with the reason in ``notes``; a value's notes name what it leaves out.

    ``rating`` comes from the metric's bands; it is ``blocker`` where the mean, or any case, reached the blocker. ``n``
    counts the cases behind the value, ``blocked`` those that the metric (for a score, any metric) blocked. ``raw`` is
    the mean of a benchmark's values before they became binary.
    """

    value: float | bool | None = None
    rating: str | None = None
    n: int = 0
    blocked: int = 0
    raw: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "notes": list(self.notes)}


def judged_cell(row: ScorecardRow, tally: RubricTally | None) -> Cell:
    """The cell of a metric, a benchmark or a rubric's score."""
    if tally is None:
        return Cell(notes=(f"no verdict of rubric {row.rubric}",))
    if row.metric is None:
        return _score(rubric_of(row), tally)
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
        notes=(*([f"blocks {metric.blocked} of {_cases(n)}"] if metric.blocked and n else []), *notes),
    )


def criterion_of(row: ScorecardRow) -> Criterion | None:
    """The criterion of the metric in its rubric; None for a row that shows no metric."""
    rubric = rubric_of(row)
    return next((c for c in rubric.criteria if c.metric.id == row.metric), None) if rubric else None


def rubric_of(row: ScorecardRow) -> Rubric | None:
    """The rubric that a row belongs to; None for a row that belongs to none."""
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
    """Why cases have no value: their number, and one of the reasons."""
    return [
        f"{words} in {_cases(metric.missing[status])}"
        + (f" ({metric.reasons[status]})" if metric.reasons[status] else "")
        for status, words in _STATUSES
        if metric.missing[status]
    ]


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
    ]
    rating = None
    if invalid or disqualified:
        rating = BLOCKER
    elif value is not None and rubric is not None and len(tally.pass_marks) == 1:
        # Rated by the mark that these verdicts were held to, which a configuration may have set.
        bands = rubric.with_overrides(pass_mark=next(iter(tally.pass_marks))).bands
        rating = bands.rating(value * rubric.scale) if bands else None
    return Cell(value=value, rating=rating, n=tally.mean.n, blocked=invalid + disqualified, notes=tuple(notes))


def final_cell(final: Final) -> Cell:
    """A final score under one option."""
    return Cell(value=final.value, notes=(final.reason,) if final.reason else ())


def cost_cell(tally: ModelTally, reported: float | None) -> Cell:
    """US dollars per 1000 calls: as reported, else 1000 times the verdicts' mean cost of a call."""
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
    """Whether any case was blocked, and by what; for a No, the blockers that were not checked in every case."""
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


_OF_ANY = ("cost_per_1000_calls", "any_blocker_triggered")
"""Rows that are computed for verdicts of any rubric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """The filled template: each row has one cell for each model, in the order of ``models``. Headings have no cells.

    ``options`` are the formulas in force, ``places`` the models' cost efficiencies and ranks. ``cases`` counts the
    verdicts of each model by rubric and state, ``rubrics`` are the shown ones; ``notes`` hold for the whole page.
    """

    models: tuple[str, ...]
    rows: tuple[tuple[ScorecardRow, tuple[Cell, ...]], ...]
    options: tuple[Option, ...]
    places: Mapping[str, Ranked]
    cases: Mapping[str, Mapping[str, Mapping[State, int]]]
    rubrics: tuple[str, ...] = tuple(SHOWN)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Every value unrounded, with its counts and reasons, ready for JSON."""
        return {
            "models": list(self.models),
            "options": {option.id: {"title": option.title, "weights": dict(option.weights)} for option in self.options},
            "rows": [
                {
                    "title": row.title, "kind": row.kind.value, "rubric": row.rubric, "metric": row.metric,
                    "blocker": row.blocker, "threshold": row.threshold, "unit": row.unit.value,
                    "cells": {model: cell.to_json() for model, cell in zip(self.models, cells, strict=False)},
                }
                for row, cells in self.rows
            ],
            "cost_efficiency": {model: self.places[model].efficiency for model in self.models},
            "cases": {
                model: {rubric: dict(states) for rubric, states in of_model.items()}
                for model, of_model in self.cases.items()
            },
            "notes": list(self.notes),
        }  # fmt: skip


def empty_tally(own: Mapping[str, Rubric] | None = None) -> ModelTally:
    """An empty tally of the shown rubrics: the template's, and ``own`` ones by name.

    A call costs once: verdicts of the call tasks carry its cost, and those of own rubrics.
    """
    more = {name: frozenset(rubric.metric_ids) for name, rubric in (own or {}).items()}
    return ModelTally(shown=SHOWN | more, charged=frozenset((*TASKS, *more)))


def scorecard(
    tallies: Mapping[str, ModelTally],
    *,
    costs: Mapping[str, float] | None = None,
    options: tuple[Option, Option] = (OPTION_A, OPTION_B),
    own: Mapping[str, Rubric] | None = None,
) -> Scorecard:
    """The scorecard of models by name.

    Args:
        tallies: The tally of the verdicts on each model.
        costs: US dollars per 1000 calls; they override the verdicts' costs.
        options: The formulas of the final scores.
        own: Rubrics outside the template. Those with verdicts have their own rows; where no rubric of the template has
            verdicts, its rows and the final scores are left out.
    """
    named = {name for tally in tallies.values() for name in tally.rubrics}
    of_template = bool(named & SHOWN.keys()) or not named
    shown = [rubric for name, rubric in (own or {}).items() if name in named]
    rows = (
        *(row for row in ROWS if of_template and row.kind is not RowKind.FINAL and row.rubric is not None),
        *(row for rubric in shown for row in rows_of(rubric)),
        *(row for row in ROWS if row.rubric is None and (of_template or row.metric in _OF_ANY)),
    )
    finals = {model: tuple(_final(option, tally) for option in options) for model, tally in tallies.items()}
    used = {model: _used(tally, finals[model]) for model, tally in tallies.items()}
    money = {model: cost_cell(tally, (costs or {}).get(model)) for model, tally in tallies.items()}
    places = rank_by_cost(
        {model: final.value for model, final in used.items()},
        {model: None if cell.value is None else float(cell.value) for model, cell in money.items()},
    )
    of_model: dict[str, Callable[[str], Cell]] = {
        "final_with_benchmarks": lambda model: final_cell(finals[model][0]),
        "final_without_benchmarks": lambda model: final_cell(finals[model][1]),
        "cost_per_1000_calls": lambda model: money[model],
        "cost_adjusted_rank": lambda model: rank_cell(places[model], used[model]),
        "any_blocker_triggered": lambda model: blocker_cell(tallies[model], rows),
    }

    def cells(row: ScorecardRow) -> tuple[Cell, ...]:
        if row.kind is RowKind.HEADING:
            return ()
        if row.kind is RowKind.FINAL:
            return tuple(of_model[str(row.metric)](model) for model in tallies)
        return tuple(judged_cell(row, tally.rubrics.get(str(row.rubric))) for tally in tallies.values())

    return Scorecard(
        models=tuple(tallies),
        rows=tuple((row, cells(row)) for row in rows),
        options=options if of_template else (),
        places=places,
        cases={
            model: {
                rubric: {state: tally.rubrics[rubric].states[state] for state in State}
                for rubric in tally.shown
                if rubric in tally.rubrics
            }
            for model, tally in tallies.items()
        },
        rubrics=(*(SHOWN if of_template else ()), *(rubric.id for rubric in shown)),
        notes=tuple(_notes(tallies, used)),
    )


def _final(option: Option, tally: ModelTally) -> Final:
    return final_score(option, {part: found.mean.value for part, found in tally.rubrics.items()})


def _used(tally: ModelTally, finals: tuple[Final, ...]) -> Final:
    """Option A when there is a benchmark score, else B (rubrics §7)."""
    benchmarks = tally.rubrics.get(BENCHMARKS)
    return finals[0] if benchmarks is not None and benchmarks.mean.value is not None else finals[1]


def _notes(tallies: Mapping[str, ModelTally], used: Mapping[str, Final]) -> list[str]:
    notes = []
    ranked = {final.option.id for final in used.values() if final.value is not None}
    if len(ranked) > 1:
        notes.append("some models have a benchmark score and some have none: their final scores are different formulas")
    for rubric in dict.fromkeys(name for tally in tallies.values() for name in tally.shown):
        versions = {
            version
            for tally in tallies.values()
            if rubric in tally.rubrics
            for version in tally.rubrics[rubric].versions
        }
        if len(versions) > 1:
            notes.append(f"verdicts of several versions of {rubric} are put together: {', '.join(sorted(versions))}")
    if any(len(tally.weights) > 1 for tally in tallies.values()):
        notes.append("cases were drawn with different probabilities: each counts with the inverse of its own")
    return notes

"""Scorecard: each row of the template for each model, with the number of verdicts and why a value is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import State

from .cells import Cell, blocker_cell, cost_cell, final_cell, judged_cell, rank_cell
from .cost import Ranked, rank_by_cost
from .final import BENCHMARKS, OPTION_A, OPTION_B, TASKS, Final, Option, final_score
from .tally import ModelTally
from .template import ROWS, SHOWN, RowKind, ScorecardRow, rows_of

_OF_ANY = ("cost_per_1000_calls", "any_blocker_triggered")
"""What is computed of verdicts of any rubric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """The filled template: for each row one cell a model, in the order of ``models``. Headings have no cells.

    ``options`` are the formulas in force, ``places`` the models' cost efficiencies and ranks. ``cases`` counts the
    verdicts of each model by rubric and state, ``rubrics`` are those that are shown; ``notes`` hold for the whole page.
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
    """A tally of what the scorecard shows: the template's rubrics, and ``own`` ones by name.

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
        tallies: What the verdicts on each model come to.
        costs: US dollars per 1000 calls; they win over the verdicts' own.
        options: The formulas of the final scores.
        own: Rubrics that are no part of the template. Those with verdicts have rows of their own; where no rubric of
            the template has any, its rows and the final scores are left out.
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

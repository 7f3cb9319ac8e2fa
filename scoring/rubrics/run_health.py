"""run_health: what can be measured on any run without a reference, a judge or a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.run_contract import calls_valid, tools_tried
from sidejudge.scoring.metrics.run_effort import within_budget, within_usual
from sidejudge.scoring.metrics.run_ending import SOURCE, answer_intact, answered, completed, not_refused
from sidejudge.scoring.metrics.run_repetition import LEAST, no_repetition
from sidejudge.scoring.metrics.run_results import results_used
from sidejudge.scoring.metrics.run_telemetry import telemetry
from sidejudge.scoring.metrics.run_tools import error_variety, step_success, tool_success
from sidejudge.scoring.metrics.run_words import no_stated_trouble
from sidejudge.scoring.result.bands import Blocker, Effect
from sidejudge.scoring.result.result import Result, Scored
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

_MOST = 50
_FAILS = Blocker(effect=Effect.DISQUALIFIED, below=1.0)
_LOOPS = Blocker(effect=Effect.DISQUALIFIED, below=LEAST)


_APART = frozenset({telemetry.id, results_used.id})
"""Metrics whose signs stand with them alone: one is about the instrumentation; the other names a fifth of the steps of
runs without any fault (docs/explanation/run-health.md), more than may be called trouble."""


def _detail(_case: Case, _composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """``signs``: the signs of trouble, each with its span and its metric, in the order of the metrics."""
    found = list(_signs(results))
    return {"signs": found[:_MOST]} if found else {}


def _signs(results: Mapping[str, Result]) -> Iterator[dict[str, object]]:
    for metric, result in results.items():
        held = result.details.get("signs") if isinstance(result, Scored) else None
        if metric not in _APART and isinstance(held, list):
            yield from ({"metric": metric, **sign} for sign in held)


RUBRIC = Rubric(
    id="run_health",
    title="Run Health",
    source=SOURCE,
    formula="0.10 × completed + 0.10 × answered + 0.05 × answer_intact + 0.30 × tool_success + 0.10 × step_success "
    "+ 0.10 × error_variety + 0.10 × no_repetition + 0.075 × calls_valid + 0.075 × tools_tried",
    criteria=(
        Criterion(metric=completed, weight=0.10, blocker=_FAILS),
        Criterion(metric=answered, weight=0.10, blocker=_FAILS),
        Criterion(metric=answer_intact, weight=0.05, blocker=_FAILS),
        Criterion(metric=tool_success, weight=0.30),
        Criterion(metric=step_success, weight=0.10),
        Criterion(metric=error_variety, weight=0.10),
        Criterion(metric=no_repetition, weight=0.10, blocker=_LOOPS),
        Criterion(metric=calls_valid, weight=0.075),
        Criterion(metric=tools_tried, weight=0.075),
        Criterion(metric=results_used),
        Criterion(metric=not_refused),
        Criterion(metric=no_stated_trouble),
        Criterion(metric=within_usual),
        Criterion(metric=within_budget, blocker=_FAILS),
        Criterion(metric=telemetry),
    ),
    pass_mark=0.85,
    min_coverage=0.6,
    detail=_detail,
)

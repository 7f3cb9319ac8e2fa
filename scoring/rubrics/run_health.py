"""run_health: everything that can be measured on any run without a reference, a judge or a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.result_use import results_used
from sidejudge.scoring.metrics.run_agents import not_exhausted, outputs_vary, sub_agents_answered
from sidejudge.scoring.metrics.run_claims import results_upheld
from sidejudge.scoring.metrics.run_effort import within_budget, within_usual
from sidejudge.scoring.metrics.run_ending import SOURCE, answer_intact, answered, completed, not_refused
from sidejudge.scoring.metrics.run_offered_tools import calls_valid, tools_tried
from sidejudge.scoring.metrics.run_repetition import LEAST, no_repetition
from sidejudge.scoring.metrics.run_telemetry import telemetry
from sidejudge.scoring.metrics.run_tools import error_variety, step_success, tool_success
from sidejudge.scoring.metrics.run_values import values_founded
from sidejudge.scoring.metrics.run_words import no_stated_trouble, not_stuck
from sidejudge.scoring.result.result import Blocker, Effect, Failed, Result, Scored, Unavailable
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, weights_in_words

_MOST = 50
_FAILS = Blocker(effect=Effect.DISQUALIFIED, below=1.0)
_LOOPS = Blocker(effect=Effect.DISQUALIFIED, below=LEAST)


_APART = frozenset({telemetry.id, results_used.id})
"""Metrics whose signs appear only in their own details: one is about the instrumentation; the other flags a fifth of
the steps of faultless runs (docs/explanation/run-health.md), too many to call trouble.
"""


def _detail(_case: Case, _composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """``signs``: the signs of trouble, each with its span and its metric, in the order of the metrics."""
    found = list(_signs(results))
    return {"signs": found[:_MOST]} if found else {}


_OF_FAILURE: Final = frozenset({
    completed.id, answered.id, answer_intact.id, tool_success.id, step_success.id, error_variety.id, calls_valid.id,
    sub_agents_answered.id, not_exhausted.id,
})  # fmt: skip
"""Metrics that may flag the same failed step for the same reason; the first of them flags it."""


def _signs(results: Mapping[str, Result]) -> Iterator[dict[str, object]]:
    failed = set[object]()
    for metric, result in results.items():
        held = result.details.get("signs") if isinstance(result, Scored) else None
        if metric in _APART or not isinstance(held, list):
            continue
        for sign in held:
            if metric not in _OF_FAILURE or sign["span_id"] not in failed:
                yield {"metric": metric, **sign}
        if metric in _OF_FAILURE:
            failed |= {sign["span_id"] for sign in held}


def _passes(_composite: float, results: Mapping[str, Result]) -> bool | None:
    """A run whose end is unknown, for example because its top span never came, does not pass."""
    return None if isinstance(results[completed.id], Unavailable | Failed) else True


_CRITERIA = (
    Criterion(metric=completed, weight=0.08, blocker=_FAILS),
    Criterion(metric=answered, weight=0.08, blocker=_FAILS),
    Criterion(metric=answer_intact, weight=0.04, blocker=_FAILS),
    Criterion(metric=tool_success, weight=0.24),
    Criterion(metric=step_success, weight=0.08),
    Criterion(metric=error_variety, weight=0.08),
    Criterion(metric=no_repetition, weight=0.08, blocker=_LOOPS),
    Criterion(metric=calls_valid, weight=0.06),
    Criterion(metric=tools_tried, weight=0.06),
    Criterion(metric=results_used),
    Criterion(metric=not_refused),
    Criterion(metric=no_stated_trouble, weight=0.05),
    Criterion(metric=not_stuck, weight=0.05),
    Criterion(metric=outputs_vary, weight=0.05),
    Criterion(metric=sub_agents_answered),
    Criterion(metric=not_exhausted),
    Criterion(metric=values_founded),
    Criterion(metric=results_upheld, weight=0.05),
    Criterion(metric=within_usual),
    Criterion(metric=within_budget, blocker=_FAILS),
    Criterion(metric=telemetry),
)

RUBRIC = Rubric(
    id="run_health",
    title="Run Health",
    source=SOURCE,
    formula=f"{weights_in_words(_CRITERIA)}; incomplete where it is unknown how the run ended",
    criteria=_CRITERIA,
    pass_mark=0.85,
    min_coverage=0.6,
    passes=_passes,
    detail=_detail,
)

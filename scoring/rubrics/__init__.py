"""The rubrics, as an explicit list: metrics come in, their weights, bands and blockers go out."""

from __future__ import annotations

from collections.abc import Mapping

from sidejudge.scoring.rubrics import (
    agent,
    benchmarks,
    dimensions,
    entity,
    qa,
    quality,
    run_health,
    trajectory,
    translation,
    workflow,
)
from sidejudge.scoring.rubrics import answer as answer_rubric
from sidejudge.scoring.rubrics import text as text_rubric
from sidejudge.scoring.verdict.rubric import Rubric

RUBRICS: Mapping[str, Rubric] = {
    rubric.id: rubric
    for rubric in (
        qa.RUBRIC, entity.RUBRIC, text_rubric.RUBRIC, translation.RUBRIC, workflow.RUBRIC, answer_rubric.RUBRIC,
        agent.RUBRIC, quality.RUBRIC, dimensions.RUBRIC, benchmarks.RUBRIC, run_health.RUBRIC,
        trajectory.RUBRIC,
    )
}  # fmt: skip
"""Every rubric by its id."""

SCENARIO_RUBRICS: tuple[str, ...] = tuple(rubric.id for rubric in RUBRICS.values() if rubric.checks_scenario)
"""Rubrics that compare a case with a scenario."""

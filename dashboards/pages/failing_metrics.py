"""Failing metrics: why a verdict failed, or is not whole, metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.verdict.documents import FAILING

from .workflow_diff import WorkflowDiff, workflow_diff

_MISSING = {"unavailable": "not available", "error": "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingMetrics:
    """The scores that fail, block or have no value; ``listed`` are those that ``differences`` do not show already."""

    failing: Sequence[Mapping[str, object]]
    listed: Sequence[Mapping[str, object]]
    differences: WorkflowDiff


def scores_of(verdict: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    """The scores of a verdict in its JSON form."""
    scores = verdict.get("scores")
    return [each for each in scores if isinstance(each, Mapping)] if isinstance(scores, list | tuple) else []


def value_of(score: Mapping[str, object]) -> str:
    """The value of a score in at most four digits, or why there is none, in a word."""
    value = score.get("value")
    if isinstance(value, int | float):
        return f"{value:.4g}"
    status = str(score.get("status") or "unknown")
    return _MISSING.get(status, status.replace("_", " "))


def failing_metrics(verdict: Mapping[str, object]) -> FailingMetrics:
    """One verdict in its JSON form as a table row."""
    scores = scores_of(verdict)
    failing = [score for score in scores if fails(score)]
    differences = workflow_diff(verdict.get("rubric"), scores)
    listed = [each for each in failing if not (differences and each.get("metric") in ("agents", "tools", "order"))]
    return FailingMetrics(failing=failing, listed=listed, differences=differences)


def fails(score: Mapping[str, object]) -> bool:
    """Whether a score fails or blocks, or is missing though it counts."""
    if score.get("rating") in FAILING:
        return True
    return bool(score.get("weight")) and score.get("status") in _MISSING

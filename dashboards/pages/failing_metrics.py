"""Failing metrics: why a verdict failed or is incomplete; for a scenario, the expected and the actual calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.rubrics import SCENARIO_RUBRICS
from sidejudge.scoring.trace.jsontext import objects
from sidejudge.scoring.verdict.documents import FAILING

_MOST_SHOWN = 30
_SIDES = ("agents", "tools")
_KINDS = (("included", "had", "✓", "as expected"), ("missing", "missing", "−", "expected, not called"),
          ("unexpected", "extra", "+", "called, not expected"))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDiff:
    """``sides`` are (agents or tools, calls), a call is (style, sign, meaning, name); ``orders`` are (title, names)."""

    sides: Sequence[tuple[str, Sequence[tuple[str, str, str, object]]]]
    orders: Sequence[tuple[str, Sequence[object]]]

    def __bool__(self) -> bool:
        return bool(self.sides or self.orders)


def workflow_diff(rubric: object, scores: Iterable[Mapping[str, object]]) -> WorkflowDiff:
    """The agents and tools in the scores of a rubric that checks a scenario, including the passing ones.

    Where an order was expected and broken, both orders are shown. Empty for any other rubric.
    """
    sides, orders = [], []
    for score in scores if rubric in SCENARIO_RUBRICS else ():
        details = score.get("details")
        if not isinstance(details, Mapping):
            continue
        if score.get("metric") in _SIDES:
            calls = [
                (style, sign, meaning, name)
                for kind, style, sign, meaning in _KINDS
                for name in _names(details.get(kind))
            ]
            sides += [(str(score["metric"]), calls)] if calls else []
        elif score.get("metric") == "order" and score.get("value") == 0:
            shown = (("expected order", _names(details.get("expected"))), ("called in", _names(details.get("called"))))
            orders += [(title, names) for title, names in shown if names]  # relations alone expect no whole order
    return WorkflowDiff(sides=sides, orders=orders)


def _names(value: object) -> Sequence[object]:
    return value[:_MOST_SHOWN] if isinstance(value, list | tuple) else ()


_MISSING = {"unavailable": "not available", "error": "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingMetrics:
    """The scores that fail, block or have no value; ``listed`` leaves out the scores that ``differences`` shows."""

    failing: Sequence[Mapping[str, object]]
    listed: Sequence[Mapping[str, object]]
    differences: WorkflowDiff


def scores_of(verdict: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    """The scores of a verdict in its JSON form."""
    return objects(verdict.get("scores"))


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

"""Failing metrics: why a verdict failed, or is not whole, metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .html import escape
from .workflow_diff import workflow_diff

_SHOWN = 6
_UNTOLD = {"unavailable": "not available", "error": "failed"}


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
    return _UNTOLD.get(status, status.replace("_", " "))


def failing_metrics(verdict: Mapping[str, object]) -> str:
    """The metrics that fail, block or could not be told, each with its reason; the verdict's own where none does.

    A workflow verdict shows what was expected beside what was seen. All texts are escaped.
    """
    scores = scores_of(verdict)
    failing = [score for score in scores if _fails(score)]
    if not failing:
        return escape(verdict.get("reason") or "")
    diff = workflow_diff(scores) if verdict.get("rubric") == "workflow" else ""
    told = [score for score in failing if not (diff and score.get("metric") in ("agents", "tools", "order"))]
    items = "".join(_item(score) for score in told[:_SHOWN])
    more = f'<li class="soft">and {len(told) - _SHOWN} more</li>' if len(told) > _SHOWN else ""
    return diff + (f'<ul class="metrics">{items}{more}</ul>' if items else "")


def _fails(score: Mapping[str, object]) -> bool:
    if score.get("rating") in ("fail", "blocker"):
        return True
    return bool(score.get("weight")) and score.get("status") in _UNTOLD


def _item(score: Mapping[str, object]) -> str:
    reason = escape(score.get("reason") or "")
    return (
        f'<li><span class="metric">{escape(score.get("metric") or "", limit=60)}</span> '
        f"<b>{escape(value_of(score))}</b>{': ' if reason else ''}{reason}</li>"
    )

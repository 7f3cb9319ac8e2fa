"""Workflow diff: what a scenario expected of agents and tools beside what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.rubrics import SCENARIO_RUBRICS

_MOST = 30
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
    """The agents and tools in the scores of a rubric that checks a scenario, those that went well included.

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
    return value[:_MOST] if isinstance(value, list | tuple) else ()

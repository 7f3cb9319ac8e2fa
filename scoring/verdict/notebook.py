"""Notebook: a verdict as a notebook shows it. Every text of a case is escaped: it is untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import cast

from sidejudge.scoring.trace.notebook import table_html

_WORDS = {True: "passed", False: "failed", None: "incomplete"}


def verdict_html(verdict: Mapping[str, object]) -> str:
    """A heading and a table with a row for each metric.

    Args:
        verdict: A verdict in the documented format.
    """
    word = _WORDS[cast("bool | None", verdict["passed"])]
    why = f": {_text(verdict['reason'])}" if verdict["reason"] else ""
    title = f"{_text(verdict['rubric'])} of {_text(verdict['case_id'])}: <b>{word}</b>{why}"
    rows = map(_cells, cast("list[Mapping[str, object]]", verdict["scores"]))
    return table_html(title, ("metric", "value", "weight", "rating", "reason"), rows)


def _cells(score: Mapping[str, object]) -> tuple[object, ...]:
    value = score["value"]
    shown = f"{value:.3g}" if isinstance(value, int | float) else str(score["status"]).replace("_", " ")
    return score["metric"], shown, f"{score['weight']:g}", score["rating"] or "", score["reason"]


def _text(value: object) -> str:
    return escape(str(value))

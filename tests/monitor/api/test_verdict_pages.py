"""Pages of verdicts: what may be chosen, what it finds, and the file."""

from __future__ import annotations

import csv

import pytest

from sidejudge.monitor.api.verdict_pages import csv_of
from sidejudge.monitor.api.view import Position


def test_a_file_has_a_head_and_no_formulas() -> None:
    rows = list(csv.DictReader(csv_of([
        {"trace_id": "a" * 32, "name": "=HYPERLINK(1)", "passed": False, "reason": "two\nlines, and a comma",
         "closed_ns": 1_767_225_600 * 10**9, "cost_usd": None, "composite_norm": 0.25},
    ]).splitlines()))  # fmt: skip
    (row,) = rows
    assert row["name"] == "'=HYPERLINK(1)"
    assert (row["passed"], row["cost_usd"], row["composite_norm"]) == ("false", "", "0.25")
    assert row["reason"] == "two lines, and a comma"
    assert row["closed_at"].startswith("2026-01-01T00:00:00")


@pytest.mark.parametrize("rubric", ["qa", "own-rubric", "Own_1"])
def test_a_page_may_end_at_a_verdict_by_any_rubric(rubric: str) -> None:
    position = Position(closed_ns=5, trace_id="a" * 32, rubric=rubric)
    assert Position.parse(str(position)) == position

"""The scorecard's rows are the seed's, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.scorecards.template import LEGEND, ROWS, RowKind, ScorecardRow, Unit

CARRIED = Path(__file__).with_name("scorecard_template.md")


def seed_template(shared: Path) -> tuple[str, list[str]]:
    text = next((shared / "seeds").glob("000_*")).read_text(encoding="utf-8").partition("# Scorecard Template")[2]
    lines = text.split("\n# ")[0].strip().splitlines()
    return lines[0], [line for line in lines if line.startswith("|")]


def template_line(row: ScorecardRow) -> str:
    """The row as the template has it, for three models, with nothing filled in."""
    title = f"**{row.title}**" if row.kind in (RowKind.HEADING, RowKind.SCORE) else row.title
    cells = (f"[!] {title}" if row.blocker else title, "", "", "", row.threshold.replace("|", r"\|"))
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def test_every_row_is_the_templates_in_its_order_and_its_words() -> None:
    lines = CARRIED.read_text(encoding="utf-8").splitlines()
    assert [template_line(row) for row in ROWS] == lines[2:]


def test_the_carried_template_and_the_legend_are_the_seeds(shared: Path) -> None:
    legend, lines = seed_template(shared)
    assert lines == CARRIED.read_text(encoding="utf-8").splitlines()
    assert legend == LEGEND


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.kind is RowKind.METRIC], ids=lambda row: f"{row.rubric}-{row.metric}"
)
def test_each_metric_of_a_row_is_one_of_its_rubric_and_blocks_where_the_row_says_so(row) -> None:
    found = {criterion.metric.id: criterion for criterion in RUBRICS[row.rubric].criteria}[row.metric]
    assert (found.blocker is not None or found.prerequisite) == row.blocker
    assert (found.metric.bounds[1] is None) == (row.unit is Unit.COUNT)


def test_a_benchmark_rubric_has_all_eleven_rows_that_the_template_names() -> None:
    rows = [row.metric for row in ROWS if row.kind is RowKind.BENCHMARK]
    assert len(rows) == 11
    if "benchmarks" in RUBRICS:
        assert rows == [criterion.metric.id for criterion in RUBRICS["benchmarks"].criteria]

"""The glossary holds what the closed lists of the code hold, and explains each of its terms once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.alerts.lifecycle import Stage
from sidejudge.scoring.status.snapshots import AnomalyKind
from sidejudge.scoring.status.status import Status

PAGE = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text()
ROWS = [row.strip("| ").split(" | ") for row in PAGE.splitlines() if row.startswith("| ")]


@pytest.mark.parametrize("value", [*EndReason, *Status, *Stage, *AnomalyKind])
def test_every_value_of_a_closed_list_is_explained(value: str) -> None:
    assert f"`{value}`" in PAGE


def test_terms_are_in_order_and_stand_once() -> None:
    terms = [row[0].strip("`").lower() for row in ROWS if len(row) == 3][1:]
    assert terms == sorted(set(terms))


def test_every_term_has_one_line_that_says_what_it_means() -> None:
    assert all(len(row) in (2, 3) and all(cell.strip() for cell in row) for row in ROWS)


def test_words_that_were_replaced_are_not_terms() -> None:
    old = r"\b(docket|hearing|trial|belated|courier|books|ledger|standing|witness|rhythm)\b"
    assert not re.search(old, PAGE, re.IGNORECASE)

"""The page of verdicts: what its file holds."""

from __future__ import annotations

import pytest

from sidejudge.dashboards.pages.plain_pages import VerdictsPage, verdicts_page


@pytest.mark.parametrize(("failed", "stated"), [(0, ">as CSV<"), (1, ">as CSV, the latest 10,000<")])
def test_a_file_that_does_not_hold_all_that_match_is_named_so(failed, stated):
    counts = {"passed": {"true": 10_000, "false": failed}}
    assert stated in verdicts_page(VerdictsPage(verdicts=(), rubrics=(), now_ns=0, counts=counts))

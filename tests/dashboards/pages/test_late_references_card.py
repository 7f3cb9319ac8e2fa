"""The card of references that came late."""

from __future__ import annotations

from sidejudge.scoring.status.snapshots import LateReferenceSnapshot
from tests.dashboards.pages.rendered import card

HOSTILE = "<script>alert(1)</script>"
NOW = 1_790_000_000 * 10**9


def test_where_none_came_late_there_is_no_card():
    assert card("late_references", late=None) == ""
    assert card("late_references", late=LateReferenceSnapshot(state="off", reason="no Langfuse")) == ""


def test_it_says_what_became_of_them_and_why_the_others_wait():
    standing = LateReferenceSnapshot(
        state="retrying", reason=HOSTILE, waiting=1234, oldest_s=NOW / 1e9 - 60, given_up=5, revised=67, unchanged=8,
        failures=(("incomplete", 9), ("gone", 0)),
    )  # fmt: skip
    shown = card("late_references", late=standing, now_ns=NOW)
    for stated in ('class="pill warning">retrying', "1,234", "67", "1 min ago", "in vain, incomplete"):
        assert stated in shown, stated
    assert "in vain, gone" not in shown
    assert "<script" not in shown

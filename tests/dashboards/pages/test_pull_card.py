"""The card of what is read out of Langfuse."""

from __future__ import annotations

from sidejudge.scoring.status.snapshots import PullSnapshot
from tests.dashboards.pages.rendered import card

HOSTILE = "<script>alert(1)</script>"
NOW = 1_790_000_000 * 10**9


def test_where_nothing_is_read_there_is_no_card():
    assert card("pull", pull=None) == ""


def test_the_pull_says_how_far_it_has_come_and_why_it_rests():
    pull = PullSnapshot(
        state="stopped", reason=HOSTILE, server="Langfuse 3", project="P", reads="legacy", pending=4, lag_s=90.0,
        read_s=NOW / 1e9 - 60, rows=1234, taken=56, errors=(("timeout", 2), ("refused", 0)),
    )  # fmt: skip
    shown = card("pull", pull=pull, now_ns=NOW)
    for stated in ('class="pill critical">stopped', "1,234", "56", "1 min 30 s", "1 min ago", "ended early, timeout"):
        assert stated in shown, stated
    assert "refused" not in shown
    assert "<script" not in shown

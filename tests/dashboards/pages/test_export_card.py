"""The card of scores that are written back."""

from __future__ import annotations

from sidejudge.scoring.status.snapshots import ExportSnapshot
from tests.dashboards.pages.rendered import card


def test_there_is_no_card_without_a_destination():
    assert card("exports", exports=[]) == ""


def test_it_shows_what_waits_and_why_and_escapes_what_servers_say():
    export = ExportSnapshot(
        destination="langfuse", state="stopped", reason="<script>401</script>", server="Langfuse <b>4</b>", project="P",
        waiting=1234, oldest_s=0.0, unseen=5, dead=6, last_success_s=None,
    )  # fmt: skip
    shown = card("exports", exports=[export], now_ns=90 * 10**9)
    assert "<script>" not in shown
    assert "<b>4" not in shown
    assert "1,234" in shown
    assert "1 min 30 s ago" in shown
    assert 'class="pill critical">stopped' in shown

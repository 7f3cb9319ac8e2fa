"""Judge card: states, reasons and money, with everything from outside escaped."""

from __future__ import annotations

from dataclasses import replace

from sidejudge.scoring.status.snapshots import JudgeModelSnapshot, JudgeSnapshot, Spending
from tests.dashboards.pages.rendered import card

HEALTHY = JudgeSnapshot(
    name="openai/m", models=(JudgeModelSnapshot(model="openai/m", circuit="closed"),), outage=None,
    spending=(
        Spending(period="hour", spent_usd=1.234, limit_usd=2.0), Spending(period="day", spent_usd=9, limit_usd=None),
    ),
    shares={"high": 1.0, "normal": 0.25, "low": 0.0}, under_way=3, waiting=1200,
)  # fmt: skip


def test_without_a_judge_there_is_no_section():
    assert card("judge", judge=None) == ""


def test_a_judge_that_answers_shows_what_it_cost_and_what_waits():
    shown = card("judge", judge=HEALTHY)
    assert '<span class="pill healthy">answers</span>' in shown
    for text in ("$1.23 of $2.00", "$9.00<", "<dd>1,200</dd>", "judged, normal", "<dd>25%</dd>"):
        assert text in shown
    assert "judged, high" not in shown, "what is judged in full needs no line"


def test_why_a_judge_is_out_of_reach_is_told_and_cannot_be_markup():
    down = JudgeModelSnapshot(
        model="openai/m", circuit="open", reason="authentication failed: <script>alert(1)</script>"
    )
    shown = card("judge", judge=replace(HEALTHY, models=(down, replace(down, circuit="half_open"))))
    assert '<span class="pill critical">out of reach</span>' in shown
    assert '<span class="pill warning">being tried</span>' in shown
    assert "authentication failed: &lt;script&gt;" in shown
    assert "<script" not in shown

"""Wording: each message as people read it. The expected texts lie in tests/golden/notices, one a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import Example
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import AgreedOn, DailyReportText, Notice, NoticeKind, ServiceDay, WeakMetric
from sidejudge.scoring.notices.text import Wording, lasting, plain
from sidejudge.scoring.notices.wording import headline, measured, report
from sidejudge.scoring.status.status import Status
from tests.alert_events import MINUTE_NS, SINCE_NS, event

GOLDEN = Path(__file__).parents[2] / "golden" / "notices"
LINKED = Wording(trace_url="https://langfuse.example/traces/{trace_id}", runbooks="https://docs.example/runbooks/")
QUIET = Wording(reasons=False)
OVER = {"transition": AlertTransition.RESOLVED, "number": 2, "at_ns": SINCE_NS + 95 * MINUTE_NS,
        "value": 0.93, "lower": 0.89, "upper": 0.96, "n": 131, "examples": (),
        "measured_ns": SINCE_NS + 35 * MINUTE_NS,
        "stated": "upper bound 0.96 of the pass ratio 0.93 is not below the warning threshold 0.85"}  # fmt: skip
BUDGET = event(
    condition="judge_budget", severity=Severity.WARNING, title="The judge's budget is nearly spent",
    runbook="judge-budget", labels=(("period", "hour"),), stated="$1.84 of $2.00 spent this hour",
    meaning="fewer cases are judged until the period is over; estimates stay unbiased, with wider bounds",
    value=0.92, lower=None, upper=None, n=None, limit=0.9, changed_ns=None, measured_ns=None, examples=(), failure=None,
    explained=None,
    at_ns=SINCE_NS,
)  # fmt: skip
DAY = DailyReportText(
    begin_ns=SINCE_NS - 24 * 60 * MINUTE_NS, end_ns=SINCE_NS,
    courses=(
        ServiceDay(service="checkout", environment="production", rubric="qa", status=Status.CRITICAL, passed=1_401,
               failed=612, incomplete=3, pass_ratio=0.696, lower=0.679, upper=0.713),
        ServiceDay(service="search", environment="production", rubric="answer", status=Status.INSUFFICIENT_DATA,
        passed=0,
               failed=0, incomplete=8, pass_ratio=None, lower=None, upper=None),
    ),
    more=2,
    weakest=(
        WeakMetric(service="checkout", environment="production", rubric="qa", metric="question_score_accuracy",
                   mean=0.71, n=2_013, acceptable=0.9, higher_is_better=True),
        WeakMetric(service="checkout", environment="production", rubric="qa", metric="score_gap_accuracy", mean=0.2,
                   n=2_013, acceptable=0.1, higher_is_better=False),
    ),
    agreements=(AgreedOn(rubric="answer", kappa=0.71, n=140),), cost_usd=12.5,
    firing=("Too few traces pass (checkout, production, qa)",),
)  # fmt: skip


def notice(kind=NoticeKind.ALERT, **reported):
    return Notice(id="n-1", kind=kind, at_ns=SINCE_NS, **reported)


MESSAGES = {
    "critical": (notice(events=(event(),)), LINKED),
    "critical-without-links-and-reasons": (notice(events=(event(),)), QUIET),
    "still-critical": (notice(NoticeKind.REMINDER, events=(event(at_ns=SINCE_NS + 300 * MINUTE_NS),)), LINKED),
    "held": (
        notice(
            NoticeKind.REMINDER,
            events=(
                event(
                    at_ns=SINCE_NS + 300 * MINUTE_NS,
                    held=True,
                    value=0.9,
                    lower=0.88,
                    upper=0.92,
                    n=900,
                    examples=(),
                    measured_ns=SINCE_NS + 240 * MINUTE_NS,
                    failure=None,
                    explained=None,
                    stated="pass ratio 0.900, between 0.88 and 0.92: undecided; what came before shows one below the "
                    "warning threshold 0.85",
                ),
            ),
        ),
        LINKED,
    ),
    "critical-of-a-fleet": (notice(events=(event(shared=True),)), LINKED),
    "resolved": (notice(events=(event(**OVER),)), LINKED),
    "not-known": (notice(events=(event(transition=AlertTransition.UNKNOWN, number=2, examples=()),)), LINKED),
    "given-up": (notice(events=(event(transition=AlertTransition.EXPIRED, number=3, examples=()),)), LINKED),
    "budget": (notice(events=(BUDGET,)), LINKED),
    "digest": (notice(NoticeKind.DIGEST, events=(BUDGET, event(**OVER))), LINKED),
    "group": (notice(NoticeKind.GROUP, events=(event(**OVER), BUDGET, event())), LINKED),
    "report": (notice(NoticeKind.REPORT, report=DAY), LINKED),
    "report-of-nothing": (
        notice(NoticeKind.REPORT, report=DailyReportText(begin_ns=DAY.begin_ns, end_ns=DAY.end_ns)),
        LINKED,
    ),
    "report-of-a-share": (
        notice(NoticeKind.REPORT, report=replace(DAY, share_of="m1", weakest=(), agreements=(), cost_usd=None)),
        LINKED,
    ),
    "test": (notice(NoticeKind.TEST), LINKED),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_reads_as_it_should(name):
    reported, wording = MESSAGES[name]
    assert report(reported, wording).text == (GOLDEN / f"{name}.txt").read_text("utf-8")


def test_there_is_no_golden_text_without_its_message():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(MESSAGES)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_notice_survives_the_store(name):
    reported, _ = MESSAGES[name]
    assert Notice.of_json(json.loads(json.dumps(reported.to_json()))) == reported


def test_a_digest_of_many_alerts_shows_some_and_counts_the_rest():
    text = report(notice(NoticeKind.DIGEST, events=(BUDGET,) * 33), LINKED).text
    assert text.count("budget is nearly spent") == 20
    assert "… and 13 more." in text


@given(st.text(max_size=5_000), st.text(max_size=5_000))
def test_whatever_names_and_reasons_hold_a_message_is_short_and_each_stays_on_its_line(name, reason):
    bad = event(labels=(("service", name), ("rubric", "qa")), examples=(
        Example(trace_id=name, reason=reason, composite=0.1, closed_ns=1),) * 3)  # fmt: skip
    plainly = report(notice(events=(event(labels=(("service", "x"), ("rubric", "qa"))),)), LINKED).text
    text = report(notice(events=(bad,)), LINKED).text
    text.encode()
    assert text.count("\n") == plainly.count("\n")
    # Of a link each character of an id may become twelve; the id itself is bounded by whoever made the example.
    assert len(report(notice(events=(replace(bad, examples=()),)), LINKED).text) < 1_200
    assert all(char.isprintable() or char == "\n" for char in text)


def test_marks_that_turn_the_reading_order_are_taken_out():
    assert plain("good\u202edoog\x1b[31m\r\nnext") == "good doog [31m next"


@pytest.mark.parametrize(
    ("seconds", "stated"),
    [
        (-5, "less than a minute"), (59, "less than a minute"), (60, "1 minute"), (3_600, "1 hour"),
        (11_130, "3 hours 5 minutes"), (86_400 * 2 + 60, "2 days 1 minute"), (86_400 + 3_660, "1 day 1 hour"),
    ],
)  # fmt: skip
def test_a_length_of_time_is_said_as_people_say_it(seconds, stated):
    assert lasting(seconds * 10**9) == stated


def test_a_trace_id_that_is_no_id_cannot_leave_its_place_in_the_link():
    assert LINKED.trace("../x?y=<z>|é") == "https://langfuse.example/traces/..%2Fx%3Fy%3D%3Cz%3E%7C%C3%A9"


@pytest.mark.parametrize(
    ("changes", "stated"),
    [
        ({}, "73 of 100 fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before)"),
        ({"failures": 73}, "73 of 100 fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before)"),
        (  # 0.73 · 100 is a whole number by chance: weights of 1 and 2
            {"failures": 80},
            "73.0% (n = 100) fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before)",
        ),
        ({"value": 0.2712}, "72.9% (n = 100) fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before)"),
        (  # it is long ago: of the window
            {"measured_ns": SINCE_NS - 48 * MINUTE_NS},
            "73 of 100 fail qa within 1 hour; it began about 2026-11-21 09:58 UTC (4 of 100 in the day before)",
        ),
        (  # nothing shows when it fell
            {"measured_ns": SINCE_NS - 48 * MINUTE_NS, "changed_ns": None},
            "73 of 100 fail qa within 1 hour; alert since 2026-11-21 10:03 UTC",
        ),
        ({"measured_ns": None, "explained": None}, "73 of 100 fail qa; it began about 2026-11-21 09:58 UTC"),
        ({"shared": True}, "73 of 100 fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before, on one monitor)"),
    ],
)
def test_a_title_has_the_figure_of_the_alert_and_of_what_time_it_is(changes, stated):
    assert headline(event(**changes)) == f"Critical: checkout, production: {stated}"


def test_an_early_warning_says_that_it_is_one():
    early = event(
        condition="pass_rate_change", severity=Severity.INFO, value=0.9, measured_ns=SINCE_NS - 48 * MINUTE_NS
    )
    assert headline(early).startswith(
        "Info: checkout, production: 10 of 100 fail qa within 1 hour; the pass rate seems to be falling since 2026-11"
    )


@pytest.mark.parametrize(
    ("condition", "stated"),
    [
        ("metric_warning", "between 4 and 6 with 95 % confidence"),
        ("metric_critical", "between 4 and 6 with 95 % confidence"),
        ("metric_mean_low", "at least 4, at most 6, each with 95 % confidence"),
    ],
)
def test_bounds_are_those_of_one_interval_where_they_are_and_else_each_of_its_own(condition, stated):
    about = event(condition=condition, unit="metric", value=5.0, lower=4.0, upper=6.0, n=40, limit=4.5)
    assert stated in measured(about)

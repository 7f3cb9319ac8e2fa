"""Timetable: once a day, whatever restarts and clock changes do."""

from __future__ import annotations

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.alerting.notify.daily_report import Daily

BERLIN = ZoneInfo("Europe/Berlin")


def ns(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("last", "now", "due"),
    [
        ("2026-11-20 08:00", "2026-11-21 07:59", False),
        ("2026-11-20 08:00", "2026-11-21 08:00", True),
        ("2026-11-20 08:00", "2026-11-21 23:00", True),  # late after a stop
        ("2026-11-21 08:00", "2026-11-21 08:00", False),  # at once again after a kill
        ("2026-11-21 08:01", "2026-11-22 07:59", False),
        ("2026-11-21 11:00", "2026-11-22 08:00", True),  # one that was late does not move the next
        ("2026-11-01 08:00", "2026-11-21 09:00", True),
    ],
)
def test_a_report_is_due_when_its_time_has_come_since_the_last(last, now, due):
    found = Daily(time(8), UTC).due_s(ns(last), ns(now))
    assert found == (ns(f"{now[:10]} 08:00") // 10**9 if due else None)


def test_the_time_is_that_of_the_zone_also_when_clocks_change():
    daily = Daily(time(8), BERLIN)
    assert daily.due_s(ns("2026-10-24 06:00"), ns("2026-10-25 06:59")) is None
    assert daily.due_s(ns("2026-10-24 06:00"), ns("2026-10-25 07:00")) == ns("2026-10-25 07:00") // 10**9


@pytest.mark.parametrize(
    ("zone", "at", "first", "days_h"),
    [
        ("Europe/Berlin", time(0), "2026-03-27 23:00", [24, 23, 24]),  # the day after the change was left out
        ("Europe/Berlin", time(2, 30), "2026-03-28 01:30", [24, 23, 24]),  # 2026-03-29 has no 02:30
        ("Europe/Berlin", time(2, 30), "2026-10-24 00:30", [24, 25, 24]),  # 2026-10-25 has two, and had two reports
        ("Asia/Beirut", time(23, 30), "2026-10-23 20:30", [24, 25, 24]),
        ("Australia/Lord_Howe", time(1, 45), "2026-04-03 14:45", [24, 24.5, 24]),
        ("Asia/Kolkata", time(8), "2026-03-28 02:30", [24, 24]),
    ],
)
def test_each_day_begins_where_the_one_before_ended(zone, at, first, days_h):
    daily, begin_s = Daily(at, ZoneInfo(zone)), ns(first) // 10**9
    last_ns, end_s = ns(first), begin_s + round(sum(days_h) * 3_600)
    reported = []
    for now_s in range(begin_s, end_s + 600, 600):
        if due_s := daily.due_s(last_ns, now_s * 10**9):
            reported.append((daily.begin_s(due_s), due_s))
            last_ns = now_s * 10**9
    ends = [begin_s + round(sum(days_h[: n + 1]) * 3_600) for n in range(len(days_h))]
    assert reported == list(zip([begin_s, *ends], ends, strict=False))


@given(st.integers(0, 30 * 24), st.lists(st.integers(1, 30), max_size=60))
def test_there_are_never_more_reports_than_days(start_h, steps_h):
    daily, begin = Daily(time(8), UTC), ns("2026-11-01 00:00") + start_h * 3_600 * 10**9
    last = now = begin
    sent = 0
    for hours in steps_h:
        now += hours * 3_600 * 10**9
        if daily.due_s(last, now):
            last, sent = now, sent + 1
    days = {(begin + h * 3_600 * 10**9) // (86_400 * 10**9) for h in range(1, sum(steps_h) + 1)
            if ((begin // 10**9 + h * 3_600) % 86_400) == 8 * 3_600}  # fmt: skip
    assert sent <= len(days)

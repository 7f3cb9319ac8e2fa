"""Usual by the hour: what recurs at an hour of the day is usual there; an incident, and chance, are not."""

from __future__ import annotations

import json
import random

import pytest

from sidejudge.scoring.statistics.baseline import UsualByHour
from sidejudge.scoring.trace.time_units import HOUR_NS

NIGHT = range(20, 24)


def lived(days: int, ratio, *, per_hour: int = 60, seed: int = 1, weight: float = 1.0) -> UsualByHour:
    """A service after so many days and one verdict more; ``ratio`` of a day and an hour."""
    draw, by_hour = random.Random(seed), UsualByHour()
    for hour in range(24 * days):
        for n in range(per_hour):
            passed = draw.random() < ratio(*divmod(hour, 24))
            by_hour.add(passed=passed, weight=weight, at_ns=hour * HOUR_NS + n)
    return by_hour


def at(by_hour: UsualByHour, hour: int, usual: float = 0.96) -> float:
    """What is usual in this hour after the days that it has seen."""
    again = UsualByHour()
    again.restore(json.loads(json.dumps(by_hour.to_json())))
    again.add(passed=True, weight=1.0, at_ns=(24 * 30 + hour) * HOUR_NS)
    return again.below(usual)


def nightly(_day: int, hour: int) -> float:
    return 0.90 if hour in NIGHT else 0.97


@pytest.mark.parametrize("weight", [1.0, 20.0])
def test_what_recurs_each_night_is_usual_at_night_and_only_there(weight):
    by_hour = lived(8, nightly, weight=weight)
    assert [at(by_hour, hour) for hour in NIGHT] == pytest.approx([0.89] * 4, abs=0.045)
    assert {at(by_hour, hour) for hour in range(1, 19)} == {0.96}
    assert at(by_hour, 22, usual=0.85) == 0.85, "it is never more than what is usual"


@pytest.mark.parametrize("days", [1, 2, 3])
def test_an_incident_of_some_days_is_none(days):
    def incident(day: int, hour: int) -> float:
        return 0.3 if day >= 7 - days and hour in NIGHT else 0.96

    by_hour = lived(7, incident)
    assert {at(by_hour, hour, usual=0.95) for hour in range(24)} == {0.95}, "one standard error below is usual"


def test_a_constant_ratio_has_none():
    draw, by_hour, lower = random.Random(5), UsualByHour(), 0
    for hour in range(24 * 60):
        for _ in range(20):
            by_hour.add(passed=draw.random() < 0.9, weight=1.0, at_ns=hour * HOUR_NS)
            lower += by_hour.below(0.89) < 0.89
    assert lower == 0


def test_a_restart_within_an_hour_changes_nothing():
    by_hour = lived(8, nightly)
    again = UsualByHour()
    again.restore(json.loads(json.dumps(by_hour.to_json())))
    assert again.below(0.96) == pytest.approx(by_hour.below(0.96), abs=1e-4)
    for each in (by_hour, again):
        each.add(passed=False, weight=1.0, at_ns=(24 * 8) * HOUR_NS)
    assert again.to_json() == by_hour.to_json()


def test_nothing_at_all_and_hours_without_a_verdict_leave_what_is_usual():
    assert UsualByHour().below(0.96) == 0.96
    thin = lived(30, nightly, per_hour=0)
    assert at(thin, 22) == 0.96
    assert at(lived(30, lambda _day, _hour: 0.9, per_hour=1), 22) == 0.96


def test_a_clock_that_was_a_year_ahead_for_a_moment_ends_nothing():
    by_hour = lived(8, nightly)
    by_hour.add(passed=True, weight=1.0, at_ns=(365 * 24 + 22) * HOUR_NS)
    by_hour.add(passed=True, weight=1.0, at_ns=(8 * 24 + 12) * HOUR_NS)
    assert by_hour.below(0.96) == 0.96, "by day again"
    by_hour.add(passed=True, weight=1.0, at_ns=(8 * 24 + 22) * HOUR_NS)
    assert by_hour.below(0.96) < 0.93


def test_a_late_verdict_of_the_hour_before_begins_no_hour_anew():
    by_hour, plain = lived(8, nightly), lived(8, nightly)
    for n in range(50):
        by_hour.add(passed=True, weight=1.0, at_ns=(8 * 24 - n % 2) * HOUR_NS)
    plain.add(passed=True, weight=1.0, at_ns=8 * 24 * HOUR_NS)
    assert by_hour.to_json()["days"] == plain.to_json()["days"]

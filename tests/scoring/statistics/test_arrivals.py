"""Arrivals: silence is noticed soon where there is much traffic, and not where there usually is none at that hour."""

from __future__ import annotations

import random

import pytest

from sidejudge.scoring.statistics.arrivals import HOUR_NS, Arrivals


def fed(per_hour, hours: int, *, begin_h: int = 0, size: int = 1, found: Arrivals | None = None) -> Arrivals:
    """Poisson arrivals of clusters of a size; ``per_hour`` is a function of the hour."""
    chance, found = random.Random(hours + size), found or Arrivals()
    for hour in range(begin_h, begin_h + hours):
        rate, at = per_hour(hour) / size, 0.0
        while rate > 0:
            at += chance.expovariate(rate)
            if at >= 1:
                break
            for _ in range(size):
                found.add(int((hour + at) * HOUR_NS))
    return found


def silent_after_h(found: Arrivals, least_h: float = 1.0) -> float:
    """Hours from the last verdict until it is silent, in quarters; infinite beyond five days."""
    for quarter in range(1, 480):
        if found.is_silent(found.last_ns + quarter * HOUR_NS // 4, round(least_h * HOUR_NS)):
            return quarter / 4
    return float("inf")


@pytest.mark.parametrize(("rate", "least", "most"), [(600, 1.0, 1.0), (50, 1.0, 1.0), (5, 1.5, 6.0), (1, 8, 40)])
def test_a_service_that_stops_is_silent_after_an_hour_or_once_a_dozen_verdicts_are_missing(rate, least, most):
    assert least <= silent_after_h(fed(lambda _: rate, 200)) <= most


def test_it_is_never_silent_before_the_window():
    found = fed(lambda _: 600, 50)
    assert silent_after_h(found, 3.0) == 3.0
    assert not Arrivals().is_silent(10**18, 1)


def test_a_new_service_that_stops_is_noticed_too():
    assert silent_after_h(fed(lambda _: 60, 2)) == 1.0


def office(hour: int) -> float:
    return 60.0 if hour % 168 < 120 and 8 <= hour % 24 < 18 else 0.0


def test_nights_and_weekends_are_usual_and_a_monday_without_traffic_is_not():
    found = fed(office, 3 * 168)  # until Sunday night; the last verdict was on Friday
    assert found.last_ns < (2 * 168 + 114) * HOUR_NS
    monday = 3 * 168
    assert not found.is_silent((monday + 8) * HOUR_NS, HOUR_NS)
    assert found.is_silent((monday + 10) * HOUR_NS, HOUR_NS)


def test_within_a_month_of_traffic_of_any_kind_no_gap_counts_as_silence():
    for per_hour, size in ((lambda _: 5, 1), (lambda _: 20, 5), (lambda h: 2 if h % 24 < 8 else 40, 1)):
        found, wrong, chance = fed(per_hour, 200, size=size), 0, random.Random(1)
        at_h = 200.0
        for _ in range(3_000):
            gap = chance.expovariate(per_hour(int(at_h)) / size)
            wrong += found.is_silent(int((at_h + gap) * HOUR_NS), HOUR_NS)
            at_h += gap
            for _ in range(size):
                found.add(int(at_h * HOUR_NS))
        assert wrong <= 1


def test_a_service_that_became_quiet_is_not_missed_as_the_busy_one_that_it_was():
    found = fed(lambda _: 120, 400)
    fed(lambda _: 2, 24, begin_h=400, found=found)
    assert silent_after_h(found) >= 3


def test_an_outage_of_days_is_not_learned_as_usual():
    found = fed(lambda _: 60, 168)
    fed(lambda _: 60, 2, begin_h=168 + 120, found=found)
    assert silent_after_h(found) <= 1.5


def test_a_restart_goes_on_and_verdicts_that_come_together_count_as_many():
    found = fed(lambda _: 30, 30)
    again = Arrivals()
    again.restore(found.to_json())
    assert again.to_json() == found.to_json()
    together = Arrivals()
    for minute in range(180):
        together.add(minute * HOUR_NS // 60, 2)
    assert together.usual(3 * HOUR_NS, 4 * HOUR_NS) == pytest.approx(120, rel=0.1)

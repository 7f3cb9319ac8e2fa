"""Arrivals: silence is noticed soon where there is much traffic, and not where there usually is none at that hour."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest

from sidejudge.scoring.statistics.arrivals import LEARNED_NS, Arrivals
from sidejudge.scoring.trace.time_units import HOUR_NS

MINUTE_NS = 60 * 10**9
WEEK_H = 168


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


def at_no_pace(found: Arrivals, at_h: float) -> Arrivals:
    """So that the pace of the latest bounds nothing."""
    for n in range(20):
        found.add(round(at_h * HOUR_NS) + n)
    return found


def counted(*hours: tuple[float, int], now_h: float) -> Arrivals:
    """So many verdicts at each of these times, in hours."""
    found = Arrivals()
    for at_h, n in hours:
        found.add(round(at_h * HOUR_NS), n)
    return at_no_pace(found, now_h)


def usual(found: Arrivals, since_h: float, until_h: float) -> float:
    return found.usual(round(since_h * HOUR_NS), round(until_h * HOUR_NS))


def silent_after_h(found: Arrivals, least_h: float = 1.0) -> float:
    """Hours from the last verdict until it is silent, in quarters; infinite beyond five days."""
    for quarter in range(1, 480):
        if found.is_silent(found.last_ns + quarter * HOUR_NS // 4, round(least_h * HOUR_NS)):
            return quarter / 4
    return float("inf")


@pytest.mark.parametrize(("rate", "least", "most"), [(600, 1.0, 1.0), (50, 1.0, 1.0), (5, 1.5, 6.0), (1, 8, 40)])
def test_a_service_that_stops_is_silent_after_an_hour_or_once_a_dozen_verdicts_are_missing(rate, least, most):
    assert least <= silent_after_h(fed(lambda _: rate, 200)) <= most


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_clock_that_was_ahead_has_dated_hides_no_silence_once_it_is_set_back(restarted):
    found = fed(lambda _: 60, 200)
    before, last_ns = found.to_json(), found.last_ns
    found.add(last_ns + 30 * HOUR_NS, 40)
    if restarted:
        ahead, found = found.to_json(), Arrivals()
        found.restore(ahead)
    now_ns = last_ns + HOUR_NS // 60
    found.no_later(now_ns)
    assert found.last_ns == (now_ns if restarted else last_ns)
    assert restarted or found.to_json() == before
    assert silent_after_h(found) <= 2.0
    after = found.to_json()
    found.no_later(found.last_ns - HOUR_NS)
    assert found.to_json() == after, "monitors of a fleet may differ by an hour"


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


@pytest.mark.parametrize(("by", "most_h"), [(-1, 1.0), (1, 1.5), (0, 0.0)])
def test_where_clocks_change_no_night_is_a_silence_and_an_outage_still_is(by, most_h):
    """Office hours, in UTC, of a zone whose clocks change on a Sunday after four weeks."""
    found, silent, chance = fed(office, 4 * 168), 0, random.Random(3)
    for quarter in range(4 * 168 * 4, 9 * 168 * 4):
        rate = office(quarter // 4 - by) / 4
        at = chance.expovariate(rate) if rate else 1.0
        while at < 1:
            found.add(int((quarter + at) * HOUR_NS / 4))
            at += chance.expovariate(rate)
        silent += found.is_silent((quarter + 1) * HOUR_NS // 4, HOUR_NS // 4)
        if quarter == (4 * 168 + 36) * 4:  # a restart in the first week after it
            before, found = found, Arrivals()
            found.restore(json.loads(json.dumps(before.to_json())))
    assert silent / 4 <= most_h
    fed(lambda hour: office(hour - by), 12, found=found, begin_h=9 * 168)  # until Monday noon
    assert silent_after_h(found, 0.25) <= 0.75


@pytest.mark.parametrize("differ", ["days", "hours"])
def test_days_and_hours_that_differ_by_a_third_are_no_change_of_clocks(differ):
    found, chance, late = Arrivals(), random.Random(1), 7 * 168 + 24 + 17
    for hour in range(late):
        if hour % (24 if differ == "days" else 1) == 0:
            level = chance.lognormvariate(0, 0.3)
        at, rate = 0.0, office(hour) * level
        while rate and (at := at + chance.expovariate(rate)) < 1:
            found.add(int((hour + at) * HOUR_NS))
    assert silent_after_h(found, 0.25) <= 0.75, "in the last hour of a day"


def test_traffic_that_ends_within_an_hour_leaves_no_silence_behind():
    """Office hours of a zone that is half an hour off, from 2:30 to 12:30 in UTC."""
    found, silent, chance = Arrivals(), 0, random.Random(1)
    for half in range(9 * 336):
        is_open = half % 336 < 240 and 5 <= half % 48 < 25
        at = chance.expovariate(25)
        while is_open and at < 1:
            found.add(int((half + at) * HOUR_NS / 2))
            at += chance.expovariate(25)
        silent += half >= 4 * 336 and found.is_silent((half + 1) * HOUR_NS // 2, HOUR_NS)
    assert silent / 2 <= 10, "530 hours in five weeks, where the rest of an hour was awaited"
    fed(lambda _: 50, 3, begin_h=9 * 168 + 4, found=found)
    assert silent_after_h(found, 0.25) <= 0.75


def test_a_change_of_clocks_that_was_dated_ahead_lasts_no_longer_than_a_week():
    found = fed(office, 4 * 168)
    fed(lambda hour: office(hour + 1), 34, begin_h=8 * 168, found=found)
    ahead, now_h = found.to_json(), 4 * 168 + 10
    assert ahead["moved"] > now_h
    found = Arrivals()
    found.restore(ahead)
    found.no_later(now_h * HOUR_NS)
    assert found.to_json()["moved"] == now_h


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


@pytest.mark.parametrize(
    ("weeks", "expected"),
    [
        ([8], 8.0),
        ([8, 4], 6.0),
        ([8, 4, 3], 5.0),
        ([8, 4, 3, 9], 6.0),
        ([8, 4, 3, 9, 2], 6 * 3 / 4 + 2 / 4),  # from the fifth week on one counts for a fourth
        ([8, 4, 3, 9, 2, 5], 5 * 3 / 4 + 5 / 4),
    ],
)
def test_an_hour_of_the_week_has_the_mean_of_its_weeks_and_older_ones_fade(weeks, expected):
    hours = [(week * WEEK_H + 30, n) for week, n in enumerate(weeks)]
    found = counted(*hours, now_h=len(weeks) * WEEK_H + 31)
    # The week that is not over begins with nothing in that hour: it was a silence of days, of which nothing is learned.
    assert usual(found, len(weeks) * WEEK_H + 30, len(weeks) * WEEK_H + 31) == expected
    assert usual(found, 30, 30.25) == expected / 4


@pytest.mark.parametrize(
    ("hour", "expected"),
    [
        (24, 6),  # seen
        (25, 2),
        (26, 0),  # seen, and nothing came
        (48, (8 + 6) / 2),  # the same hour of other days
        (24 - WEEK_H + 24, (8 + 6) / 2),
        (49, 2),
        (30, 0),  # the quietest
    ],
)
def test_an_hour_that_was_never_seen_is_like_that_of_other_days_or_the_quietest(hour, expected):
    found = counted((0, 8), (24, 6), (25, 2), (27, 3), now_h=28)
    found._hours = {hour: known for hour, known in found._hours.items() if hour in (0, 24, 25, 26)}
    assert usual(found, hour, hour + 1) == expected


@pytest.mark.parametrize(
    ("minutes", "seen", "expected"),
    [
        (30, [3, 3], 12.0),
        (10, [4, 2], 36.0),
        (0, [2], 120.0),  # all at one moment: a minute at least
    ],
)
def test_within_the_first_hour_it_goes_on_as_it_began(minutes, seen, expected):
    found = Arrivals()
    for at, n in zip((5, 5 + minutes), seen, strict=False):
        found.add(at * MINUTE_NS, n)
    assert usual(found, 7, 8) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("minute", "expected"),
    [(0, 12.0), (15, 16.0), (30, 24.0), (45, 48.0), (46, 5.0)],  # the last: too little of it was seen
)
def test_of_a_first_hour_that_began_before_the_service_did_a_part_is_known(minute, expected):
    found = counted((3 + minute / 60, 12), (4, 5), (5, 7), now_h=6)
    assert usual(found, 3 + WEEK_H, 4 + WEEK_H) == pytest.approx(expected)
    assert [usual(found, hour, hour + 1) for hour in (4, 5)] == [5.0, 7.0]


@pytest.mark.parametrize(("gap_h", "usually"), [(72, 0.0), (72.01, 9.0)])
def test_a_silence_of_three_days_is_usual_and_a_longer_one_an_outage(gap_h, usually):
    found = counted((0, 9), (1, 9), (1 + gap_h, 9), now_h=2 + gap_h)
    assert usual(found, 40, 41) == usually


def test_what_is_usual_is_the_sum_of_its_hours_and_of_three_days_at_most():
    rates = [1 + (hour * 7) % 11 for hour in range(WEEK_H)]
    found = counted(*enumerate(rates), now_h=WEEK_H)
    assert usual(found, 10.25, 13.5) == pytest.approx(0.75 * rates[10] + rates[11] + rates[12] + 0.5 * rates[13])
    assert usual(found, 10.25, 10.5) == pytest.approx(0.25 * rates[10])
    assert usual(found, 10, 82) == usual(found, 3, 82) == sum(rates[10:82])
    assert usual(found, 10, 10) == usual(found, 11, 10) == Arrivals().usual(0, HOUR_NS) == 0.0


def test_no_more_is_usual_than_at_the_pace_of_the_latest_twenty():
    found = counted((0, 600), now_h=1)
    assert usual(found, 24, 25) == 600
    for minute in range(1, 21):
        found.add(HOUR_NS + minute * MINUTE_NS)
    assert usual(found, 24, 25) == pytest.approx(60 * 20 / 19)
    assert usual(found, 24, 24.5) == pytest.approx(30 * 20 / 19)


def bursts(found: Arrivals) -> float:
    return found.to_json()["bursts"]


@pytest.mark.parametrize("size", [1, 4, 60])
@pytest.mark.parametrize("together", [True, False])
def test_verdicts_of_one_moment_are_one_burst_however_they_are_taken_in(size, together):
    """At a Poisson process of moments; of many of them, the mean of what is learned."""
    found, chance, seen = Arrivals(), random.Random(size), []
    at_ns = 0
    for moment in range(3_000):
        at_ns += int(chance.expovariate(10) * HOUR_NS)
        for n in [size] if together else [1] * size:
            found.add(at_ns, n)
        if moment > 1_000:
            seen.append(bursts(found))
    assert 0.99 * size <= min(seen)
    assert np.mean(seen) == pytest.approx(1.05 * size, rel=0.05)
    assert found.is_silent(at_ns + 3 * HOUR_NS, HOUR_NS)


@pytest.mark.parametrize("per_hour", [60, 600, 6_000])
def test_a_fleet_that_counts_by_the_minute_misses_a_service_as_soon_as_one_monitor_does(per_hour):
    found, chance = Arrivals(), random.Random(per_hour)
    minutes: Counter[int] = Counter()
    at_s = 0.0
    while at_s < 50 * 3_600:
        at_s += chance.expovariate(per_hour / 3_600)
        minutes[int(at_s // 60)] += 1
    for minute, n in minutes.items():
        found.add(minute * MINUTE_NS, n)
    assert not found.is_silent(found.last_ns + 10 * MINUTE_NS, MINUTE_NS)
    assert found.is_silent(found.last_ns + 25 * MINUTE_NS, MINUTE_NS)


@pytest.mark.parametrize("size", [1, 4])
def test_an_outage_is_one_gap_of_thrice_what_is_plausible_at_most(size):
    """Else the next would be missed, for the memory of this one."""
    found = fed(lambda _: 60, 168, size=size)
    before = found.to_json()
    squares = before["bursts"] * before["size"]
    squares += ((3 * 12 * before["bursts"]) ** 2 / 2 - squares) / 220
    found.add(found.last_ns + LEARNED_NS, size)
    mean = before["size"] + (size - before["size"]) / 220
    assert (found.to_json()["size"], bursts(found)) == (pytest.approx(mean), pytest.approx(squares / mean))


def test_times_that_run_back_a_little_count_at_the_latest_moment():
    found = Arrivals()
    for at_h, last_h in ((0.5, 0.5), (1.2, 1.2), (0.9, 1.2), (1.3, 1.3)):
        found.add(round(at_h * HOUR_NS))
        assert found.last_ns == round(last_h * HOUR_NS)
    at_no_pace(found, 2)
    assert [usual(found, hour, hour + 1) for hour in (0, 1)] == [2.0, 3.0]


def test_a_restart_goes_on():
    found = fed(lambda _: 30, 30, size=3)
    again = Arrivals()
    again.restore(json.loads(json.dumps(found.to_json())))
    for each in (found, again):
        each.add(40 * HOUR_NS, 5)
    assert again.to_json() == found.to_json()
    before = found.to_json()
    del before["size"], before["numbers"]
    again.restore(before)  # as a version wrote it that counted no verdicts of a moment
    assert again.to_json() == before | {"size": 1.0, "numbers": [1] * 20}


@pytest.mark.parametrize(("rate", "size"), [(10, 1), (40, 1), (300, 1), (40, 5), (300, 30)])
def test_fewer_than_the_least_come_hardly_ever_and_the_least_is_nearly_the_usual_where_many_come(rate, size):
    found = fed(lambda _: rate, 4 * WEEK_H, size=size)
    end_h = 4 * WEEK_H
    least = found.least((end_h - 1) * HOUR_NS, end_h * HOUR_NS)
    chance = np.random.default_rng(1)
    come = size * chance.poisson(rate / size, 100_000)
    assert np.mean(come < least) < 0.01
    assert least <= usual(found, end_h - 1, end_h)
    if (rate, size) == (300, 1):
        assert least > 200
    assert Arrivals().least(0, HOUR_NS) == 0

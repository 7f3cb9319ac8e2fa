"""What a plan promises: more traffic finds drops sooner, a smaller budget later, and thin traffic is named."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.plan import PlannedTraffic, expected, proposed_rate
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.status import Policy

ADAPTIVE, BOUND = Declaration(), Declaration(policy=Policy(mode="bound"))
DROP = PlannedTraffic(per_hour=120, good=0.96, bad=0.75)


def test_the_default_notices_a_drop_within_three_quarters_of_an_hour_at_120_an_hour_and_four_hours_at_20():
    found, thin = (expected(ADAPTIVE, replace(DROP, per_hour=rate), runs=60) for rate in (120, 20))
    assert found.median_h <= 0.75
    assert thin.median_h <= 4
    assert max(found.false_alarms, thin.false_alarms) <= 1
    assert thin.insufficient == pytest.approx(0, abs=1e-6)
    assert thin.first_h == 1.5


@pytest.mark.parametrize("declared", [ADAPTIVE, BOUND])
def test_a_plan_says_when_a_drop_is_critical_which_alone_pages_and_that_a_smaller_one_never_is(declared):
    found = expected(declared, replace(DROP, bad=0.4), runs=12)
    assert found.median_h < found.critical_median_h <= found.critical_late_h < 6
    assert math.isinf(expected(declared, DROP, runs=3).critical_median_h)


def test_what_is_noticed_is_noticed_at_a_look():
    found = expected(ADAPTIVE, replace(DROP, per_hour=6_000, bad=0.05), runs=9)
    assert found.median_h * 60 == pytest.approx(round(found.median_h * 60))
    assert found.median_h * 60 >= 1


def test_a_service_that_is_just_good_keeps_within_the_budget():
    found = expected(ADAPTIVE, replace(DROP, good=0.90), runs=1)
    assert 0.05 < found.false_alarms <= 1


def test_fewer_false_alarms_and_more_series_cost_time():
    plain = expected(ADAPTIVE, DROP, runs=60).median_h
    assert expected(replace(ADAPTIVE, false_alarms=0.01), DROP, runs=60).median_h > plain
    assert expected(ADAPTIVE, replace(DROP, series=64), runs=60).median_h > plain


def test_a_bound_has_no_answer_at_20_an_hour():
    found = expected(BOUND, replace(DROP, per_hour=20), runs=3)
    assert found.insufficient > 0.9


def test_the_proposed_rate_is_the_least_that_is_soon_enough_and_none_where_none_is():
    busy = replace(DROP, per_hour=1200)
    rate = proposed_rate(ADAPTIVE, busy, within_h=1.0)
    assert rate is not None
    assert 60 <= rate <= 120
    assert proposed_rate(ADAPTIVE, replace(DROP, per_hour=5), within_h=0.5) is None


@pytest.mark.parametrize("bad", [{"bad": 0.97}, {"good": 1.0}, {"per_hour": 0.0}, {"series": 0}])
def test_what_cannot_be_planned_is_refused(bad):
    with pytest.raises(ValueError, match="a plan needs"):
        replace(DROP, **bad)

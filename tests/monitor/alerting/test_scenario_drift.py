"""Drift from the scenario is measured from what is usual there: to depart now and then is none."""

from __future__ import annotations

import random

import pytest

from sidejudge.monitor.alerting.observation import First
from sidejudge.monitor.alerting.tracked import ChartPace, Tracked
from sidejudge.scoring.alerts.declaration import Declaration

DECLARED, PACE = Declaration(), ChartPace(50.0, 1)


def drifts(tracked: Tracked, kept: float, *, verdicts: int, seed: int, together: bool = False) -> int | None:
    """After how many verdicts the early warning is raised."""
    chance = random.Random(seed)
    for number in range(verdicts):
        keeps = chance.random() < kept
        if together:
            firsts = {First(passed=True, weight=1.0, kept=keeps, cluster=None): 1}
            tracked.learn_together(DECLARED, PACE, firsts, number, number + 1, checked=True)
        else:
            tracked.learn(DECLARED, PACE, passed=True, weight=1.0, at_ns=number, cluster=None, kept=keeps)
        if tracked.drift.alarmed:
            return number
    return None


@pytest.mark.parametrize("usual", [0.95, 0.92, 0.98])
@pytest.mark.parametrize("together", [False, True])
def test_what_is_usual_at_a_service_is_no_drift_and_a_fall_from_it_is(usual, together):
    for seed in range(2):
        tracked = Tracked(DECLARED, "workflow")
        assert drifts(tracked, usual, verdicts=600, seed=seed, together=together) is None
        assert drifts(tracked, usual - 0.3, verdicts=300, seed=seed, together=together) is not None


def test_what_may_depart_at_most_never_becomes_usual():
    chart = DECLARED.drift_chart(*PACE, 0.5)
    assert chart.good == pytest.approx(1 - DECLARED.limits.violation_ratio)
    assert DECLARED.drift_chart(*PACE, 0.999).good == DECLARED.change.drift_good

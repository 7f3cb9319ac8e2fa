"""Anchor: what was usual a week ago stays usual while a slow decay takes the baseline along."""

from __future__ import annotations

import numpy as np
import pytest

from sidejudge.scoring.statistics.baseline import RECENT, Anchor, Baseline

HOUR_NS = 3_600 * 10**9


def test_a_decay_of_ten_days_takes_the_baseline_along_and_not_the_anchor():
    rng, anchor, baseline = np.random.default_rng(1), Anchor(0.9), Baseline(0.9)
    for hour in range(480):
        ratio = 0.96 - 0.16 * max(0, hour - 240) / 240
        for _ in range(50):
            passed = bool(rng.random() < ratio)
            anchor.add(passed=passed, weight=1.0, at_ns=hour * HOUR_NS)
            baseline.add(passed=passed, weight=1.0)
    assert baseline.mean == pytest.approx(0.80, abs=0.03)
    assert anchor.lower > 0.85


def test_a_week_without_traffic_forgets_and_what_is_expected_remains():
    anchor = Anchor(0.9)
    for number in range(5_000):
        anchor.add(passed=number % 2 == 0, weight=1.0, at_ns=number)
    assert anchor.lower < 0.52
    anchor.add(passed=True, weight=1.0, at_ns=60 * 24 * HOUR_NS)
    assert anchor.lower == pytest.approx(0.87, abs=0.01)


def test_a_restart_goes_on_and_weights_are_shares():
    one, other = Anchor(0.9), Anchor(0.9)
    for number in range(300):
        one.add(passed=number % 9 > 0, weight=20.0, at_ns=number * HOUR_NS)
        other.add(passed=number % 9 > 0, weight=3.0, at_ns=number * HOUR_NS)
    again = Anchor(0.9)
    again.restore(one.to_json())
    assert again.to_json() == one.to_json()
    assert one.lower == pytest.approx(other.lower)


def test_of_a_ratio_that_slides_the_present_is_nearer_than_the_mean_of_the_latest():
    anchor, recent, owed = Anchor(0.9), Baseline(0.9, RECENT), 0.0
    for hour in range(480):
        ratio = 0.96 - 0.16 * max(0, hour - 240) / 240
        for _ in range(50):
            owed += ratio
            passed = owed >= 1  # without noise
            owed -= passed
            anchor.add(passed=passed, weight=1.0, at_ns=hour * HOUR_NS)
            recent.add(passed=passed, weight=1.0)
    assert 0.80 < anchor.present(recent) < recent.mean - 0.003
    young = Anchor(0.9)
    assert recent.mean - 0.02 < young.present(recent) <= recent.mean

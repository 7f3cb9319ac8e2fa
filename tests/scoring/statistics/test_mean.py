from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW

from sidejudge.scoring.statistics.estimate import MeanSums, mean_estimate, mean_from_sums
from sidejudge.scoring.statistics.interval import Z_95_ONE_SIDED, Z_95_TWO_SIDED, student
from sidejudge.scoring.statistics.sums import ExactSum


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.floats(0.1, 100))
@settings(deadline=None)
def test_with_equal_weights_it_is_students_interval_of_statsmodels(values, weight):
    reported = mean_estimate([(value, weight) for value in values])
    theirs = DescrStatsW(values)
    low, high = theirs.tconfint_mean(alpha=0.10)
    scale = max(1.0, *map(abs, values))
    assert reported.mean == pytest.approx(theirs.mean, abs=1e-9 * scale)
    assert (reported.lower, reported.upper) == (
        pytest.approx(low, rel=2e-3, abs=2e-3 * (high - low) + 1e-6 * scale),
        pytest.approx(high, rel=2e-3, abs=2e-3 * (high - low) + 1e-6 * scale),
    )


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.1, 100)), min_size=2, max_size=30),
    st.sampled_from([0.5, Z_95_ONE_SIDED, Z_95_TWO_SIDED]),
)
def test_with_weights_it_is_hajeks_mean_and_its_linearised_variance(values, z):
    x, w = np.array(values).T
    n, mean = len(x), np.average(x, weights=w)
    margin = student(z, n - 1) * np.sqrt(n / (n - 1) * np.sum(w**2 * (x - mean) ** 2)) / w.sum()
    reported = mean_estimate(values, z=z)
    assert (reported.n, reported.z) == (n, z)
    assert reported.effective_n == pytest.approx(min(n, max(1.0, w.sum() ** 2 / (w**2).sum())))
    assert (reported.lower, reported.mean, reported.upper) == pytest.approx(
        (mean - margin, mean, mean + margin), abs=1e-8
    )


def test_the_bounds_hold_the_weighted_mean_about_as_often_as_they_promise():
    rng, held = np.random.default_rng(5), 0
    for _ in range(400):
        bad = rng.random(3000) < 0.1
        score = np.where(bad, 0.2, 0.9) + rng.normal(0, 0.05, 3000)
        chance = np.where(bad, 1.0, 0.05)
        drawn = rng.random(3000) < chance
        reported = mean_estimate(zip(score[drawn], 1 / chance[drawn], strict=True))
        held += reported.upper >= score.mean()
    assert 0.91 <= held / 400 <= 0.99


def test_values_that_agree_within_sessions_have_the_interval_of_one_value_a_session():
    rng = np.random.default_rng(6)
    of_sessions = [(value, 1.0) for value in rng.normal(0.8, 0.1, 40)]
    one = mean_estimate(of_sessions)
    for found in (
        mean_estimate(of_sessions * 5, design_effect=5.0), mean_from_sums(sums_of(of_sessions * 5), design_effect=5.0),
    ):  # fmt: skip
        assert (found.n, found.effective_n) == (200, 40.0)
        assert (found.lower, found.upper) == pytest.approx((one.lower, one.upper), abs=0.03 * (one.upper - one.lower))


def test_one_value_does_not_vary():
    assert mean_estimate([]) is None
    assert mean_estimate([(1.0, 1.0)]) is None
    reported = mean_estimate([(0.5, 1.0), (0.5, 9.0)])
    assert reported.lower == reported.mean == reported.upper == 0.5
    assert reported.z == Z_95_ONE_SIDED


def test_a_weight_that_is_none_is_refused():
    with pytest.raises(ValueError, match="a weight must be"):
        mean_estimate([(1.0, 0.0), (1.0, 1.0)])


def sums_of(pairs):
    sums = MeanSums(n=len(pairs), **{name: ExactSum() for name in MeanSums.__dataclass_fields__ if name != "n"})
    for x, w in pairs:
        for total, factors in (
            (sums.weight, (w,)), (sums.squared_weight, (w, w)), (sums.product, (w, x)),
            (sums.squared_product, (w, w, x)), (sums.squared_square, (w, w, x, x)),
        ):  # fmt: skip
            total.add_product(*factors)
    return sums


@pytest.mark.parametrize(
    "pairs",
    [
        [(0.0, 1.0), (1.0, 1.0)],
        [(0.25, 1.0), (0.5, 4.0), (1.0, 20.0), (-3.0, 0.5)],
        [(0.1, 3.0)] * 3 + [(0.1 + 1e-9, 7.0)],
        [(1e9 + 0.25, 2.0), (1e9, 3.0), (1e9 + 0.5, 50.0)],
        [(0.5, 1.0), (0.5, 9.0)],
    ],
    ids=["two", "weights", "close together", "far from nothing", "equal"],
)
def test_from_sums_it_is_the_same_by_fractions(pairs):
    exact, n = [(Fraction(x), Fraction(w)) for x, w in pairs], len(pairs)
    whole = sum(w for _, w in exact)
    mean = sum(w * x for x, w in exact) / whole
    spread = sum((w * (x - mean)) ** 2 for x, w in exact) / whole**2 * Fraction(n, n - 1)
    found = mean_from_sums(sums_of(pairs))
    assert (found.n, found.mean, found.z) == (n, float(mean), Z_95_ONE_SIDED)
    assert found.effective_n == pytest.approx(float(whole**2 / sum(w * w for _, w in exact)), abs=1e-8)
    margin = student(Z_95_ONE_SIDED, n - 1) * math.sqrt(spread)
    assert (found.upper - found.mean, found.mean - found.lower) == pytest.approx((margin, margin), rel=1e-6, abs=0)


def test_sums_of_fewer_than_two_have_no_mean():
    assert mean_from_sums(sums_of([])) is None
    assert mean_from_sums(sums_of([(0.5, 1.0)])) is None

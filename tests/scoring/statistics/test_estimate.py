from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.weightstats import DescrStatsW

from sidejudge.scoring.statistics.estimate import effective_n, estimate, from_sums
from sidejudge.scoring.statistics.interval import Z_95_ONE_SIDED, wilson, wilson_pair

weights = st.floats(1.0, 1e6)
verdicts = st.lists(st.tuples(st.booleans(), weights), min_size=1, max_size=60)


@given(verdicts)
def test_bounds_are_ordered_and_inside_the_unit_interval(pairs):
    e = estimate(pairs)
    assert 0 <= e.lower <= e.pass_ratio <= e.upper <= 1
    assert 1 <= e.effective_n <= e.n == len(pairs)
    assert e.failures == sum(not passed for passed, _ in pairs)


@given(verdicts, st.floats(1, 100), st.integers(0, 50))
def test_bounds_are_those_of_a_size_that_weights_and_clusters_diminish_and_of_a_chosen_beginning(pairs, effect, begins):
    passed, w = np.array([p for p, _ in pairs]), np.array([w for _, w in pairs])
    ratio, size = min(1.0, np.average(passed, weights=w)), max(1.0, w.sum() ** 2 / (w**2).sum() / effect)
    e = from_sums(
        n=len(pairs), failures=sum(~passed), weight=w.sum(), failed_weight=w[~passed].sum(),
        squared_weight=(w**2).sum(), design_effect=effect, begins=begins,
    )  # fmt: skip
    expected = wilson_pair(size * ratio, size, norm.ppf(1 - 0.05 / 2 / max(1, begins)))
    assert (e.pass_ratio, e.weight_sum) == pytest.approx((ratio, w.sum()))
    assert e.effective_n == pytest.approx(size, abs=1e-6)
    assert (e.lower, e.upper) == pytest.approx((min(expected.lower, ratio), max(expected.upper, ratio)), abs=1e-6)
    assert e.design_effect == effect


@given(st.lists(st.booleans(), min_size=1, max_size=200), weights)
def test_equal_weights_give_the_plain_ratio_and_wilson(outcomes, weight):
    e = estimate([(passed, weight) for passed in outcomes])
    n, k = len(outcomes), sum(outcomes)
    shown, apart = wilson_pair(k, n), wilson(k, n, Z_95_ONE_SIDED)
    assert e.effective_n == n
    assert e.pass_ratio == pytest.approx(k / n, abs=1e-12)
    assert (e.lower, e.upper) == pytest.approx((shown.lower, shown.upper), abs=1e-9)
    assert (e.one_sided.lower, e.one_sided.upper) == pytest.approx((apart.lower, apart.upper), abs=1e-9)


@given(verdicts, st.floats(0.001, 1000.0))
def test_the_scale_of_weights_does_not_matter(pairs, factor):
    one, other = estimate(pairs), estimate([(passed, weight * factor) for passed, weight in pairs])
    assert other.pass_ratio == pytest.approx(one.pass_ratio, abs=1e-9)
    assert other.effective_n == pytest.approx(one.effective_n, rel=1e-6)
    assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), abs=1e-6)


@given(verdicts, st.randoms(use_true_random=False))
def test_order_does_not_matter(pairs, shuffler):
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    assert estimate(shuffled) == estimate(pairs)


@given(verdicts)
def test_one_more_pass_never_lowers_the_ratio(pairs):
    assert estimate([*pairs, (True, 1.0)]).pass_ratio >= estimate(pairs).pass_ratio - 1e-12


@given(verdicts)
def test_the_ratio_equals_weighted_means_elsewhere(pairs):
    passed, weight = [float(p) for p, _ in pairs], [w for _, w in pairs]
    assert estimate(pairs).pass_ratio == pytest.approx(np.average(passed, weights=weight), abs=1e-9)
    assert estimate(pairs).pass_ratio == pytest.approx(DescrStatsW(passed, weights=weight).mean, abs=1e-9)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=60))
def test_effective_n_is_kish(sizes):
    array = np.array(sizes)
    assert effective_n(sizes) == pytest.approx(max(1.0, array.sum() ** 2 / (array**2).sum()), abs=1e-6)


def test_thirty_equal_weights_are_thirty_samples_whatever_the_rate():
    for rate in (0.3, 0.07, 0.01, 1 / 3, 2**-56):
        assert estimate([(True, 1 / rate)] * 30).effective_n == 30
        assert effective_n([1 / rate] * 30) == 30


def test_certain_ratios_are_whole_numbers():
    assert estimate([(True, 1 / 0.3)] * 7).pass_ratio == 1.0
    assert estimate([(True, 1 / 0.3)] * 7).upper == 1.0
    assert estimate([(False, 1 / 0.3)] * 7).pass_ratio == 0.0
    assert estimate([(False, 1 / 0.3)] * 7).lower == 0.0


def test_without_verdicts_there_is_no_estimate():
    assert estimate([]) is None
    assert effective_n([]) is None


@pytest.mark.parametrize("weight", [0.0, -0.5, -1.0, math.nan, math.inf, 1e200])
def test_weights_that_cannot_be_are_refused(weight):
    with pytest.raises(ValueError, match="weight"):
        estimate([(True, weight)])
    with pytest.raises(ValueError, match="weight"):
        effective_n([weight])


def test_weighting_undoes_forced_errors():
    """Errors are always kept, the rest with 5 %: pooled verdicts read far too low, weighted ones read the truth."""
    chance = random.Random(7)
    truth, pooled, weighted = [], [], []
    for _ in range(300):
        kept = []
        for _ in range(2000):
            error = chance.random() < 0.05
            passed = chance.random() < (0.40 if error else 0.95)
            truth.append(passed)
            if error:
                kept.append((passed, 1.0))
            elif chance.random() < 0.05:
                kept.append((passed, 20.0))
        weighted.append(estimate(kept).pass_ratio)
        pooled.append(sum(passed for passed, _ in kept) / len(kept))
    assert np.mean(weighted) == pytest.approx(np.mean(truth), abs=0.005)
    assert np.mean(pooled) < np.mean(truth) - 0.2

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, norm, t
from statsmodels.stats.proportion import proportion_confint

from sidejudge.scoring.statistics.interval import (
    Z_95_ONE_SIDED,
    Z_95_TWO_SIDED,
    Z_99_ONE_SIDED,
    at_most,
    least_trials,
    most_hits,
    student,
    wilson,
    wilson_pair,
)

counts = st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
quantiles = st.sampled_from([Z_95_ONE_SIDED, Z_95_TWO_SIDED, Z_99_ONE_SIDED])


def test_quantiles_are_those_of_the_normal_distribution():
    for z, share in ((Z_95_ONE_SIDED, 0.95), (Z_95_TWO_SIDED, 0.975), (Z_99_ONE_SIDED, 0.99)):
        assert z == pytest.approx(norm.ppf(share), abs=1e-14)


@pytest.mark.parametrize("free", [1, 2, 3, 4, 9, 29, 1000])
@pytest.mark.parametrize("z", [0.5, Z_95_ONE_SIDED, Z_95_TWO_SIDED])
def test_quantiles_of_few_values_are_those_of_students_distribution(z, free):
    assert student(z, free) == pytest.approx(t.ppf(norm.cdf(z), free), rel=2e-3)


@given(counts, quantiles)
def test_bounds_equal_statsmodels(count, z):
    k, n = count
    lower, upper = proportion_confint(k, n, alpha=2 * norm.sf(z), method="wilson")
    interval = wilson(k, n, z)
    assert (interval.lower, interval.upper) == pytest.approx((lower, upper), abs=1e-9)


@given(st.floats(0.5, 1e6), st.floats(0, 1), quantiles)
def test_fractional_counts_follow_the_same_formula(n, share, z):
    k = share * n
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    interval = wilson(k, n, z)
    assert interval.lower == pytest.approx(max(0, centre - margin), abs=1e-9)
    assert interval.upper == pytest.approx(min(1, centre + margin), abs=1e-9)


@given(counts, quantiles)
def test_bounds_hold_the_ratio_and_stay_in_the_unit_interval(count, z):
    k, n = count
    interval = wilson(k, n, z)
    assert 0 <= interval.lower <= k / n + 1e-12
    assert k / n - 1e-12 <= interval.upper <= 1


@given(counts, quantiles)
def test_bounds_mirror_when_passes_and_failures_change_places(count, z):
    k, n = count
    there, back = wilson(k, n, z), wilson(n - k, n, z)
    assert there.lower == pytest.approx(1 - back.upper, abs=1e-12)


@given(counts)
def test_more_confidence_means_wider_bounds(count):
    narrow, wide = wilson(*count, Z_95_ONE_SIDED), wilson(*count, Z_99_ONE_SIDED)
    assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper


def test_extremes_are_exact():
    assert wilson(0, 7, Z_95_ONE_SIDED).lower == 0.0
    assert wilson(7, 7, Z_95_ONE_SIDED).upper == 1.0


def test_one_failure_alone_has_an_upper_bound_of_0_73():
    assert wilson(0, 1, Z_95_ONE_SIDED).upper == pytest.approx(0.7301, abs=1e-4)


def test_without_trials_there_is_no_interval():
    assert wilson(0, 0, Z_95_ONE_SIDED) is None


@pytest.mark.parametrize("arguments", [(2, 1, 1.6), (-1, 1, 1.6), (0, -1, 1.6), (0, 1, -1.0), (math.nan, 1, 1.6)])
def test_counts_that_cannot_be_are_refused(arguments):
    with pytest.raises(ValueError, match="Wilson"):
        wilson(*arguments)


def test_the_pair_that_is_shown_is_newcombes():
    """The table of his paper (1998), method 4."""
    table = [(81, 263, 0.2535, 0.3682), (15, 148, 0.0598, 0.1644), (0, 20, 0.0, 0.2005), (1, 29, 0.0018, 0.1963)]
    for successes, n, lower, upper in table:
        pair = wilson_pair(successes, n)
        assert (pair.lower, pair.upper) == pytest.approx((lower, upper), abs=5e-5)


@pytest.mark.parametrize("n", [12, 40, 175])
def test_the_pair_that_is_shown_covers_what_it_promises_at_every_ratio(n):
    """Exactly, by the binomial distribution; without the correction it does not."""
    bounds = [(wilson_pair(k, n), wilson(k, n, Z_95_TWO_SIDED)) for k in range(n + 1)]
    covered = [[], []]
    for step in range(1, 200):
        ratio = step / 200
        chances = binom.pmf(range(n + 1), n, ratio)
        for kind in (0, 1):
            inside = (chance for chance, pair in zip(chances, bounds, strict=True)
                      if pair[kind].lower <= ratio <= pair[kind].upper)  # fmt: skip
            covered[kind].append(sum(inside))
    assert min(covered[0]) >= 0.945
    assert min(covered[1]) < 0.945


@example(-1, 0, 0.0)
@given(st.integers(-1, 120), st.integers(0, 100), st.sampled_from([0.0, 1e-9, 0.01, 0.3, 0.5, 0.99, 1.0]))
def test_the_chance_of_so_many_hits_or_fewer_is_the_binomial_one(k, n, p):
    assert at_most(k, n, p) == pytest.approx(binom.cdf(k, n, p), abs=1e-9)


@given(st.integers(1, 400), st.floats(0.001, 0.999))
def test_the_most_hits_that_show_a_share_are_those_below_its_exact_bound(n, share):
    enough = [k for k in range(n + 1) if binom.cdf(k, n, share) <= 0.05]
    assert most_hits(n, share) == (max(enough) if enough else None)


@given(st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.2, 0.3]), st.integers(30, 600), st.floats(0, 0.7))
def test_no_fewer_trials_show_a_share_with_so_many_hits_among_them(share, n, part):
    rate = Fraction(int(share * part * n), n)
    found = least_trials(share, float(rate))
    trials = np.arange(1, found + 1)
    hits = -(-rate.numerator * trials // rate.denominator)  # as many as that or more
    assert (binom.cdf(hits, trials, share) <= 0.05).nonzero()[0].tolist() == [found - 1]


@pytest.mark.parametrize(("share", "rate"), [(0.0, 0.0), (0.05, 0.05), (0.05, 0.1)])
def test_no_number_of_trials_shows_a_share_that_hits_reach(share, rate):
    assert least_trials(share, rate) is None

"""The corrected pass rate, against published examples, its own algebra, and simulated judges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.ppi import Corrected, rogan_gladen

rights = st.integers(1, 2000).flatmap(lambda m: st.tuples(st.integers(0, m), st.just(m)))
shares = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("positives", "tested", "sensitivity", "specificity", "published"),
    [
        (23, 150, (96, 100), (89, 100), 0.051),  # brucellosis, manual of epiR's epi.prev
        (6, 151, (964, 1000), (927, 1000), 0.0),  # Helicobacter, the same: held at 0
    ],
)
def test_published_examples_come_out(positives, tested, sensitivity, specificity, published):
    assert rogan_gladen(positives / tested, tested, sensitivity, specificity).rate == pytest.approx(published, abs=5e-4)


@given(shares, rights, rights)
def test_a_judge_that_tells_nothing_apart_corrects_nothing(share, positive, negative):
    (k, n), (a, m), (b, o) = share, positive, negative
    found = rogan_gladen(k / n, n, positive, negative)
    if a * o + b * m <= m * o:
        assert isinstance(found, Unavailable)
        assert "not above 0" in found.reason
    else:
        assert isinstance(found, Corrected)
        assert 0 <= found.lower <= found.rate <= found.upper <= 1


@given(shares)
def test_a_judge_without_errors_leaves_the_rate(share):
    k, n = share
    assert rogan_gladen(k / n, n, (50, 50), (50, 50)).rate == pytest.approx(k / n)


@given(shares, rights, rights)
def test_passing_and_failing_may_change_places(share, positive, negative):
    (k, n) = share
    there, back = rogan_gladen(k / n, n, positive, negative), rogan_gladen((n - k) / n, n, negative, positive)
    if isinstance(there, Corrected) and there.upper - there.lower < 1:
        assert (1 - back.rate, 1 - back.upper) == pytest.approx((there.rate, there.lower), abs=1e-7)


@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 40), st.integers(0, 40))
def test_where_all_are_labelled_the_corrected_rate_is_peoples_own(hit, missed, rejected, slipped):
    n = hit + missed + rejected + slipped
    found = rogan_gladen((hit + slipped) / n, n, (hit, hit + missed), (rejected, rejected + slipped))
    if isinstance(found, Corrected):
        assert found.rate == pytest.approx((hit + missed) / n, abs=1e-9)


@pytest.mark.parametrize(
    ("truth", "s", "t", "n", "labelled"),
    [(0.8, 0.9, 0.7, 500, 100), (0.95, 0.95, 0.8, 1000, 200), (0.5, 0.8, 0.8, 300, 80)],
)
def test_the_interval_covers_what_people_would_have_found(truth, s, t, n, labelled):
    rng, covered, known = np.random.default_rng(7), 0, 0
    for _ in range(1500):
        passed = rng.binomial(n, truth * s + (1 - truth) * (1 - t))
        m_1 = rng.binomial(labelled, truth)
        m_0 = labelled - m_1
        found = rogan_gladen(passed / n, n, (int(rng.binomial(m_1, s)), m_1), (int(rng.binomial(m_0, t)), m_0))
        if isinstance(found, Corrected):
            known += 1
            covered += found.lower <= truth <= found.upper
    assert known > 1450
    assert 0.935 <= covered / known <= 0.995


def test_errors_of_half_the_judge_being_unknown_correct_nothing():
    assert rogan_gladen(0.5, 10, (0, 0), (3, 4)) == Unavailable(
        "people passed nothing, so half of the errors are unknown"
    )
    assert rogan_gladen(0.5, 10, (3, 4), (0, 0)) == Unavailable(
        "people failed nothing, so half of the errors are unknown"
    )
    assert isinstance(rogan_gladen(0.0, 0, (3, 4), (3, 4)), Unavailable)


@pytest.mark.parametrize(
    "arguments",
    [(1.1, 9, (1, 2), (1, 2)), (math.nan, 9, (1, 2), (1, 2)), (0.5, 9, (3, 2), (1, 2)), (0.5, -1, (1, 2), (1, 2))],
)
def test_counts_that_cannot_be_are_refused(arguments):
    with pytest.raises(ValueError, match="no rate and counts"):
        rogan_gladen(*arguments)

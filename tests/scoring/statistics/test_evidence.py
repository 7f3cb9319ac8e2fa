"""Evidence: the Bayes factors that they are, and martingales: looking often raises no false alarm."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, dirichlet_multinomial, multinomial

from sidejudge.scoring.statistics.evidence import against_rate, against_uniform

COUNTS = st.lists(st.integers(0, 200), min_size=2, max_size=8)


@given(counts=COUNTS)
def test_against_uniform_is_the_ratio_of_two_probabilities_of_the_counts(counts):
    n, bins = sum(counts), len(counts)
    expected = dirichlet_multinomial.logpmf(counts, [1.0] * bins, n) - multinomial.logpmf(counts, n, [1 / bins] * bins)
    assert against_uniform(counts) == pytest.approx(expected, abs=1e-6)


@given(n=st.integers(0, 500), share=st.floats(0, 1), rate=st.floats(0.001, 0.999))
def test_against_rate_is_the_ratio_of_two_probabilities_of_the_hits(n, share, rate):
    hits = round(n * share)
    expected = betabinom.logpmf(hits, n, 0.5, 0.5) - binom.logpmf(hits, n, rate)
    assert against_rate(hits, n, rate) == pytest.approx(expected, abs=1e-6)


@given(counts=COUNTS)
def test_under_the_hypothesis_the_next_observation_is_expected_to_change_nothing(counts):
    now = against_uniform(counts)
    after = [against_uniform([c + (i == j) for j, c in enumerate(counts)]) for i in range(len(counts))]
    assert sum(math.exp(e - now) for e in after) / len(counts) == pytest.approx(1.0)


@given(n=st.integers(0, 300), share=st.floats(0, 1), rate=st.floats(0.01, 0.99))
def test_nor_does_the_next_trial(n, share, rate):
    hits = round(n * share)
    now = against_rate(hits, n, rate)
    hit, miss = against_rate(hits + 1, n + 1, rate), against_rate(hits, n + 1, rate)
    assert rate * math.exp(hit - now) + (1 - rate) * math.exp(miss - now) == pytest.approx(1.0)


def test_looking_after_every_observation_alarms_no_more_often_than_stated():
    """2,000 uniform histories of 300 observations at alpha = 5 %: at most 5 % ever alarm, plus four standard errors."""
    draw = random.Random(5)
    alarms = 0
    for _ in range(2_000):
        counts = [0] * 4
        for _ in range(300):
            counts[draw.randrange(4)] += 1
            if against_uniform(counts) >= math.log(20):
                alarms += 1
                break
    assert 0 < alarms <= 2_000 * 0.05 + 4 * (2_000 * 0.05 * 0.95) ** 0.5


def test_nothing_seen_is_no_evidence_and_a_contradiction_is_infinite():
    assert against_uniform([0, 0]) == 0.0
    assert against_rate(0, 0, 0.5) == pytest.approx(0.0)
    assert against_rate(1, 1, 0.0) == math.inf
    assert against_rate(3, 3, 1.0) < 0.0


@pytest.mark.parametrize("wrong", [[], [1], [1, -1]])
def test_counts_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="two or more counts"):
        against_uniform(wrong)


@pytest.mark.parametrize(("hits", "n", "rate"), [(2, 1, 0.5), (-1, 1, 0.5), (0, 1, 1.5), (0, 1, math.nan)])
def test_trials_that_cannot_be_are_refused(hits, n, rate):
    with pytest.raises(ValueError, match="hits"):
        against_rate(hits, n, rate)

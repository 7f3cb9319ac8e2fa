"""Evidence: the Bayes factors that they are, and martingales: looking often raises no false alarm."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, dirichlet_multinomial, multinomial

from sidejudge.scoring.statistics.evidence import Scale, against_rate, against_uniform
from sidejudge.scoring.trace.time_units import DAY_NS

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


@pytest.mark.parametrize(
    ("hits", "n", "rate"), [(2, 1, 0.5), (-1, 1, 0.5), (0, 1, 1.5), (0, 1, -0.5), (0, 1, math.nan)]
)
def test_trials_that_cannot_be_are_refused(hits, n, rate):
    with pytest.raises(ValueError, match="hits"):
        against_rate(hits, n, rate)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([5.0, 5.0, 5.0], [None, 1.0, 1.0]),
        ([5.0, 10.0, 10.0], [None, 2.0, 1.0]),  # twice the largest is still a share
        ([5.0, 10.1, 10.1], [None, None, 1.0]),  # more than that begins anew
        ([4.0, 1.0, 2.0, 4.0], [None, 0.25, 0.5, 1.0]),  # a smaller one changes no share of those to come
    ],
)
def test_a_weight_is_stated_as_a_share_of_the_largest_before_it(weights, expected):
    alone, groups = Scale(), Scale()
    assert [alone.share(weight) for weight in weights] == expected
    assert [groups.shares({weight}) for weight in weights] == [
        None if share is None else {weight: share} for weight, share in zip(weights, expected, strict=True)
    ]
    assert groups.largest == alone.largest == max(weights)


@pytest.mark.parametrize(
    ("groups", "even"),
    [
        ([[3.0], [3.0], [3.0, 3.0]], True),
        ([[3.0], [3.0 * (1 + 1e-12)]], True),  # the same rate, computed in another way
        ([[3.0], [2.0]], False),
        ([[3.0], [4.0]], False),
        ([[3.0], [2.0], [3.0]], False),
        ([[3.0], [2.0], [7.0]], True),  # begun anew
        ([[3.0, 2.0]], False),
        ([[3.0, 2.0], [3.0]], False),
        ([[3.0], [3.0, 2.0]], False),
        ([[3.0], [3.0, 7.0]], False),
        ([[3.0], [3.0, 7.0], [15.0]], True),
    ],
)
def test_weights_are_even_while_all_since_the_last_beginning_were_the_same(groups, even):
    scale = Scale()
    for weights in groups:
        scale.shares(weights)
    assert scale.even is even


@given(groups=st.lists(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=4), min_size=1, max_size=6))
def test_weights_that_come_together_are_all_shares_of_the_largest_before_them(groups):
    scale, largest = Scale(), 0.0
    for weights in groups:
        shares = scale.shares(weights)
        if max(weights) > 2 * largest:
            assert shares is None
            largest = max(weights)
        else:
            assert shares == {weight: weight / largest for weight in weights}
            largest = max(largest, *weights)
        assert scale.largest == largest


@pytest.mark.parametrize(
    ("terms", "largest"),
    [
        ([(7, 1_000, 100.0), (7, 1_000, 1.0), (0, 1, 1.0)], 1.0),  # what did not come again is forgotten
        ([(7, 1_000, 100.0), (7, 1_000, 60.0), (0, 1, 1.0)], 60.0),
        ([(7, 1_000, 100.0), (6, 1_000, 1.0), (0, 1, 1.0)], 100.0),  # a peak comes back within a week
        ([(7, 1_000, 100.0), (7, 999, 1.0), (0, 1, 1.0)], 100.0),  # so few may be what a rule keeps
        ([(7, 999, 100.0), (7, 1_000, 1.0), (0, 1, 1.0)], 100.0),
        ([(7, 1_000, 100.0), (-14, 1_000, 1.0), (7, 1_000, 1.0)], 100.0),  # a clock was set back
    ],
)
def test_a_weight_that_does_not_come_again_is_forgotten(terms, largest):
    """Terms of so many days, verdicts and this weight; a restart after each."""
    scale, at_ns = Scale(), 0
    for days, n, weight in terms:
        scale.pass_to(at_ns, weight, n)
        scale.share(weight)
        scale = Scale.of_json(json.loads(json.dumps(scale.to_json())))
        at_ns += days * DAY_NS
    assert scale.largest == largest


def test_what_an_earlier_version_kept_is_forgotten_after_a_term():
    scale = Scale.of_json({"largest": 100.0, "even": False})
    for at_ns, n in ((0, 1_000), (7 * DAY_NS, 1)):
        scale.pass_to(at_ns, 1.0, n)
        scale.share(1.0)
    assert scale.largest == 1.0


@pytest.mark.parametrize("weights", [[0.0], [-1.0], [math.inf], [3.0, 0.0], [3.0, math.inf]])
def test_a_weight_that_cannot_be_is_refused_and_changes_nothing(weights):
    scale = Scale()
    scale.share(3.0)
    with pytest.raises(ValueError, match="a weight must be positive"):
        scale.shares(weights)
    assert (scale.largest, scale.even) == (3.0, True)

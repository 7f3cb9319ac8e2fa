"""Bounds of means and quantiles by betting: coverage over repetitions, weights, clusters, oracles."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import beta

from sidejudge.scoring.statistics.betting import STAKES, Gamblers, Sampled, evidence_below, mean_bounds
from sidejudge.scoring.statistics.quantile import Measured, quantile


def drawn(rng: random.Random, n: int, *, cluster: int = 1, rule: bool = False):
    """Values of a beta distribution with mean 0.7; of those above 0.9 a rule keeps all, of the rest each tenth."""
    found = []
    for number in range(n):
        value = rng.betavariate(1.4, 0.6) if number % cluster == 0 else found[-1].value
        probability = 1.0 if rule and value > 0.9 else 0.1 if rule else 1.0
        if rng.random() < probability:
            found.append(Sampled(value, 1 / probability, str(number // cluster) if cluster > 1 else None))
    return found


@pytest.mark.parametrize(("cluster", "rule"), [(1, False), (5, False), (1, True)])
def test_the_mean_lies_within_its_bounds_as_often_as_promised(cluster, rule):
    rng = random.Random(7)
    inside = 0
    for _ in range(150):
        low, high = mean_bounds(drawn(rng, 150, cluster=cluster, rule=rule))
        inside += low <= 0.7 <= high
    assert inside >= 146  # 0.95 of 150 are 143; the method promises more than it says


def test_nearly_equal_values_do_not_fool_it():
    """One in a hundred is 0: of forty values most often all are 1, where a normal approximation has no width."""
    rng = random.Random(3)
    inside = 0
    for _ in range(200):
        low, high = mean_bounds([Sampled(float(rng.random() < 0.99), 1.0, None) for _ in range(40)])
        inside += low <= 0.99 <= high
    assert inside >= 195


def test_wealth_equals_the_products_of_the_formula():
    values, level = [0.2, 0.9, 0.5, 0.5], 0.7
    rows = Gamblers((1.0, None) for _ in values).bets(values)
    wealth = [np.prod([1 + f * (level - y) / (1 - level) for y in values]) for f in STAKES]
    assert evidence_below(rows, level) == pytest.approx(np.mean(wealth), rel=1e-9)


def test_a_cluster_bets_once():
    alone = mean_bounds([Sampled(float(i % 4 > 0), 1.0, None) for i in range(200)])
    together = mean_bounds([Sampled(float(i // 10 % 4 > 0), 1.0, str(i // 10)) for i in range(200)])
    assert together[1] - together[0] > 1.8 * (alone[1] - alone[0])


def test_what_a_rule_left_out_may_weigh_more_than_all_that_was_drawn():
    """A rule keeps all poor answers, good ones stand for five: a sample without a good one must not be too sure."""
    rng, outside = random.Random(4), {0.0: 0, 5.0: 0}
    for _ in range(80):
        rows = []
        while len(rows) < 500:
            good = rng.random() < 0.02
            if not good or rng.random() < 0.2:
                rows.append(Sampled(0.9 if good else 0.3, 5.0 if good else 1.0, None))
        for largest in outside:
            low, high = mean_bounds(rows, largest=largest)
            outside[largest] += not low <= 0.312 <= high
    assert outside[5.0] <= 4
    assert outside[0.0] >= 5, "the largest weight matters here"


def test_scaling_all_weights_changes_nothing():
    rows = drawn(random.Random(5), 200, rule=True)
    scaled = [row._replace(weight=row.weight * 37.0) for row in rows]
    assert mean_bounds(rows) == pytest.approx(mean_bounds(scaled), abs=1e-4)


def test_what_is_shared_among_few_bets_costs_little():
    rows = [Sampled(float(i % 10 > 0), 1.0, None) for i in range(9_000)]
    low, high = mean_bounds(rows)
    assert low < 0.9 < high
    assert high - low < 0.025  # an exact interval has 0.013


@pytest.mark.parametrize("q", [0.5, 0.95])
@pytest.mark.parametrize(("cluster", "rule"), [(1, False), (4, False), (1, True)])
def test_the_quantile_lies_within_its_bounds_as_often_as_promised(q, cluster, rule):
    rng, truth = random.Random(11), float(beta.ppf(q, 1.4, 0.6))
    inside = 0
    for _ in range(60):
        rows = [Measured(*row) for row in drawn(rng, 150, cluster=cluster, rule=rule)]
        found = quantile(rows, q)
        low, high = found.lower, found.upper
        inside += (low is None or low <= truth) and (high is None or truth <= high)
    assert inside >= 57


def test_a_quantile_equals_numpy_with_weights_as_repetitions():
    rng = random.Random(2)
    rows = [Measured(rng.random(), float(rng.randint(1, 5)), None) for _ in range(300)]
    repeated = [row.value for row in rows for _ in range(int(row.weight))]
    for q in (0.05, 0.5, 0.9, 0.95):
        found = quantile(rows, q)
        assert found is not None
        assert found.value == np.quantile(repeated, q, method="inverted_cdf")


def test_equal_values_of_which_some_have_a_cluster_have_the_same_quantile_in_any_order():
    rows = [Measured(float(i % 3), 1.0, cluster) for i in range(40) for cluster in (None, "a", "b")]
    found = quantile(rows, 0.5)
    assert found is not None
    assert (found.value, found.n) == (1.0, 120)
    assert quantile(rows[::-1], 0.5) == found


def test_few_values_bound_a_high_quantile_from_one_side_alone():
    found = quantile([Measured(float(i), 1.0, None) for i in range(40)], 0.95)
    assert found is not None
    assert found.lower is not None
    assert found.upper is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_was_not_measured_is_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        quantile([Measured(bad, 1.0, None)], 0.5)


def test_no_value_has_no_quantile_and_no_bounds():
    assert quantile([], 0.5) is None
    assert mean_bounds([]) == (0.0, 1.0)


def test_a_quantile_of_equal_values_is_bounded_by_them() -> None:
    found = quantile([Measured(3.0, 1.0, None)] * 100, 0.5)
    assert found is not None
    assert (found.lower, found.upper) == (3.0, 3.0)
    few = quantile([Measured(3.0, 1.0, None)] * 3, 0.5)
    assert few is not None
    assert (few.lower, few.upper) == (None, None)

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.descriptive import p50, p95, percentile

values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)


@given(values, st.floats(0, 1))
def test_it_equals_numpy(numbers, q):
    assert percentile(numbers, q) == pytest.approx(np.percentile(numbers, q * 100), rel=1e-9, abs=1e-6)


@given(values)
def test_ends_are_minimum_and_maximum_and_the_middle_is_the_median(numbers):
    assert percentile(numbers, 0) == min(numbers)
    assert percentile(numbers, 1) == max(numbers)
    assert p50(numbers) == pytest.approx(np.median(numbers), rel=1e-9, abs=1e-6)
    assert p95(numbers) == percentile(numbers, 0.95)


@given(values, st.floats(0, 1), st.floats(0, 1))
def test_it_rises_with_the_share(numbers, a, b):
    low, high = sorted((a, b))
    assert percentile(numbers, low) <= percentile(numbers, high) + 1e-6


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 9)), min_size=1, max_size=20), st.floats(0, 1),
    st.sampled_from([1.0, 7.0, 0.1]),
)  # fmt: skip
def test_a_value_stands_as_often_as_its_weight_is_a_multiple_of_the_smallest(pairs, q, unit):
    pairs.append((0.0, 1))
    repeated = [value for value, weight in pairs for _ in range(weight)]
    found = percentile([value for value, _ in pairs], q, [weight * unit for _, weight in pairs])
    assert found == pytest.approx(np.percentile(repeated, q * 100), rel=1e-9, abs=1e-3)


def test_one_value_is_every_percentile():
    assert p50([7.0]) == p95([7.0]) == 7.0


def test_without_values_there_is_none():
    assert p50([]) is None
    assert p95([]) is None


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_shares_outside_the_unit_interval_are_refused(q):
    with pytest.raises(ValueError, match="share"):
        percentile([1.0], q)
    with pytest.raises(ValueError, match="share"):
        percentile([1.0, 2.0], q, [1.0, 2.0])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="finite"):
        percentile([1.0, value], 0.5)
    with pytest.raises(ValueError, match="finite"):
        percentile([1.0, value], 0.5, [1.0, 2.0])

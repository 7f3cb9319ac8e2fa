from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.sums import ExactSum

finite = st.floats(min_value=-1e300, max_value=1e300)


@given(st.lists(finite, max_size=50))
def test_the_sum_equals_fsum(values):
    total = ExactSum()
    for value in values:
        total.add(value)
    assert total.value == math.fsum(values)


@given(st.lists(finite, max_size=30), st.lists(finite, max_size=30))
def test_what_is_taken_away_leaves_exactly_what_remains(kept, passing):
    total = ExactSum()
    for value in passing + kept:
        total.add(value)
    for value in passing:
        total.add(value, -1)
    assert total.value == math.fsum(kept)


@pytest.mark.parametrize("value", [5e-324, 2.0**-1074, 1.7976931348623157e308, -0.1, 0.0])
def test_extremes_are_representable(value):
    total = ExactSum()
    total.add(value)
    assert total.value == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises((ValueError, OverflowError)):
        ExactSum().add(value)

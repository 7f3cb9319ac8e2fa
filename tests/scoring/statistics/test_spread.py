from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.descriptive import spread

FINITE = st.floats(-1e300, 1e300)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_it_is_numpys_mean_and_standard_deviation_with_ddof_1(values):
    found = spread(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    assert found.sd == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)


@given(st.lists(FINITE, min_size=2, max_size=10))
def test_it_is_finite_and_the_mean_lies_among_the_values(values):
    found = spread(values)
    assert min(values) <= found.mean <= max(values)
    assert 0 <= found.sd < float("inf")


@given(FINITE, st.integers(2, 5))
def test_equal_values_do_not_vary(value, n):
    assert (spread([value] * n).mean, spread([value] * n).sd) == (value, 0.0)


def test_one_value_has_no_spread():
    assert spread([1.0]) is None
    assert spread([]) is None


def test_what_was_not_measured_is_refused():
    with pytest.raises(ValueError, match="finite"):
        spread([1.0, float("nan")])

"""Vectors: length one, and the cosine as scikit-learn reckons it."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from sidejudge.scoring.evaluators.embedding import cosine, unit

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
PAIRS = st.integers(1, 20).flatmap(
    lambda size: st.tuples(*(st.lists(NUMBERS, min_size=size, max_size=size) for _ in range(2)))
)


def has_direction(vector):
    return max(map(abs, vector)) > 1e-3  # scikit-learn takes what is smaller than a rounding error for zero


@given(PAIRS)
def test_the_cosine_is_that_of_scikit_learn(pair):
    assume(all(map(has_direction, pair)))
    left, right = pair
    assert cosine(unit(left), unit(right)) == pytest.approx(cosine_similarity([left], [right])[0][0], abs=1e-9)


@given(PAIRS)
def test_the_cosine_is_symmetric_and_bounded(pair):
    assume(all(map(has_direction, pair)))
    left, right = map(unit, pair)
    assert cosine(left, right) == cosine(right, left)
    assert -1.0 <= cosine(left, right) <= 1.0
    assert cosine(left, left) == pytest.approx(1.0)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.floats(1e-200, 1e200))
def test_a_vector_s_length_does_not_matter(vector, factor):
    scaled = [value * factor for value in vector]
    assume(max(map(abs, scaled)) > 1e-250)
    assert math.hypot(*unit(scaled)) == pytest.approx(1.0)
    assert unit(scaled) == pytest.approx(unit(vector), abs=1e-6)


@pytest.mark.parametrize("vector", [(), (0.0, 0.0), (float("nan"), 1.0), (float("inf"), 1.0), (1.0, -float("inf"))])
def test_what_has_no_direction_is_refused(vector):
    with pytest.raises(ValueError, match="zero, empty or not finite"):
        unit(vector)


def test_vectors_of_two_models_are_not_compared():
    with pytest.raises(ValueError, match="vectors of 2 and of 3 dimensions"):
        cosine((1.0, 0.0), (1.0, 0.0, 0.0))

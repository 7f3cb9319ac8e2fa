"""The matching is a largest one, by scipy's opinion, and one to one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sidejudge.scoring.metrics.pairing import maximum_matching

GRIDS = st.integers(0, 9).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), max_size=9)
)


@settings(max_examples=150)
@given(GRIDS)
def test_it_matches_as_many_as_the_linear_sum_assignment(grid):
    edges = [[at for at, fits in enumerate(row) if fits] for row in grid]
    found = maximum_matching(edges)
    assert all(right in edges[left] for left, right in found.items())
    assert len(set(found.values())) == len(found)
    weights = np.array(grid, dtype=float).reshape(len(grid), len(grid[0]) if grid else 0)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    assert len(found) == sum(grid[row][column] for row, column in zip(rows, columns, strict=True))


def test_an_early_choice_is_given_up_for_a_larger_matching():
    assert maximum_matching([(0, 1), (0, 2), (0,)]) == {0: 1, 1: 2, 2: 0}


@pytest.mark.parametrize(("edges", "found"), [([], {}), ([()], {}), ([(), (3,)], {1: 3})])
def test_nothing_to_match_matches_nothing(edges, found):
    assert maximum_matching(edges) == found


def test_a_chain_of_thousands_of_changed_minds_needs_no_recursion():
    edges = [*((at, at + 1) for at in reversed(range(3000))), (0,)]
    assert len(maximum_matching(edges)) == 3001

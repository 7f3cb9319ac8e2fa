"""Paired tests: exact chances are those of all equally likely divisions, counted one by one."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.paired import changed_more, signed_ranks, symmetry


def ranks(sizes):
    return [sum(other < each for other in sizes) + (sum(other == each for other in sizes) + 1) / 2 for each in sizes]


def by_counting(differences):
    found = [each for each in differences if each]
    middle = ranks([abs(each) for each in found])
    total, above = sum(middle), sum(rank for rank, each in zip(middle, found, strict=True) if each > 0)
    least = min(above, total - above)
    sums = [sum(itertools.compress(middle, signs)) for signs in itertools.product((0, 1), repeat=len(found))]
    return min(1.0, 2 * sum(each <= least for each in sums) / len(sums))


@given(st.lists(st.integers(-3, 3).map(float), max_size=10))
def test_signed_ranks_are_those_of_all_divisions_of_the_signs(differences):
    assert signed_ranks(differences) == pytest.approx(by_counting(differences))


@given(st.integers(0, 30), st.integers(0, 30))
def test_for_a_yes_or_no_they_are_mcnemars_test(up, down):
    n, least = up + down, min(up, down)
    exact = min(1.0, 2 * sum(math.comb(n, k) for k in range(least + 1)) / 2**n)
    assert signed_ranks([1.0] * up + [-1.0] * down) == pytest.approx(exact)


def test_many_differences_come_close_to_the_exact_chance():
    chance = random.Random(2)
    differences = [chance.gauss(0.25, 1) for _ in range(80)]
    assert signed_ranks([*differences, 0.001]) == pytest.approx(signed_ranks(differences), rel=0.2)


def symmetry_by_counting(pairs):
    moved = [pair for pair in pairs if pair[0] != pair[1]]

    def statistic(given):
        kinds = {frozenset(pair) for pair in given}
        counts = [(given.count((a, b)), given.count((b, a))) for a, b in (sorted(kind) for kind in kinds)]
        return sum((i - j) ** 2 / (i + j) for i, j in counts)

    reached = statistic(moved)
    ways = [[pair if kept else pair[::-1] for pair, kept in zip(moved, signs, strict=True)]
            for signs in itertools.product((True, False), repeat=len(moved))]  # fmt: skip
    return sum(statistic(each) >= reached - 1e-9 for each in ways) / len(ways)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=8))
def test_symmetry_is_that_of_all_ways_to_turn_the_pairs_round(pairs):
    assert symmetry(pairs) == pytest.approx(symmetry_by_counting(pairs))


def test_a_change_that_nothing_has_caused_before_is_unlikely_and_one_that_was_usual_is_not():
    assert changed_more(0, 40, (6, 40)) == 1.0
    assert changed_more(20, 40, (6, 40)) < 0.001
    assert changed_more(20, 40, (40, 80)) > 0.3
    assert [changed_more(k, 40, (6, 40)) for k in range(41)] == sorted(
        (changed_more(k, 40, (6, 40)) for k in range(41)), reverse=True
    )

"""Scale error: how far grades lie too high, and how much of the scale they use, with intervals that cover the truth."""

from __future__ import annotations

import random

import numpy as np
import pytest
from statsmodels.stats.weightstats import DescrStatsW

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.agreement import bias, compression

RIGHT = [each / 4 for each in range(5)] * 8


def test_grades_that_are_right_have_no_error():
    pairs = [(each, each) for each in RIGHT]
    assert (bias(pairs).value, compression(pairs).value) == (0.0, pytest.approx(0.0))


@pytest.mark.parametrize("given", [0.0, 0.5, 1.0])
def test_grades_that_are_all_alike_are_wholly_compressed_whichever_they_are(given):
    pairs = [(each, given) for each in RIGHT]
    assert compression(pairs).value == pytest.approx(1.0)
    assert bias(pairs).value == pytest.approx(given - 0.5)


def test_grades_that_are_turned_round_are_more_than_compressed():
    assert compression([(each, 1 - each) for each in RIGHT]).value == pytest.approx(2.0)


def test_the_slope_is_that_of_numpy():
    chance = random.Random(3)
    pairs = [(each, 0.3 + 0.5 * each + chance.gauss(0, 0.1)) for each in RIGHT]
    slope, _ = np.polyfit(*zip(*pairs, strict=True), 1)
    assert compression(pairs).value == pytest.approx(1 - slope)


def test_intervals_of_few_grades_are_as_wide_as_students():
    given = [0.5, 0.6, 0.5, 0.8]
    low, high = DescrStatsW([each - 0.5 for each in given]).tconfint_mean()
    found = bias([(0.5, each) for each in given])
    assert (found.lower, found.upper) == pytest.approx((low, high), abs=1e-3)


def test_the_intervals_hold_the_truth_about_as_often_as_they_promise():
    chance = random.Random(4)
    held = {"bias": 0, "compression": 0}
    for _ in range(400):
        pairs = [(each, 0.1 + 0.8 * each + chance.gauss(0, 0.05 + 0.2 * each)) for each in RIGHT * 2]
        found = bias(pairs)
        held["bias"] += found.lower <= 0.0 <= found.upper
        found = compression(pairs)
        held["compression"] += found.lower <= 0.2 <= found.upper
    assert all(0.91 * 400 <= each <= 0.99 * 400 for each in held.values()), held


def test_what_cannot_be_known_is_unavailable():
    assert bias([]) == bias([(0.5, 0.5)]) == Unavailable("fewer than two grades")
    why = Unavailable("no two grades that should differ, of three or more")
    assert compression([]) == compression([(0.0, 0.0), (1.0, 1.0)]) == compression([(0.5, 0.1)] * 9) == why

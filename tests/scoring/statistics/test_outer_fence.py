"""The outer fence against its definition, and against what it is for."""

from __future__ import annotations

import math
import random
import sys

import pytest

from sidejudge.scoring.statistics.descriptive import outer_fence


def test_few_of_log_normal_values_lie_above_it():
    dice = random.Random(3)
    seen = [dice.lognormvariate(2, 0.8) for _ in range(100_000)]
    fence = outer_fence([(value, 1.0) for value in seen])
    assert sum(value > fence.limit for value in seen) / len(seen) == pytest.approx(1.4e-4, abs=1e-4)
    assert fence.median == pytest.approx(math.exp(2), rel=0.02)
    assert fence.n == 100_000


def test_values_that_are_all_alike_leave_room():
    fence = outer_fence([(10.0, 1.0)] * 5)
    assert fence.limit == pytest.approx(10 * 1.25**2.2)


def test_a_fifth_of_wild_values_does_not_move_it_far():
    plain = [(float(n), 1.0) for n in range(100, 200)]
    wild = [*plain[:80], *[(1e9, 1.0)] * 20]
    assert outer_fence(wild).limit < 2 * outer_fence(plain).limit


def test_a_value_counts_by_its_weight():
    assert outer_fence([(1.0, 99.0), (100.0, 1.0)]).median == 1.0
    assert outer_fence([(1.0, 1.0), (100.0, 99.0)]).median == 100.0


def test_quartiles_at_both_ends_of_what_a_float_holds_leave_nothing_outside():
    assert outer_fence([(1e-300, 1.0), (1e300, 1.0)] * 30).limit == pytest.approx(sys.float_info.max)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_logarithm_is_left_out(value):
    assert outer_fence([(value, 1.0)]) is None
    assert outer_fence([(value, 1.0), (3.0, 1.0)]).n == 1

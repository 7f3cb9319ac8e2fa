"""Differences of quantiles: they hold as often as promised, find what is there, and say where they cannot."""

from __future__ import annotations

import random

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Compared, Difference
from sidejudge.scoring.statistics.quantile import quantile_difference


def sides(rng: random.Random, n: int, factor: float = 1.0) -> list[Compared]:
    return [
        Compared(after=after, value=rng.lognormvariate(0.0, 0.8) * (factor if after else 1.0))
        for after in (False, True)
        for _ in range(n)
    ]


def test_equal_sides_are_seldom_found_to_differ_and_slower_ones_are():
    rng, found, noticed = random.Random(6), 0, 0
    for _ in range(40):
        alike, slower = (quantile_difference(sides(rng, 160, factor), 0.5) for factor in (1.0, 3.0))
        assert isinstance(alike, Difference)
        assert isinstance(slower, Difference)
        found += alike.is_worse(higher_is_better=False) or alike.is_worse()
        noticed += slower.is_worse(higher_is_better=False)
        assert slower.lower <= slower.difference <= slower.upper
    assert found <= 2
    assert noticed >= 36


def test_too_few_values_and_an_empty_side_have_no_difference():
    rng = random.Random(6)
    few = quantile_difference(sides(rng, 30), 0.95)
    assert isinstance(few, Unavailable)
    assert "too few" in few.reason
    alone = quantile_difference([each for each in sides(rng, 30) if each.after], 0.5)
    assert isinstance(alone, Unavailable)
    assert "before" in alone.reason

"""Quantile difference: how far a quantile of two sides lies apart, with an interval that holds at any look.

Each side has its bounds (``quantile``), at half of the error; the difference lies between the lower bound of one and
the upper bound of the other (Bonferroni). That is wider than need be and assumes nothing: of the difference of
quantiles of weighted clusters no tighter interval is known that holds at any look. Strata are not compared apart: a
quantile of a mix is not a mean of quantiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sidejudge.scoring.result.result import Unavailable

from .comparison import Compared, ComparedSide, Difference
from .quantile import Measured, QuantileEstimate, quantile

_SIDES: Final = ((False, "before"), (True, "after"))


def quantile_difference(values: Iterable[Compared], q: float, *, error: float = 0.05) -> Difference | Unavailable:
    """The quantile after minus that before, or why there is none: too few values bound it.

    Args:
        values: Both sides, in any order.
        q: The share of the traffic that does not exceed the quantile, in (0, 1).
        error: The chance in (0, 1) that the interval is ever wrong.
    """
    rows = list(values)
    largest = max((row.weight for row in rows), default=0.0)
    found: list[tuple[QuantileEstimate, float, float]] = []
    clusters: list[int] = []
    for after, name in _SIDES:
        side = [Measured(row.value, row.weight, row.cluster) for row in rows if row.after is after]
        known = quantile(side, q, error=error / 2, largest=largest)
        if known is None:
            return Unavailable(f"there is nothing on the side {name}")
        if known.lower is None or known.upper is None:
            return Unavailable(f"{known.n} values {name} are too few to bound this percentile on both sides")
        found.append((known, known.lower, known.upper))
        named = {row.cluster for row in side if row.cluster is not None}
        clusters.append(len(named) + sum(row.cluster is None for row in side))
    (before, low, high), (after_, later_low, later_high) = found
    sides = [
        ComparedSide(n=known.n, clusters=count, mean=known.value, raw_mean=known.value)
        for known, count in zip((before, after_), clusters, strict=True)
    ]
    return Difference(
        before=sides[0], after=sides[1], difference=after_.value - before.value, lower=later_low - high,
        upper=later_high - low, error=error, standard_error=None, strata=1, compared=1.0,
    )  # fmt: skip

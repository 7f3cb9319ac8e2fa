"""Quantile: the value that a share q of traffic does not exceed, from a sample, with bounds that hold at any look.

A quantile is bounded by inverting the question (Woodruff 1952, "Confidence intervals for medians and other position
measures", JASA 47:635–646, doi:10.1080/01621459.1952.10483443): the quantile is x or more where the share of values
below x is convincingly below q, and x or less where the share above x is convincingly below 1 - q. Shares are means of
ones and zeros, so the evidence is that of ``betting``: it knows weights and clusters, assumes no distribution and holds
whenever one looks (as Howard and Ramdas 2022, "Sequential estimation of quantiles", Bernoulli 28:1704–1728,
doi:10.3150/21-BEJ1388).

That is why unbounded quantities (latency, cost, tokens) are watched by quantiles: no interval of their mean exists that
holds without assumptions, since one rare value may move the mean by any amount (Bahadur and Savage 1956,
doi:10.1214/aoms/1177728077). All values of a window are held, so that quantiles of the sample are exact: a sketch would
add an error, and memory is bounded already.

>>> found = quantile([Measured(float(i % 100), 1.0, None) for i in range(1000)], 0.5)
>>> found.value, found.lower < 49 < found.upper
(49.0, True)

*Difference* of a quantile between two sides, with an interval that holds at any look. Each side has its bounds
(``quantile``), at half of the error; the difference lies between the lower bound of one and the upper bound of the
other (Bonferroni). That is wider than necessary and assumes nothing: for the difference of quantiles of weighted
clusters no tighter interval is known that holds at any look. Strata are not compared apart: a quantile of a mix is not
a mean of quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sidejudge.scoring.result.result import Unavailable

from .betting import Gamblers, evidence_below
from .comparison import Compared, ComparedSide, Difference
from .estimate import check_weight


class Measured(NamedTuple):
    """A finite value in its unit of something drawn with probability 1/``weight``; ``cluster``: its group."""

    value: float
    weight: float
    cluster: str | None


@dataclass(frozen=True, slots=True)
class QuantileEstimate:
    """The quantile of ``n`` values with its bounds, in their unit; a bound is None where it is undetermined."""

    value: float
    lower: float | None
    upper: float | None
    n: int


def quantile(
    values: Iterable[Measured], q: float, *, error: float = 0.05, largest: float = 0.0
) -> QuantileEstimate | None:
    """The quantile; None without values.

    Args:
        values: With weights above 0.
        q: The share of the traffic that does not exceed it, in (0, 1).
        error: The chance that either bound is ever wrong.
        largest: The largest possible weight; 0: the largest of these.
    """
    if not 0 < q < 1:
        raise ValueError(f"the share of a quantile lies in (0, 1), got {q}")
    rows = sorted(values, key=lambda row: (row.value, row.weight, row.cluster or ""))  # not every one has a cluster
    for row in rows:
        check_weight(row.weight)
        if not math.isfinite(row.value):
            raise ValueError("a quantile needs finite values; leave out what was not measured")
    if not rows:
        return None
    known = sorted({row.value for row in rows})
    gamblers = Gamblers(((row.weight, row.cluster) for row in rows), largest=largest)
    # Fewer than q are below x: the quantile is x or more. Fewer than 1 - q are above x: it is x or less. Values that
    # are equal bound it, too: grades have few different ones.
    lower = _last(known, lambda x: evidence_below(gamblers.bets(r.value < x for r in rows), q) >= 2 / error)
    upper = _last(known[::-1], lambda x: evidence_below(gamblers.bets(r.value > x for r in rows), 1 - q) >= 2 / error)
    return QuantileEstimate(_point(rows, q), lower, upper, len(rows))


def _point(rows: Sequence[Measured], q: float) -> float:
    wanted = q * math.fsum(row.weight for row in rows)
    reached = 0.0
    for row in rows:
        reached += row.weight
        if reached >= wanted * (1 - 1e-12):
            return row.value
    return rows[-1].value


def _last(known: Sequence[float], convincing: Callable[[float], bool]) -> float | None:
    """The last convincing value in this order; all before it are convincing too."""
    low, high = 0, len(known)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if convincing(known[middle]) else (low, middle)
    return known[low - 1] if low else None


_SIDES: Final = ((False, "before"), (True, "after"))


def quantile_difference(values: Iterable[Compared], q: float, *, error: float = 0.05) -> Difference | Unavailable:
    """The quantile after minus the quantile before, or why there is none: too few values bound it.

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

"""Descriptive figures of a few values: spread, percentiles, and the outer fence.

*Spread*: mean and sample standard deviation of a few values, such as one figure over the repeats of a run. The
deviation divides by n − 1 (ddof 1): the runs are a sample of the runs that might have been.

>>> spread([2.0, 4.0, 6.0])
MeanAndDeviation(n=3, mean=4.0, sd=2.0)

*Percentile* by linear interpolation between the two nearest ranks (rubrics §11; seed 002's p50 and p95).

With the n values sorted as x₀ … xₙ₋₁ and the rank r = q · (n − 1)::

    percentile = x⌊r⌋ + (r − ⌊r⌋) · (x⌊r⌋₊₁ − x⌊r⌋)

Definition 7 of Hyndman and Fan 1996, doi:10.1080/00031305.1996.10473566; the default of numpy, R and spreadsheets.

>>> percentile([100.0, 200.0, 300.0, 400.0], 0.95)
385.0

With weights a value stands in that order as often as its weight is a multiple of the smallest, fractions included:

>>> percentile([100.0, 200.0], 0.5, [1.0, 3.0]), percentile([100.0, 200.0, 200.0, 200.0], 0.5)
(200.0, 200.0)

*Outer fence*: the value above which an observation is far outside the usual. Costs, tokens and durations are skewed to
the right, so the fence is Tukey's, on logarithms::

    fence = exp(Q3 + 2.2 · max(Q3 − Q1, ln 1.25))

2.2 is the multiplier of Hoaglin and Iglewicz 1987, doi:10.1080/01621459.1987.10478551: of log-normal values 0.014 % lie
above. The least spread keeps a service with nearly equal runs from an alarm at a third more. Quartiles are weighted.
They are robust, unlike a mean and a deviation: outliers hardly move the fence.

>>> round(outer_fence([(100.0, 1.0)] * 60).limit, 1)
163.4
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class MeanAndDeviation:
    """``mean`` and ``sd`` of ``n`` values, in their unit."""

    n: int
    mean: float
    sd: float


def spread(values: Sequence[float]) -> MeanAndDeviation | None:
    """The spread of finite values; ``None`` for fewer than two, because one value does not vary."""
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a spread needs finite values; leave out what was not measured")
    n = len(values)
    if n < 2:
        return None
    mean = min(max(math.fsum(values) / n, min(values)), max(values))
    away = [value - mean for value in values]
    largest = max(map(abs, away))
    if largest == 0:
        return MeanAndDeviation(n, mean, 0.0)
    # Scaled, so that no square overflows or vanishes.
    return MeanAndDeviation(n, mean, largest * math.sqrt(math.fsum((each / largest) ** 2 for each in away) / (n - 1)))


def percentile(values: Iterable[float], q: float, weights: Sequence[float] | None = None) -> float | None:
    """The value below which the share ``q`` (in [0, 1]) of the values lies, in their unit; ``None`` without values.

    ``weights``: one above 0 for each value, in their order; without them all weigh the same.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"the share of a percentile lies in [0, 1], got {q}")
    given = list(values)
    if not all(map(math.isfinite, given)):
        raise ValueError("a percentile needs finite values; leave out what was not measured")
    if not given:
        return None
    if weights is not None and min(weights) != max(weights):
        return _weighed_percentile(sorted(zip(given, weights, strict=True)), q)
    ordered = sorted(given)
    rank = q * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    share = rank - below
    # The weighted form cannot overflow; the bounds keep rounding inside the two neighbours.
    value = ordered[below] * (1 - share) + ordered[above] * share
    return min(max(value, ordered[below]), ordered[above])


def _weighed_percentile(values: Sequence[tuple[float, float]], q: float) -> float:
    """As ``percentile``, of pairs of a value and its weight, in ascending order."""
    least = min(weight for _, weight in values)
    ends = list(accumulate(weight / least for _, weight in values))
    rank = q * (ends[-1] - 1)
    at = min(bisect_right(ends, rank), len(values) - 1)
    share = rank - (ends[at] - 1)
    below, above = values[at][0], values[min(at + 1, len(values) - 1)][0]
    return below if share <= 0 else min(max(below * (1 - share) + above * share, below), above)


def p50(values: Iterable[float], weights: Sequence[float] | None = None) -> float | None:
    """The median, by linear interpolation; ``None`` without values."""
    return percentile(values, 0.50, weights)


def p95(values: Iterable[float], weights: Sequence[float] | None = None) -> float | None:
    """The 95th percentile, by linear interpolation; ``None`` without values."""
    return percentile(values, 0.95, weights)


_MULTIPLIER: Final = 2.2
_LEAST_SPREAD: Final = math.log(1.25)
_MOST_LOG: Final = 709.0
"""The largest power that a float holds."""


class Fence(NamedTuple):
    """``median`` and ``limit`` in the unit of the values; ``n`` is their number."""

    median: float
    limit: float
    n: int


def outer_fence(values: Sequence[tuple[float, float]]) -> Fence | None:
    """The fence of (value, weight) pairs; None without any.

    Args:
        values: Values above 0 with weights above 0 (the inverse of an inclusion probability). Others are left out.
    """
    known = sorted((value, weight) for value, weight in values if 0 < value < math.inf and 0 < weight < math.inf)
    if not known:
        return None
    ranks = list(accumulate(weight for _, weight in known))
    first, median, third = (known[bisect_left(ranks, q * ranks[-1])][0] for q in (0.25, 0.5, 0.75))
    spread = max(math.log(third) - math.log(first), _LEAST_SPREAD)
    most = sys.float_info.max / third  # where quartiles are that far apart, nothing is outside
    return Fence(median=median, limit=third * min(most, math.exp(min(_MULTIPLIER * spread, _MOST_LOG))), n=len(known))

"""Mean: the weighted mean of a metric over all traffic, derived from a sample, with its bounds.

With weights w = 1/probability (Hájek's mean; its linearised variance, Särndal, Swensson and Wretman 1992, §5.7)::

    mean = Σ w·x / Σ w            se² = n / (n − 1) · Σ w²·(x − mean)² / (Σ w)²            bounds = mean ± z·se

The bounds rest on the central limit theorem: they are for dozens of values, not for a few. Where all values are equal
they coincide with the mean and do not bound other values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .estimate import check_weight, effective_n, kish
from .exact_sums import UNIT, ExactSum
from .interval import Z_95_ONE_SIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """``mean`` of ``n`` values and its bounds, in their unit; each bound holds on its own with the chance of ``z``."""

    n: int
    effective_n: float
    mean: float
    lower: float
    upper: float
    z: float = Z_95_ONE_SIDED


def mean_estimate(values: Iterable[tuple[float, float]], *, z: float = Z_95_ONE_SIDED) -> MeanEstimate | None:
    """The estimate of (value, weight) pairs; ``None`` of fewer than two, for one value does not vary."""
    pairs = list(values)
    for _, weight in pairs:
        check_weight(weight)
    size = effective_n(weight for _, weight in pairs)
    if len(pairs) < 2 or size is None:
        return None
    whole = math.fsum(weight for _, weight in pairs)
    mean = math.fsum(value * (weight / whole) for value, weight in pairs)
    spread = math.fsum(((weight / whole) * (value - mean)) ** 2 for value, weight in pairs)
    margin = z * math.sqrt(spread * len(pairs) / (len(pairs) - 1))
    return MeanEstimate(n=len(pairs), effective_n=size, mean=mean, lower=mean - margin, upper=mean + margin, z=z)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanSums:
    """Sums over ``n`` values x of weight w: of w, w², w·x, w²·x and w²·x²."""

    n: int
    weight: ExactSum
    squared_weight: ExactSum
    product: ExactSum
    squared_product: ExactSum
    squared_square: ExactSum


def mean_from_sums(sums: MeanSums) -> MeanEstimate | None:
    """The same estimate from exact sums, in whole numbers, so that nothing cancels; ``None`` of fewer than two."""
    if sums.n < 2:
        return None
    w, p, q = sums.weight.units, sums.product.units, sums.squared_product.units
    apart = sums.squared_square.units * w * w - 2 * p * q * w + p * p * sums.squared_weight.units
    spread = max(0, apart) * UNIT / w**4
    mean, margin = p / w, Z_95_ONE_SIDED * math.sqrt(spread * sums.n / (sums.n - 1))
    return MeanEstimate(
        n=sums.n, effective_n=kish(sums.n, sums.weight.value, sums.squared_weight.value), mean=mean,
        lower=mean - margin, upper=mean + margin,
    )  # fmt: skip

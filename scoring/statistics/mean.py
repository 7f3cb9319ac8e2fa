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

from .estimate import check_weight, effective_n
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

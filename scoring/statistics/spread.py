"""Spread: mean and sample standard deviation of a few values, such as one figure over the repeats of a run.

The deviation divides by n − 1 (ddof 1): the runs are a sample of the runs that might have been.

>>> spread([2.0, 4.0, 6.0])
MeanAndDeviation(n=3, mean=4.0, sd=2.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeanAndDeviation:
    """``mean`` and ``sd`` of ``n`` values, in their unit."""

    n: int
    mean: float
    sd: float


def spread(values: Sequence[float]) -> MeanAndDeviation | None:
    """The spread of finite values; ``None`` of fewer than two, for one value does not vary."""
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

"""Percentile by linear interpolation between the two nearest ranks (rubrics §11; seed 002's p50 and p95).

With the n values sorted as x₀ … xₙ₋₁ and the rank r = q · (n − 1)::

    percentile = x⌊r⌋ + (r − ⌊r⌋) · (x⌊r⌋₊₁ − x⌊r⌋)

Definition 7 of Hyndman and Fan 1996, doi:10.1080/00031305.1996.10473566; the default of numpy, R and spreadsheets.

>>> percentile([100.0, 200.0, 300.0, 400.0], 0.95)
385.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def percentile(values: Iterable[float], q: float) -> float | None:
    """The value below which the share ``q`` (in [0, 1]) of the values lies, in their unit; ``None`` without values."""
    if not 0 <= q <= 1:
        raise ValueError(f"the share of a percentile lies in [0, 1], got {q}")
    ordered = sorted(values)
    if not all(math.isfinite(value) for value in ordered):
        raise ValueError("a percentile needs finite values; leave out what was not measured")
    if not ordered:
        return None
    rank = q * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    share = rank - below
    # The weighted form cannot overflow; the bounds keep rounding inside the two neighbours.
    value = ordered[below] * (1 - share) + ordered[above] * share
    return min(max(value, ordered[below]), ordered[above])


def p50(values: Iterable[float]) -> float | None:
    """The median, by linear interpolation; ``None`` without values."""
    return percentile(values, 0.50)


def p95(values: Iterable[float]) -> float | None:
    """The 95th percentile, by linear interpolation; ``None`` without values."""
    return percentile(values, 0.95)

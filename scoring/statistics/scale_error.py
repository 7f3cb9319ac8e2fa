"""Scale error: grades beside the right ones in, how far they lie too high, and how much of the scale they use, out.

With the right grades x and those given y, of n pairs::

    bias = mean(y − x)                      compression = 1 − Σ (x − x̄)(y − ȳ) / Σ (x − x̄)²

Bias above 0 is lenience. Compression is 0 where grades differ as much as they should, 1 where they are all alike (a
judge that always gives the middle), and above 1 where better things get worse grades. It is 1 less the slope of the
regression line; its error is White's, for the spread of y is not the same everywhere (White 1980,
doi:10.2307/1912934). Intervals are the value ± 1.96 standard errors: of large samples, and of pairs that do not depend
on each other.

>>> always_the_middle = [(0.0, 0.5), (0.5, 0.5), (1.0, 0.5)]
>>> compression(always_the_middle).value, bias(always_the_middle).value
(1.0, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sidejudge.scoring.result.result import Unavailable

from .interval import Z_95_TWO_SIDED

Pairs: TypeAlias = Sequence[tuple[float, float]]
"""(right, given), in the unit of the scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleError:
    """``value`` of ``n`` pairs with its two-sided 95 % interval, in the unit of the pairs (of compression: none)."""

    value: float
    lower: float
    upper: float
    n: int


def bias(pairs: Pairs) -> ScaleError | Unavailable:
    """How far the given grades lie above the right ones on average; undefined for fewer than two pairs."""
    n = len(pairs)
    if n < 2:
        return Unavailable("fewer than two grades")
    differences = [given - right for right, given in pairs]
    mean = math.fsum(differences) / n
    variance = math.fsum((each - mean) ** 2 for each in differences) / (n - 1)
    return _around(mean, math.sqrt(variance / n), n)


def compression(pairs: Pairs) -> ScaleError | Unavailable:
    """How much less the given grades differ than they should; undefined where the right ones are all alike."""
    n = len(pairs)
    middle_x, middle_y = (math.fsum(each) / n for each in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    spread = math.fsum((x - middle_x) ** 2 for x, _ in pairs)
    if n < 3 or spread < 1e-12:
        return Unavailable("no two grades that should differ, of three or more")
    slope = math.fsum((x - middle_x) * (y - middle_y) for x, y in pairs) / spread
    left = [(x - middle_x) * (y - middle_y - slope * (x - middle_x)) for x, y in pairs]
    return _around(1 - slope, math.sqrt(math.fsum(each * each for each in left)) / spread, n)


def _around(value: float, error: float, n: int) -> ScaleError:
    margin = Z_95_TWO_SIDED * error
    return ScaleError(value=value, lower=value - margin, upper=value + margin, n=n)

"""Outer fence: the value above which an observation is far outside what is usual.

Costs, tokens and durations are skewed to the right, so the fence is Tukey's, on logarithms::

    fence = exp(Q3 + 2.2 · max(Q3 − Q1, ln 1.25))

2.2 is the multiplier of Hoaglin and Iglewicz 1987, doi:10.1080/01621459.1987.10478551: of log-normal values 0.014 % lie
above. The least spread keeps a service whose runs are all alike from an alarm at a third more. Quartiles are weighted,
and half of the values may be anything without moving the fence far: they are robust, a mean and a deviation are not.

>>> round(outer_fence([(100.0, 1.0)] * 60).limit, 1)
163.4
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

_MULTIPLIER: Final = 2.2
_LEAST_SPREAD: Final = math.log(1.25)


class Fence(NamedTuple):
    """``median`` and ``limit`` in the unit of the values; ``n`` is how many there were."""

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
    return Fence(median=median, limit=third * math.exp(_MULTIPLIER * spread), n=len(known))

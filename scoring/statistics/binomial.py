"""Binomial: how many hits among independent trials show that hits are rarer than a given share.

Source: the exact bound of Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404, one-sided. It never covers less than
it promises, at any size.

>>> least_trials(0.01), most_hits(299, 0.01), most_hits(298, 0.01), most_hits(473, 0.01)
(299, 0, None, 1)
"""

from __future__ import annotations

import math
from typing import Final

_ALPHA: Final = 0.05


def at_most(k: int, n: int, p: float) -> float:
    """The chance of ``k`` hits or fewer in ``n`` trials, each a hit with the chance ``p``."""
    if k >= n or p <= 0:
        return 1.0
    if k < 0 or p >= 1:
        return 0.0
    whole = math.lgamma(n + 1)
    hit, miss = math.log(p), math.log1p(-p)
    logs = (whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * hit + (n - i) * miss for i in range(k + 1))
    return min(1.0, math.fsum(map(math.exp, logs)))


def most_hits(n: int, share: float) -> int | None:
    """The most hits in ``n`` trials that still show with 95 % that the share of hits is at most ``share``.

    None where not even none does.
    """
    k = -1
    while k < n and at_most(k + 1, n, share) <= _ALPHA:
        k += 1
    return None if k < 0 else k


def least_trials(share: float, rate: float = 0.0) -> int | None:
    """The fewest trials that show with 95 % that the share is at most ``share``, where ``rate`` of them are hits.

    None where no number does: hits are as frequent as that, or none are allowed at all.
    """
    if not rate < share:
        return None
    n = 1
    while at_most(math.ceil(rate * n), n, share) > _ALPHA:
        n *= 2
    low, high = n // 2, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at_most(math.ceil(rate * middle), middle, share) <= _ALPHA else (middle, high)
    return high

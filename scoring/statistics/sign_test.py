"""Sign test: paired outcomes that differ in, the chance of so uneven a split out.

Pairs that are equal say nothing about a direction and are left out (McNemar's test in its exact form; Agresti,
*Categorical Data Analysis*, 11.1).
"""

from __future__ import annotations

from math import comb


def sign_test(worse: int, better: int) -> float:
    """The one-sided exact p-value: the chance of at least ``worse`` of all differing pairs, were both equally likely.

    1 where no pair differs.

    >>> sign_test(5, 0)
    0.03125
    """
    n = worse + better
    return float(sum(comb(n, k) for k in range(worse, n + 1)) / 2**n)

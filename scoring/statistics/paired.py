"""Paired tests: items judged twice come in, the chance of at least this much movement in one direction goes out.

*Numbers* (a yes as 1): the signed-rank test in its exact form. The non-zero differences are ranked by their size, ties
share the middle rank, and all signs are equally likely where nothing moved (Wilcoxon 1945, doi:10.2307/3001968; Pratt
1959 on ties). Where all differences have one size it is the sign test, which for a yes or no is McNemar's in its
exact form (McNemar 1947, doi:10.1007/BF02295996).

*Categories*: Bowker's test of symmetry in its exact form. Under symmetry as many items move from i to j as back, each
pair of categories with its own fair coin (Bowker 1948, doi:10.1080/01621459.1948.10483284)::

    Σ (n_ij − n_ji)² / (n_ij + n_ji)        over pairs of categories; n_ij items moved from i to j

Both are distributions over a few hundred values, computed item by item: no sample is too small for them.

*Sign test*: differing paired outcomes come in, the chance of a split at least this uneven goes out. Equal pairs carry
no information on a direction and are left out (McNemar's test in its exact form; Agresti, *Categorical Data Analysis*,
11.1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

_MOST_EXACT = 80
"""Differences above which the normal approximation of the ranks is used: the exact work grows with their cube."""
_SAME = 1e-9


def signed_ranks(differences: Sequence[float]) -> float:
    """The two-sided p-value of no movement; 1 where nothing differs.

    >>> signed_ranks([1.0] * 5)
    0.0625
    """
    found = sorted((each for each in differences if each), key=abs)
    n = len(found)
    ranks: list[int] = []  # doubled, so that shared ones are whole
    begin = 0
    while begin < n:
        end = begin
        while end < n and abs(found[end]) - abs(found[begin]) <= _SAME * abs(found[begin]):
            end += 1
        ranks += [begin + end + 1] * (end - begin)
        begin = end
    total = sum(ranks)
    above = sum(rank for rank, each in zip(ranks, found, strict=True) if each > 0)
    least = min(above, total - above)
    if n > _MOST_EXACT:
        deviation = math.sqrt(sum(rank * rank for rank in ranks)) / 2
        return min(1.0, math.erfc((total / 2 - least) / deviation / math.sqrt(2)))
    ways = [1] + [0] * total
    for rank in ranks:
        for reached in range(total, rank - 1, -1):
            ways[reached] += ways[reached - rank]
    return float(min(1.0, 2 * sum(ways[: least + 1]) / 2**n))


def symmetry(pairs: Iterable[tuple[Hashable, Hashable]]) -> float:
    """The p-value of symmetry of (before, now); 1 where nothing differs.

    >>> symmetry([("a", "b")] * 5)
    0.0625
    """
    moved = Counter(pair for pair in pairs if pair[0] != pair[1])
    between = {frozenset(pair): (moved[pair], moved[pair[1], pair[0]]) for pair in moved}
    reached = math.fsum((i - j) ** 2 / (i + j) for i, j in between.values())
    sums: Counter[float] = Counter({0.0: 1.0})
    for i, j in between.values():
        n = i + j
        added: Counter[float] = Counter()
        for k in range(n + 1):
            step, chance = (2 * k - n) ** 2 / n, math.comb(n, k) / 2**n
            for value, weight in sums.items():
                added[round(value + step, 9)] += weight * chance
        sums = added
    return min(1.0, math.fsum(weight for value, weight in sums.items() if value >= reached - 1e-6))


def changed_more(changed: int, n: int, before: tuple[float, float]) -> float:
    """The chance that at least this many of ``n`` items change again if they change no more often than before.

    ``before`` is (changed, all) while nothing had happened, prior counts included. The rate is not known exactly, so
    that the chance comes from the beta-binomial distribution, which is wider than the binomial one.

    >>> round(changed_more(20, 40, (10, 50)), 4)
    0.0016
    """
    if not changed:
        return 1.0
    a, b = before[0], before[1] - before[0]

    def chance(k: int) -> float:
        return math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + math.lgamma(k + a) + math.lgamma(n - k + b) - math.lgamma(n + a + b)
            + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        )  # fmt: skip

    return min(1.0, math.fsum(chance(k) for k in range(changed, n + 1)))


def sign_test(worse: int, better: int) -> float:
    """The one-sided exact p-value: the chance of at least ``worse`` of all differing pairs if both are equally likely.

    1 where no pair differs.

    >>> sign_test(5, 0)
    0.03125
    """
    n = worse + better
    return float(sum(math.comb(n, k) for k in range(worse, n + 1)) / 2**n)

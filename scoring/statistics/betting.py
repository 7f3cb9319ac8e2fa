"""Betting: bounds on the mean of values between 0 and 1 that assume nothing of their distribution and hold at any look.

Against "the mean is at least m" one bets on values below m. With a stake f in (0, 1) and a share v of the largest
weight, the wealth after a value y changes by the factor::

    1 + f·v·(m − y) / (1 − m)

Its expectation is at most 1 while the mean is at least m, so wealth that reaches 1/error is evidence (Ville 1939), and
m is an upper bound once it does. ``STAKES`` share the wealth equally. The lower bound is that of 1 − y. Source:
Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86(1):1–27,
doi:10.1093/jrsssb/qkad009.

*Weights* are 1/probability, so that the bets are on the traffic's mean: E[v·(m − y)] ≤ 0. A share needs a largest
weight that does not depend on the draw: where a rule keeps poor values, a sample without a good value has no large
weight, and would be too sure. So callers give the service's largest weight so far, as ``evidence.Scale`` does.
*Clusters* (a session, a user) are one bet each, on their total, so that nothing is assumed about their members. After
``LARGEST`` values a cluster counts as a new one. Compared with a normal approximation the interval is 1.5 to 1.9 times
as wide; it never covers less than it promises, while the approximation covers 60 % when sessions agree.

The same bets bound quantiles, because the share of values up to x is a mean (``quantile``).

>>> low, high = mean_bounds([Sampled(0.5 + 0.1 * (i % 3), 1.0, None) for i in range(300)])
>>> low < 0.6 < high < 0.63
True
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from .design_effect import LARGEST
from .estimate import check_weight

STAKES: Final = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.9)
_MOST: Final = 4_000
"""Most bets: of more clusters several share one, which costs little and bounds the work."""
_STEPS: Final = 14
"""Halvings of the interval from 0 to 1: bounds are at most 0.0001 wider than the exact ones."""
_DIGITS: Final = 3
"""Decimals of values and shares, rounded towards a wider interval, so that similar bets become one."""


class Sampled(NamedTuple):
    """A value in [0, 1] of something drawn with probability 1/``weight``; ``cluster`` is its group."""

    value: float
    weight: float
    cluster: str | None


Bets: TypeAlias = Sequence[tuple[float, float, int]]
"""Share of the largest weight, mean value, and how many such bets there are."""


class Gamblers:
    """Groups of draws that bet together: the clusters, in order. One grouping serves any values of the same draws.

    ``drawn`` are weights and clusters, ``largest`` is the largest possible weight; 0: the largest of these.
    """

    def __init__(self, drawn: Iterable[tuple[float, str | None]], *, largest: float = 0.0) -> None:
        self._largest = largest
        rows = list(drawn)
        numbers: dict[object, int] = {}
        sizes: Counter[str] = Counter()
        places = []
        for place, (weight, cluster) in enumerate(rows):
            check_weight(weight)
            name: object = place if cluster is None else (cluster, sizes[cluster] // LARGEST)
            if cluster is not None:
                sizes[cluster] += 1
            places.append(numbers.setdefault(name, len(numbers)))
        each = max(1, math.ceil(len(numbers) / _MOST))
        self._places = [place // each for place in places]
        self._drawn = [weight for weight, _ in rows]
        self._weights = [0.0] * (max(self._places, default=-1) + 1)
        for place, weight in zip(self._places, self._drawn, strict=True):
            self._weights[place] += weight

    def bets(self, values: Iterable[float]) -> Bets:
        """One bet for each cluster. Values are rounded up, so that evidence of low values stays true."""
        totals = [0.0] * len(self._weights)
        for place, weight, value in zip(self._places, self._drawn, values, strict=True):
            totals[place] += weight * value
        largest, scale = max([self._largest, *self._weights]), 10**_DIGITS
        counted = Counter(
            # Six more decimals first: 0.7 that was multiplied by a weight and divided by it is 0.7.
            (weight / largest, min(1.0, math.ceil(round(total / weight * scale, 6)) / scale))
            for weight, total in zip(self._weights, totals, strict=True)
        )
        return [(share, mean, count) for (share, mean), count in counted.items()]


def evidence_below(made: Bets, level: float) -> float:
    """The wealth from bets that the mean is below a level in (0, 1): convincing from 1/error on."""
    logs = []
    for stake in STAKES:
        odds = stake / (1 - level)
        logs.append(math.fsum(count * math.log1p(odds * share * (level - mean)) for share, mean, count in made))
    highest = max(logs)
    return math.exp(min(700.0, highest)) * math.fsum(math.exp(each - highest) for each in logs) / len(STAKES)


def mean_bounds(values: Iterable[Sampled], *, error: float = 0.05, largest: float = 0.0) -> tuple[float, float]:
    """The interval of the mean that holds with 1 − ``error`` at any look; (0, 1) without values.

    ``largest`` is the largest possible weight; 0: the largest of these.
    """
    rows = list(values)
    if not rows:
        return 0.0, 1.0
    gamblers = Gamblers(((row.weight, row.cluster) for row in rows), largest=largest)
    upper = _upper(gamblers.bets(row.value for row in rows), error / 2)
    lower = 1 - _upper(gamblers.bets(1 - row.value for row in rows), error / 2)
    return lower, upper


def _upper(made: Bets, error: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if evidence_below(made, middle) >= 1 / error else (middle, high)
    return high

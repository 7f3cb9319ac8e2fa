"""Interval: the range of the true ratio around the ratio of a sample.

Wilson's score interval, in the count form that the Prometheus rules use too, so that dashboard, status and alert
agree. With k successes among n trials and the normal quantile z::

    (k + z²/2 ± z · sqrt(k · (n − k) / n + z²/4)) / (n + z²)

Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22:209–212,
doi:10.1080/01621459.1927.10502953. Recommended over the normal approximation for small n by Brown, Cai and
DasGupta 2001, doi:10.1214/ss/1009213286.

>>> interval = wilson(8, 10, Z_95_TWO_SIDED)
>>> round(interval.lower, 4), round(interval.upper, 4)
(0.4902, 0.9433)

*Missing*: the range of the pass ratio if the missing verdicts had been reached. An incomplete verdict neither passes
nor fails. Leaving it out assumes that it is like the others, which is unknown. So the estimate is shown with the two
extremes, that all of them fail or all pass (Manski 1990's worst-case bounds)::

    worst = Σ w·passed / (Σ w + Σ w missing)        best = (Σ w·passed + Σ w missing) / (Σ w + Σ w missing)

>>> missing_band(weight=90.0, failed_weight=9.0, missing_weight=10.0)
MissingBand(worst=0.81, best=0.91)

*Binomial*: the number of hits among independent trials that shows that hits are rarer than a given share. Source: the
exact bound of Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404, one-sided. It never covers less than it promises,
at any size.

>>> least_trials(0.01), most_hits(299, 0.01), most_hits(298, 0.01), most_hits(473, 0.01)
(299, 0, None, 1)
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

Z_95_ONE_SIDED = 1.6448536269514722
"""Standard normal quantile of 0.95: each bound on its own holds with 95 %, the pair with 90 %."""
Z_95_TWO_SIDED = 1.959963984540054
"""Standard normal quantile of 0.975: the pair of bounds holds with 95 %."""
Z_99_ONE_SIDED = 2.3263478740408408
"""Standard normal quantile of 0.99: each bound on its own holds with 99 %."""


LEAST_CORRECTED: Final = 0.3
"""With fewer effective successes (or failures) there is no correction for continuity: it would narrow the interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a ratio, 0 <= lower <= upper <= 1."""

    lower: float
    upper: float


def wilson(successes: float, n: float, z: float) -> Interval | None:
    """Wilson's score interval of ``successes`` among ``n`` trials; ``z`` is the normal quantile of each bound.

    Both counts may be fractions, as an effective sample size or a counter's extrapolated increase is. Undefined
    (``None``) without trials. Raises ``ValueError`` for impossible counts.
    """
    if not (math.isfinite(n) and math.isfinite(successes) and math.isfinite(z)):
        raise ValueError(f"a Wilson interval needs finite numbers, got successes={successes}, n={n}, z={z}")
    if n < 0 or z < 0 or not 0 <= successes <= n:
        raise ValueError(f"a Wilson interval needs 0 <= successes <= n and z >= 0, got {successes}, {n}, {z}")
    if n == 0:
        return None
    squared = z * z
    centre = successes + squared / 2
    margin = z * math.sqrt(successes * (n - successes) / n + squared / 4)
    # At k = 0 and k = n one bound is exactly 0 or 1; arithmetic would miss it by the last digit.
    lower = 0.0 if successes == 0 else max(0.0, (centre - margin) / (n + squared))
    upper = 1.0 if successes == n else min(1.0, (centre + margin) / (n + squared))
    return Interval(lower, max(lower, upper))


def wilson_pair(successes: float, n: float, z: float = Z_95_TWO_SIDED) -> Interval | None:
    """Wilson's interval with the correction for continuity, for people: it never covers less than it promises.

    Without the correction the pair covers 95 % on average, and 85 to 99 % at single ratios and sizes. With q = 1 − p::

        (2np + z² ± (1 + z · sqrt(z² − 1/n + 4p(nq ± 1) ∓ 2))) / (2(n + z²))

    Source: Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 4,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E.

    >>> pair = wilson_pair(81, 263)
    >>> round(pair.lower, 4), round(pair.upper, 4)
    (0.2535, 0.3682)
    """
    plain = wilson(successes, n, z)
    if plain is None:
        return None
    p, squared = successes / n, z * z
    twice = 2 * (n + squared)

    def bound(ratio: float) -> float:
        """The lower bound of a ratio; the upper bound is 1 minus the lower bound of its complement."""
        root = max(0.0, squared - 2 - 1 / n + 4 * ratio * (n * (1 - ratio) + 1))
        return max(0.0, (2 * n * ratio + squared - 1 - z * math.sqrt(root)) / twice)

    lower = plain.lower if successes < LEAST_CORRECTED else bound(p)
    upper = plain.upper if n - successes < LEAST_CORRECTED else 1 - bound(1 - p)
    return Interval(lower, upper)


def student(z: float, free: int) -> float:
    """The quantile of Student's distribution with ``free`` degrees of freedom (1 or more) in place of the normal ``z``.

    A standard error of few values is itself uncertain: twice as many means of five lie outside 1.96 of them as should.
    Exact to 0.2 % up to z = 2: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.5.

    >>> round(student(Z_95_TWO_SIDED, 1), 2), round(student(Z_95_TWO_SIDED, 9), 3)
    (12.71, 2.262)
    """
    share = 2 * NormalDist().cdf(z) - 1
    if free == 1:
        return math.tan(math.pi / 2 * share)
    if free == 2:
        return share * math.sqrt(2 / (1 - share * share))
    s = z * z
    terms = (
        z, z * (s + 1) / 4, z * (s * (5 * s + 16) + 3) / 96, z * (s * (s * (3 * s + 19) + 17) - 15) / 384,
        z * (s * (s * (s * (79 * s + 776) + 1482) - 1920) - 945) / 92160,
    )  # fmt: skip
    return math.fsum(term / free**power for power, term in enumerate(terms))


@dataclass(frozen=True, slots=True)
class MissingBand:
    """The pass ratio with all missing verdicts counted as failed, and as passed; both in [0, 1]."""

    worst: float
    best: float


def missing_band(*, weight: float, failed_weight: float, missing_weight: float) -> MissingBand | None:
    """The band from sums of weights: of decided, of failed, and of incomplete verdicts.

    Equal to the estimate where nothing is missing; ``None`` without any verdict.
    """
    whole = weight + missing_weight
    if whole <= 0:
        return None
    passed = max(0.0, weight - failed_weight)
    return MissingBand(min(1.0, passed / whole), min(1.0, (passed + missing_weight) / whole))


_ALPHA: Final = 0.05


def at_most(k: int, n: int, p: float) -> float:
    """The chance of ``k`` hits or fewer in ``n`` trials, each a hit with the chance ``p``."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    whole = math.lgamma(n + 1)
    hit, miss = math.log(p), math.log1p(-p)
    logs = (whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * hit + (n - i) * miss for i in range(k + 1))
    return min(1.0, math.fsum(map(math.exp, logs)))


def most_hits(n: int, share: float) -> int | None:
    """The most hits in ``n`` trials that still show with 95 % that the share of hits is at most ``share``.

    None where even zero hits do not show it.
    """
    k = -1
    while k < n and at_most(k + 1, n, share) <= _ALPHA:
        k += 1
    return None if k < 0 else k


def least_trials(share: float, rate: float = 0.0) -> int | None:
    """The fewest trials that show with 95 % that the share is at most ``share``, where ``rate`` of them are hits.

    Of shares above 0.3 that many trials hit, a few more than the fewest. None where no number does: hits are that
    frequent, or none are allowed.
    """
    if not rate < share:
        return None

    def shows(hits: int, n: int) -> bool:
        return at_most(hits, n, share) <= _ALPHA

    # Each hit more that a rate allows is shown best by the most trials that have no other.
    hits = _first(lambda k: shows(k, math.floor(k / rate + 1e-9))) if rate else 0
    return _first(lambda n: shows(hits, n))


def _first(holds: Callable[[int], bool]) -> int:
    """The first number from 1 on for which something holds that holds for every larger one."""
    high = 1
    while not holds(high):
        high *= 2
    return bisect.bisect_left(range(high), 1, lo=high // 2 + 1, key=lambda n: int(holds(n)))

"""Interval: how far a ratio that was counted on a sample may lie from the true one.

Wilson's score interval, in the count form that the Prometheus rules use too, so that dashboard, status and alert
agree. With k successes among n trials and the normal quantile z::

    (k + z²/2 ± z · sqrt(k · (n − k) / n + z²/4)) / (n + z²)

Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22:209–212,
doi:10.1080/01621459.1927.10502953. Recommended over the normal approximation for small n by Brown, Cai and
DasGupta 2001, doi:10.1214/ss/1009213286.

>>> interval = wilson(8, 10, Z_95_TWO_SIDED)
>>> round(interval.lower, 4), round(interval.upper, 4)
(0.4902, 0.9433)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Z_95_ONE_SIDED = 1.6448536269514722
"""Standard normal quantile of 0.95: each bound on its own holds with 95 %, the pair with 90 %."""
Z_95_TWO_SIDED = 1.959963984540054
"""Standard normal quantile of 0.975: the pair of bounds holds with 95 %."""
Z_99_ONE_SIDED = 2.3263478740408408
"""Standard normal quantile of 0.99: each bound on its own holds with 99 %."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a ratio, 0 <= lower <= upper <= 1."""

    lower: float
    upper: float


def wilson(successes: float, n: float, z: float) -> Interval | None:
    """Wilson's score interval of ``successes`` among ``n`` trials; ``z`` is the normal quantile of each bound.

    Both counts may be fractions: an effective sample size is one, and so is a counter's extrapolated increase.
    Undefined (``None``) without trials. Raises ``ValueError`` for counts that cannot be.
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


def wilson_pair(successes: float, n: float) -> Interval | None:
    """Wilson's interval with the correction for continuity, for people: never covers less than it promises.

    Without the correction the pair covers 95 % on average, and 85 to 99 % at single ratios and sizes. With q = 1 − p::

        (2np + z² ± (1 + z · sqrt(z² − 1/n + 4p(nq ± 1) ∓ 2))) / (2(n + z²))

    Source: Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 4,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E.

    >>> pair = wilson_pair(81, 263)
    >>> round(pair.lower, 4), round(pair.upper, 4)
    (0.2535, 0.3682)
    """
    z = Z_95_TWO_SIDED
    plain = wilson(successes, n, z)
    if plain is None:
        return None
    p, squared = successes / n, z * z
    twice = 2 * (n + squared)

    def bound(ratio: float) -> float:
        """The lower bound of a ratio; the upper one is that of its complement."""
        root = max(0.0, squared - 2 - 1 / n + 4 * ratio * (n * (1 - ratio) + 1))
        return max(0.0, (2 * n * ratio + squared - 1 - z * math.sqrt(root)) / twice)

    lower = 0.0 if successes == 0 else min(bound(p), plain.lower)
    upper = 1.0 if successes == n else max(1 - bound(1 - p), plain.upper)
    return Interval(lower, upper)

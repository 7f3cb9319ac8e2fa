"""Estimate: the pass ratio of all traffic, derived from a sample.

A verdict that was drawn with probability p stands for 1/p traces, so it weighs w = 1/p::

    pass ratio  = Σ w·passed / Σ w                     (Hájek 1971; the weighted ratio estimator)
    effective n = (Σ w)² / Σ w²                        (Kish 1965, *Survey Sampling*, §11.7)
    bounds      = Wilson's pair at (pass ratio · effective n, effective n)

Equal weights give the plain ratio and effective n = n. Unequal ones carry less information: effective n < n. Only
ratios of weights matter; their scale does not.

>>> e = estimate([(True, 20.0), (True, 20.0), (False, 1.0)])
>>> e.n, e.failures, round(e.pass_ratio, 4), round(e.effective_n, 4)
(3, 1, 0.9756, 2.0986)

*Mean*: the weighted mean of a metric over all traffic, derived from a sample, with its bounds. With weights w =
1/probability (Hájek's mean; its linearised variance, Särndal, Swensson and Wretman 1992, §5.7)::

    mean = Σ w·x / Σ w            se² = n / (n − 1) · Σ w²·(x − mean)² / (Σ w)²            bounds = mean ± z·se

The bounds rest on the central limit theorem: they are for dozens of values, not for a few. Where all values are equal
they coincide with the mean and do not bound other values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from .interval import Z_95_ONE_SIDED, Z_95_TWO_SIDED, Interval, student, wilson, wilson_pair
from .sums import UNIT, ExactSum


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The pass ratio of all traffic, estimated from ``n`` verdicts, of which ``failures`` failed.

    ``pass_ratio``, ``lower`` and ``upper`` lie in [0, 1]; ``effective_n`` in [1, n]; ``weight_sum`` estimates how many
    traces the verdicts stand for. Both bounds together hold with 95 % (``interval.wilson_pair``): people are shown this
    interval, and a status is based on it. ``clusters`` counts the verdicts' clusters (sessions, users), None where they
    were not counted; ``effective_n`` is Kish's divided by ``design_effect``.
    """

    n: int
    failures: int
    weight_sum: float
    pass_ratio: float
    effective_n: float
    lower: float
    upper: float
    clusters: int | None = None
    design_effect: float = 1.0

    @property
    def one_sided(self) -> Interval:
        """Bounds that each hold with 95 % alone; a limit on a share is compared with them."""
        n, ratio = self.effective_n, self.pass_ratio
        plain = wilson(min(n, n * ratio), n, Z_95_ONE_SIDED) or Interval(0.0, 1.0)
        return Interval(min(plain.lower, ratio), max(plain.upper, ratio))


def effective_n(weights: Iterable[float]) -> float | None:
    """Kish's effective sample size (Σw)²/Σw², in [1, number of weights]; ``None`` without weights.

    Weights are positive and finite; ``ValueError`` otherwise.
    """
    known = list(weights)
    for weight in set(known):
        check_weight(weight)
    if not known:
        return None
    # Scaled by the largest: equal weights become exact ones, and no square overflows.
    largest = max(known)
    scaled = [weight / largest for weight in known]
    return kish(len(known), math.fsum(scaled), math.fsum([w * w for w in scaled]))


def estimate(verdicts: Iterable[tuple[bool, float]], *, design_effect: float = 1.0) -> Estimate | None:
    """The estimate of (passed, weight) pairs; ``None`` without any."""
    pairs = list(verdicts)
    weights = [weight for _, weight in pairs]
    failed = [weight for passed, weight in pairs if not passed]
    for weight in set(weights):
        check_weight(weight)
    return from_sums(
        n=len(pairs), failures=len(failed), weight=math.fsum(weights), failed_weight=math.fsum(failed),
        squared_weight=math.fsum([weight * weight for weight in weights]), design_effect=design_effect,
    )  # fmt: skip


def from_sums(
    *, n: int, failures: int, weight: float, failed_weight: float, squared_weight: float,
    clusters: int | None = None, design_effect: float = 1.0, begins: int = 1,
) -> Estimate | None:  # fmt: skip
    """The estimate from sums over verdicts: of one, of w, of w over the failed, of w². ``None`` when ``n`` is 0.

    ``begins``: the number of candidates from which the beginning was selected, as a change detector selects the stretch
    that looks worst. The interval holds with 95 % for any selection (Bonferroni).
    """
    if n == 0:
        return None
    size = max(1.0, kish(n, weight, squared_weight) / design_effect)
    # Without a failure (or with nothing else) the ratio is a whole number; rounding must not change that.
    ratio = 1.0 if failures == 0 else 0.0 if failures == n else min(1.0, max(0.0, (weight - failed_weight) / weight))
    z = Z_95_TWO_SIDED if begins <= 1 else NormalDist().inv_cdf(1 - 0.025 / begins)
    interval = wilson_pair(min(size, size * ratio), size, z)
    if interval is None:  # size is at least 1
        return None
    return Estimate(
        n=n, failures=failures, weight_sum=weight, pass_ratio=ratio, effective_n=size,
        lower=min(interval.lower, ratio), upper=max(interval.upper, ratio), clusters=clusters,
        design_effect=design_effect,
    )  # fmt: skip


def check_weight(weight: float) -> None:
    """Raise ``ValueError`` unless the weight and its square are positive and finite."""
    if not (weight > 0 and math.isfinite(weight) and 0 < weight * weight < math.inf):
        raise ValueError(f"a weight must be positive and finite, got {weight!r}")


def kish(n: int, weight: float, squared_weight: float) -> float:
    """Kish's effective sample size from the sums of n weights, in [1, n]."""
    # 9 decimals: thirty equal weights are thirty verdicts, not 29.999999999999996 that miss a guard of 30.
    return min(float(n), max(1.0, round(weight / squared_weight * weight, 9)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """``mean`` of ``n`` values and its bounds, in their unit; each bound alone holds with the probability of ``z``."""

    n: int
    effective_n: float
    mean: float
    lower: float
    upper: float
    z: float = Z_95_ONE_SIDED


def mean_estimate(
    values: Iterable[tuple[float, float]], *, z: float = Z_95_ONE_SIDED, design_effect: float = 1.0
) -> MeanEstimate | None:
    """The estimate of (value, weight) pairs; ``None`` for fewer than two, because one value does not vary.

    Values of sessions that are alike prove less: ``design_effect`` divides the sample, as in ``from_sums``.
    """
    pairs = list(values)
    weights = [weight for _, weight in pairs]
    size = effective_n(weights)
    if len(pairs) < 2 or size is None:
        return None
    whole = math.fsum(weights)
    mean = math.fsum([value * (weight / whole) for value, weight in pairs])
    spread = math.fsum([((weight / whole) * (value - mean)) ** 2 for value, weight in pairs])
    margin = student(z, len(pairs) - 1) * math.sqrt(design_effect * spread * len(pairs) / (len(pairs) - 1))
    return MeanEstimate(
        n=len(pairs), effective_n=max(1.0, size / design_effect), mean=mean, lower=mean - margin, upper=mean + margin,
        z=z,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanSums:
    """Sums over ``n`` values x of weight w: of w, w², w·x, w²·x and w²·x²."""

    n: int
    weight: ExactSum
    squared_weight: ExactSum
    product: ExactSum
    squared_product: ExactSum
    squared_square: ExactSum


def mean_from_sums(sums: MeanSums, design_effect: float = 1.0) -> MeanEstimate | None:
    """The same estimate from exact sums, in whole numbers, so that nothing cancels; ``None`` for fewer than two."""
    if sums.n < 2:
        return None
    w, p, q = sums.weight.units, sums.product.units, sums.squared_product.units
    apart = sums.squared_square.units * w * w - 2 * p * q * w + p * p * sums.squared_weight.units
    spread = max(0, apart) * UNIT / w**4
    margin = student(Z_95_ONE_SIDED, sums.n - 1) * math.sqrt(design_effect * spread * sums.n / (sums.n - 1))
    mean, size = p / w, kish(sums.n, sums.weight.value, sums.squared_weight.value)
    return MeanEstimate(
        n=sums.n, effective_n=max(1.0, size / design_effect), mean=mean, lower=mean - margin, upper=mean + margin
    )  # fmt: skip

"""Status: what an estimated pass ratio means: healthy, warning, critical, or too little to tell.

Seed 004 compares the ratio with 0.70 and 0.85 (mode ``point``). A ratio counted on few verdicts jumps over a threshold
by chance, so the default (mode ``bound``) speaks up only when even the upper confidence bound lies below it, and when
enough failures were seen: the same formula and the same guards as the Prometheus rules. ``insufficient_data`` is a
state of its own: silence is neither recovery nor zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from .statistics.estimate import Estimate

Mode: TypeAlias = Literal["point", "bound"]
"""Which number is held against the thresholds: the ratio itself (the seed), or its upper confidence bound."""


class Status(StrEnum):
    """The four states, as Prometheus, the API and the pages name them."""

    HEALTHY = "healthy"
    WARNING = "warning"
    CRITICAL = "critical"
    INSUFFICIENT_DATA = "insufficient_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Pass ratios below which a service is in warning and in critical state (seed 004: 0.85 and 0.70)."""

    warning: float = 0.85
    critical: float = 0.70

    def __post_init__(self) -> None:
        if not 0 <= self.critical <= self.warning <= 1:
            raise ValueError(
                f"thresholds must satisfy 0 <= critical <= warning <= 1, got {self.critical}, {self.warning}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a status is reached: ``alerts`` of the configuration.

    ``min_samples`` is the least effective sample size that is enough data. ``min_failures`` is the least number of
    failed verdicts for which mode ``bound`` leaves *healthy*; mode ``point`` ignores it, as the seed knows none.
    """

    thresholds: Thresholds = Thresholds()
    mode: Mode = "bound"
    min_samples: float = 30
    min_failures: int = 3


SEED = Policy(mode="point", min_samples=1, min_failures=0)
"""Seed 004's monitor: the ratio itself, from the first verdict on."""


@dataclass(frozen=True, slots=True)
class Appraisal:
    """A status and, in one short sentence, the numbers that led to it."""

    status: Status
    reason: str


def appraise(estimate: Estimate | None, policy: Policy) -> Appraisal:
    """The status of an estimate; ``None`` (no verdict in the window) is insufficient data."""
    if estimate is None:
        return Appraisal(Status.INSUFFICIENT_DATA, "no verdict in the window")
    if estimate.effective_n < policy.min_samples:
        return Appraisal(
            Status.INSUFFICIENT_DATA,
            f"{_number(estimate.effective_n)} effective samples, {_number(policy.min_samples)} are needed",
        )
    # 9 decimals, as everywhere a value meets a bound (rubrics §1.3): 17 of 20 is 0.85, however it was weighted.
    compared = round(estimate.pass_ratio if policy.mode == "point" else estimate.upper, 9)
    levels = (
        (Status.CRITICAL, policy.thresholds.critical),
        (Status.WARNING, policy.thresholds.warning),
    )
    for level, threshold in levels:
        if compared < threshold:
            if policy.mode == "bound" and estimate.failures < policy.min_failures:
                return Appraisal(
                    Status.HEALTHY,
                    f"{_said(estimate, policy)} is below {threshold:g}, but only {estimate.failures} of the "
                    f"{policy.min_failures} failures needed to say so",
                )
            return Appraisal(level, f"{_said(estimate, policy)} is below the {level.value} threshold {threshold:g}")
    return Appraisal(
        Status.HEALTHY, f"{_said(estimate, policy)} is not below the warning threshold {policy.thresholds.warning:g}"
    )


def status(
    estimate: Estimate | None,
    thresholds: Thresholds,
    mode: Mode = "bound",
    min_samples: float = 30,
    min_failures: int = 3,
) -> Status:
    """The status alone, for callers that show no reason."""
    policy = Policy(thresholds=thresholds, mode=mode, min_samples=min_samples, min_failures=min_failures)
    return appraise(estimate, policy).status


def _said(estimate: Estimate, policy: Policy) -> str:
    ratio = f"pass ratio {estimate.pass_ratio:.3f}"
    if policy.mode == "point":
        return ratio
    return f"{ratio}: its upper bound {estimate.upper:.3f} ({estimate.confidence:.0%})"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""Status: what an estimated pass ratio means: healthy, warning, critical, or too little data.

Seed 004 compares the ratio with 0.70 and 0.85 (mode ``point``). A ratio counted on few verdicts jumps over a threshold
by chance, so the default (mode ``bound``) speaks up only when even the upper confidence bound lies below it, and when
enough failures were seen: the same formula and the same guards as the Prometheus rules. Mode ``sequence`` asks a
confidence sequence, which stays right however often one looks. Mode ``adaptive`` joins it with change detectors under
one budget of false alarms: a status is worse where verdicts fit a drop better than a good service, and the ratio since
the drop began is below the threshold. ``insufficient_data`` is a state of its own: silence is
neither recovery nor zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, TypeAlias

from scoring.lexical.amount import amount
from scoring.statistics.estimate import Estimate
from scoring.statistics.sequence import ConfidenceSequence

Mode: TypeAlias = Literal["adaptive", "point", "bound", "sequence"]
"""What is held against the thresholds: the evidence since a drop began (``adaptive``, with a confidence sequence), the
ratio itself (the seed), its upper bound, or a confidence sequence alone."""


class Status(StrEnum):
    """The four states, as Prometheus, the API and the pages name them."""

    HEALTHY = "healthy"
    WARNING = "warning"
    CRITICAL = "critical"
    INSUFFICIENT_DATA = "insufficient_data"


WORST_FIRST = (Status.CRITICAL, Status.WARNING, Status.HEALTHY, Status.INSUFFICIENT_DATA)
"""The statuses in the order in which people want to see services."""


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

    def raised(self, margin: float) -> Thresholds:
        """The same, higher by a margin: what a recovery is held against. 9 decimals, so that 0.85 + 0.02 is 0.87."""
        return Thresholds(
            warning=min(1.0, round(self.warning + margin, 9)), critical=min(1.0, round(self.critical + margin, 9))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a status is reached: ``alerts`` of the configuration.

    ``min_samples`` is the least effective sample size that is enough data. ``min_failures`` is the least number of
    failed verdicts for which mode ``bound`` leaves *healthy*; mode ``point`` ignores it, as the seed knows none. Mode
    ``sequence`` needs neither to speak up, and ``min_samples`` verdicts since it began to call a service healthy.
    """

    thresholds: Thresholds = Thresholds()
    mode: Mode = "bound"
    min_samples: float = 30
    min_failures: int = 3

    def raised(self, margin: float) -> Policy:
        """The same with thresholds that are higher by a margin."""
        return replace(self, thresholds=self.thresholds.raised(margin))


@dataclass(frozen=True, slots=True)
class Appraisal:
    """A status and, in one short sentence, the numbers that led to it."""

    status: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """Pass ratios since the beginning of a drop that a change detector reports; ``None`` where it reports none.

    ``fall`` is what may be a warning, ``collapse`` what may be critical. ``series`` is among how many services and
    rubrics the false alarms are divided.
    """

    fall: float | None = None
    collapse: float | None = None
    series: int = 1


def appraise(
    estimate: Estimate | None, policy: Policy, sequence: ConfidenceSequence | None = None, drops: Drops | None = None
) -> Appraisal:
    """The status of an estimate; ``None`` (no verdict in the window) is insufficient data.

    Mode ``sequence`` needs the ``sequence`` of the same verdicts; without one (of a service that is new) the status is
    ``insufficient_data``. Mode ``adaptive`` needs the ``drops`` too; without them nothing is known to be worse.
    """
    if estimate is None:
        return Appraisal(Status.INSUFFICIENT_DATA, "no verdict in the window")
    if policy.mode == "adaptive" and (worse := _worse(policy, sequence, drops or Drops())):
        return worse
    if policy.mode == "sequence":
        return _appraise_sequence(policy, sequence)
    if estimate.effective_n < policy.min_samples:
        return Appraisal(
            Status.INSUFFICIENT_DATA,
            f"{_known(estimate)}, {_number(policy.min_samples)} are needed",
        )
    if policy.mode == "adaptive":
        warning = policy.thresholds.warning
        return Appraisal(
            Status.HEALTHY, f"pass ratio {estimate.pass_ratio:.3f}; nothing convincing for one below {warning:g}"
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
                    f"{_stated(estimate, policy)} is below {threshold:g}, but only {estimate.failures} of the "
                    f"{policy.min_failures} failures needed",
                )
            return Appraisal(level, f"{_stated(estimate, policy)} is below the {level.value} threshold {threshold:g}")
    return Appraisal(
        Status.HEALTHY, f"{_stated(estimate, policy)} is not below the warning threshold {policy.thresholds.warning:g}"
    )


def _worse(policy: Policy, sequence: ConfidenceSequence | None, drops: Drops) -> Appraisal | None:
    """The worst that the drops or the sequence show; the sequence has to convince ``series`` times over."""
    for level, threshold, since in (
        (Status.CRITICAL, policy.thresholds.critical, drops.collapse),
        (Status.WARNING, policy.thresholds.warning, drops.fall),
    ):
        if since is not None and round(since, 9) < threshold:
            return Appraisal(
                level, f"the pass ratio fell, and is {since:.3f} since: below the {level.value} threshold {threshold:g}"
            )
        if sequence is not None and sequence.evidence(threshold) >= drops.series:
            return Appraisal(
                level,
                f"the evidence that the pass ratio is below the {level.value} threshold {threshold:g} is "
                f"{_times(sequence.evidence(threshold) / drops.series)} what convinces",
            )
    return None


def _appraise_sequence(policy: Policy, sequence: ConfidenceSequence | None) -> Appraisal:
    for level, threshold in (
        (Status.CRITICAL, policy.thresholds.critical),
        (Status.WARNING, policy.thresholds.warning),
    ):
        if sequence is not None and sequence.below(threshold):
            return Appraisal(
                level,
                f"the evidence that the pass ratio is below the {level.value} threshold {threshold:g} is "
                f"{_times(sequence.evidence(threshold))} what convinces",
            )
    if sequence is None or sequence.n < policy.min_samples:
        known = amount(sequence.n if sequence else 0, "verdict")
        return Appraisal(
            Status.INSUFFICIENT_DATA, f"{known} so far, {_number(policy.min_samples)} are needed for healthy"
        )
    warning = policy.thresholds.warning
    return Appraisal(
        Status.HEALTHY,
        f"the evidence that the pass ratio is below the warning threshold {warning:g} is "
        f"{_times(sequence.evidence(warning))} what would convince",
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


def _stated(estimate: Estimate, policy: Policy) -> str:
    ratio = f"pass ratio {estimate.pass_ratio:.3f}"
    if policy.mode == "point":
        return ratio
    return f"{ratio}: its upper bound {estimate.upper:.3f} ({estimate.confidence:.0%})"


def _times(evidence: float) -> str:
    return f"{evidence:.1f} times" if evidence >= 1 else f"{evidence:.2g} of"


def _known(estimate: Estimate) -> str:
    """How many verdicts there are, and for how many they count where sampling was uneven."""
    verdicts = amount(estimate.n, "verdict")
    return verdicts if estimate.effective_n == estimate.n else f"{verdicts} count as {_number(estimate.effective_n)}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

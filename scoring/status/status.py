"""Status: from an estimated pass ratio to healthy, warning, critical, or too little data.

Seed 004 compares the ratio with 0.70 and 0.85 (mode ``point``). A ratio counted on few verdicts jumps over a threshold
by chance, so the default (mode ``bound``) reacts only when even the upper confidence bound lies below it, and when
enough failures were seen: the same formula and the same guards as the Prometheus rules. Mode ``adaptive`` joins change
detectors with a confidence sequence, which stays right at any number of looks, under one budget of false alarms: a
status is worse where verdicts fit a drop better than a good service, and the ratio since the drop began is below the
threshold; or where the ratio itself convincingly is. ``insufficient_data`` is a state of its own: silence is neither
recovery nor zero. ``no_data`` is an unusual silence (``silence``).

*No status contradicts its own interval* (except in mode ``point``, which has none). It is the interval that people are
shown, two-sided with 95 %: page, notice, API, Prometheus and every decision share it. Healthy needs a window whose
upper bound reaches the warning threshold: a window below it by chance, as in a few of a month's thousands of looks, is
*insufficient data* until more is known. An interval wholly above a threshold is no alarm, unless a drop within the
window is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias

from sidejudge.scoring.lexical.amount import amount, beside
from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.statistics.sequence import ConfidenceSequence

Mode: TypeAlias = Literal["adaptive", "point", "bound"]
"""What is compared with the thresholds: the evidence since a drop began (``adaptive``, with a confidence sequence), the
ratio itself (the seed), or its upper bound.
"""


_HOLDS = 0.5
"""Evidence of this share of the convincing amount keeps a raised alert, but raises none."""


WAITS = "; traces without an answer may decide otherwise"
"""The end of a reason where traces that wait for an answer, or got none, leave a status open."""


class Status(StrEnum):
    """The five states, as Prometheus, the API and the pages name them. ``no_data``: verdicts no longer come."""

    HEALTHY = "healthy"
    WARNING = "warning"
    CRITICAL = "critical"
    INSUFFICIENT_DATA = "insufficient_data"
    NO_DATA = "no_data"


UNKNOWN = (Status.INSUFFICIENT_DATA, Status.NO_DATA)
"""Statuses without information on the service: neither an alarm nor the end of one."""
WORST_FIRST = (Status.CRITICAL, Status.WARNING, Status.HEALTHY, Status.NO_DATA, Status.INSUFFICIENT_DATA)
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
        """Thresholds raised by a margin, for recoveries. 9 decimals, so that 0.85 + 0.02 is 0.87."""
        return Thresholds(
            warning=min(1.0, round(self.warning + margin, 9)), critical=min(1.0, round(self.critical + margin, 9))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a status is computed: ``alerts`` of the configuration.

    ``min_samples`` is the least sufficient effective sample size. ``min_failures`` is the least number of failed
    verdicts for which mode ``bound`` leaves *healthy*; mode ``point`` ignores it, as the seed has none.
    """

    thresholds: Thresholds = Thresholds()
    mode: Mode = "bound"
    min_samples: float = 30
    min_failures: int = 3

    def raised(self, margin: float) -> Policy:
        """The policy for recoveries: thresholds raised by a margin.

        Mode ``bound`` compares the ratio itself with them. Its upper bound also rises where traffic stops and the
        window empties, which is no recovery.
        """
        mode: Mode = "point" if self.mode == "bound" else self.mode
        return replace(self, thresholds=self.thresholds.raised(margin), mode=mode)


@dataclass(frozen=True, slots=True)
class Appraisal:
    """A status and, in one short sentence, the numbers that led to it.

    ``undecided``: there is enough data, but the window contradicts the earlier evidence. ``contested`` is a worse
    status that the earlier evidence shows and the window rules out: no alert on it fires, and none is over.
    """

    status: Status
    reason: str
    undecided: bool = False
    contested: Status | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """The reports of change detectors; ``None`` where they report nothing.

    ``fall`` is the pass ratio since a drop began, which may be a warning; ``collapse`` that of the verdicts since the
    drop was noticed, where they convince that it is critical; ``slide`` the present pass ratio of a service that is
    worse than a week ago, after any slow decay. ``since`` is the estimate from the window's verdicts since the drop
    began, which people are shown. ``series`` is the number of services and rubrics that share the budget of false
    alarms.
    """

    fall: float | None = None
    collapse: float | None = None
    slide: float | None = None
    since: Estimate | None = None
    series: int = 1


def appraise(
    estimate: Estimate | None, policy: Policy, sequence: ConfidenceSequence | None = None, drops: Drops | None = None,
    *, incomplete: int = 0, judge_failed: int = 0,
) -> Appraisal:  # fmt: skip
    """The status of an estimate; ``None`` (no verdict in the window passed or failed) is insufficient data.

    ``incomplete`` verdicts of the window neither passed nor failed, those of ``judge_failed`` because the judge failed:
    the reason names them where data is missing. Mode ``adaptive`` needs the ``sequence`` and the ``drops`` of the same
    verdicts; without them nothing can be known to be worse.
    """
    if estimate is None:
        nothing = "no verdict in the window passed or failed" if incomplete else "no verdict in the window"
        return Appraisal(Status.INSUFFICIENT_DATA, nothing + _undecided(incomplete, judge_failed))
    if policy.mode == "adaptive" and (worse := _worse(estimate, policy, sequence, drops or Drops())):
        return worse
    if estimate.effective_n < policy.min_samples:
        needed = f"{_known(estimate)}, {_number(policy.min_samples)} are needed"
        return Appraisal(Status.INSUFFICIENT_DATA, needed + _undecided(incomplete, judge_failed))
    if policy.mode == "adaptive":
        return _not_worse(estimate, policy.thresholds.warning)
    # 9 decimals, as everywhere a value meets a bound (rubrics §1.3): 17 of 20 is 0.85, however it was weighted.
    compared = round(estimate.pass_ratio if policy.mode == "point" else estimate.upper, 9)
    levels = ((Status.CRITICAL, policy.thresholds.critical), (Status.WARNING, policy.thresholds.warning))
    for level, threshold in levels:
        if compared < threshold:
            if policy.mode == "bound" and estimate.failures < policy.min_failures:
                return Appraisal(
                    Status.INSUFFICIENT_DATA,
                    f"{_stated(estimate, policy, threshold)} is below {threshold:g}, but only {estimate.failures} of "
                    f"the {policy.min_failures} failures needed",
                    undecided=True,
                )
            stated = _stated(estimate, policy, threshold)
            return Appraisal(level, f"{stated} is below the {level.value} threshold {threshold:g}")
    warning = policy.thresholds.warning
    return Appraisal(
        Status.HEALTHY, f"{_stated(estimate, policy, warning)} is not below the warning threshold {warning:g}"
    )


def _not_worse(estimate: Estimate, warning: float) -> Appraisal:
    """The appraisal where no detector convinces: healthy with its lower end, or undecided."""
    lowest, ratio = beside(estimate.lower, warning, 2), f"pass ratio {estimate.pass_ratio:.3f}"
    if lies_below(estimate, warning):
        return Appraisal(
            Status.INSUFFICIENT_DATA,
            f"{ratio}, between {lowest} and {beside(estimate.upper, warning, 2)}: "
            f"undecided; it lies below the warning threshold {warning:g}, as a few of a month's windows do by chance",
            undecided=True,
        )
    if estimate.lower < warning:
        return Appraisal(Status.HEALTHY, f"{ratio}, may be as low as {lowest}; it is not shown to be below {warning:g}")
    return Appraisal(Status.HEALTHY, f"{ratio}, at least {lowest}; the warning threshold is {warning:g}")


def _worse(estimate: Estimate, policy: Policy, sequence: ConfidenceSequence | None, drops: Drops) -> Appraisal | None:
    """The worst that the drops or the sequence show; the sequence has to convince ``series`` times over.

    A drop rests on the verdicts since it began; evidence on the present level must not contradict the window.
    """
    contested: Status | None = None
    fallen = drops.since or estimate
    for level, threshold, since in (
        (Status.CRITICAL, policy.thresholds.critical, drops.collapse),
        (Status.WARNING, policy.thresholds.warning, drops.fall),
    ):
        below = f"below the {level.value} threshold {threshold:g}"
        dropped = since is not None and round(since, 9) < threshold
        if dropped and round(fallen.lower, 9) <= threshold:
            return Appraisal(level, f"the pass ratio fell, and what came since is {below}", contested=contested)
        convinced = sequence.evidence(threshold) / drops.series if sequence is not None else 0.0
        slid = level is Status.WARNING and drops.slide is not None and round(drops.slide, 9) < threshold
        is_above = round(estimate.lower, 9) > threshold
        if level is Status.CRITICAL and (dropped or (is_above and convinced >= _HOLDS)):
            contested = level
        if (convinced >= 1 or slid) and not is_above:
            reason = f"the pass ratio slid from what it was a week ago, and is {below} now"
            if convinced >= 1:
                reason = f"the evidence that the pass ratio is {below} is {convinced:.1f} times what convinces"
            return Appraisal(level, reason, contested=contested)
        if level is Status.WARNING and (convinced >= 1 or slid or dropped):
            return _contradicted(estimate, threshold)
    return None


def _contradicted(estimate: Estimate, warning: float) -> Appraisal:
    """The appraisal where the evidence of days and the window disagree."""
    return Appraisal(
        Status.INSUFFICIENT_DATA,
        f"pass ratio {estimate.pass_ratio:.3f}, between {estimate.lower:.2f} and {estimate.upper:.2f}: undecided; what "
        f"came before shows one below the warning threshold {warning:g}",
        undecided=True,
    )


def lies_below(estimate: Estimate | None, threshold: float) -> bool:
    """Whether the window's interval lies wholly below a threshold, compared after rounding to 9 decimals."""
    return estimate is not None and round(estimate.upper, 9) < threshold


class Behind(NamedTuple):
    """How many traces wait behind a slow judge, and how many of them pass if they are like what it answered."""

    traces: float = 0.0
    passed: float = 0.0


NONE_BEHIND: Final = Behind()


def left_open(
    estimate: Estimate | None, waiting: float, *limits: float, behind: Behind = NONE_BEHIND
) -> tuple[float, float] | None:
    """The pass ratio if all ``waiting`` traces fail, and if all pass; None where no limit lies between the two.

    ``waiting`` is how many traces stand for those that wait for an answer, or got none because nobody could be asked.
    Those that need no answer are unlike them: where one judges by words first, what words decide passes or fails.
    ``behind`` is as in ``both_ways``.
    """
    if estimate is None or (waiting <= 0 and not behind.traces):
        return None
    lowest, highest = both_ways(estimate.pass_ratio, estimate.weight_sum, waiting, behind)
    return (lowest, highest) if any(lowest < limit <= highest for limit in limits) else None


def both_ways(ratio: float, weight: float, waiting: float, behind: Behind = NONE_BEHIND) -> tuple[float, float]:
    """A ratio over traces of this weight in all, if all ``waiting`` ones besides fail, and if all pass.

    The lower and the higher one of with those ``behind`` and without them.
    """
    passed = ratio * weight
    among = ((passed, weight + waiting), (passed + behind.passed, weight + waiting + behind.traces))
    return round(min(p / w for p, w in among), 9), round(max((p + waiting) / w for p, w in among), 9)


def may_turn(
    estimate: Estimate | None, waiting: float, limit: float, *, below: bool, behind: Behind = NONE_BEHIND
) -> bool:
    """Whether ``waiting`` traces could lift a ratio that is ``below`` a limit to it, or bring another below it."""
    if estimate is None or (waiting <= 0 and not behind.traces):
        return False
    lowest, highest = both_ways(estimate.pass_ratio, estimate.weight_sum, waiting, behind)
    return highest >= limit if below else lowest < limit


def mostly_waits(estimate: Estimate | None, waiting: float) -> bool:
    """Whether more traces wait, or got no answer, than have a verdict."""
    return waiting > (0.0 if estimate is None else estimate.weight_sum)


def ruled_out(estimate: Estimate | None, thresholds: Thresholds) -> Status | None:
    """The mildest alarm whose threshold lies wholly below the window's interval; more severe ones are ruled out too."""
    if estimate is None:
        return None
    for level, threshold in ((Status.WARNING, thresholds.warning), (Status.CRITICAL, thresholds.critical)):
        if round(estimate.lower, 9) > threshold:
            return level
    return None


def _stated(estimate: Estimate, policy: Policy, threshold: float) -> str:
    """The figure that is compared with the threshold."""
    if policy.mode == "point":
        return f"pass ratio {beside(estimate.pass_ratio, threshold)}"
    upper = beside(estimate.upper, threshold)
    return f"pass ratio {estimate.pass_ratio:.3f}: the upper end of its 95 % interval {upper}"


def _known(estimate: Estimate) -> str:
    """The number of verdicts and, where sampling was uneven, their effective number."""
    verdicts = amount(estimate.n, "verdict")
    return verdicts if estimate.effective_n == estimate.n else f"{verdicts} count as {_number(estimate.effective_n)}"


def _undecided(incomplete: int, judge_failed: int) -> str:
    """The verdicts that neither passed nor failed, as the end of a reason; empty without any."""
    if not incomplete:
        return ""
    cause = "" if not judge_failed else ", because an evaluator failed" if judge_failed == incomplete else (
        f", {judge_failed:,} of them because an evaluator failed"
    )  # fmt: skip
    return f"; {incomplete:,} {'is' if incomplete == 1 else 'are'} incomplete{cause}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

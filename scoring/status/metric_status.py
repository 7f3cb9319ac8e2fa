"""Metric status: the value of a continuous metric in its window, its uncertainty, and the resulting status.

A limit on a quantile is a limit on a share: the 95th percentile is above 5 s where less than 95 % of the traces take up
to 5 s. A limit on the mean of a bounded metric is a limit on the mean of its values, scaled to [0, 1]. So every limit
is a threshold on the mean of values in [0, 1], like a pass rate, and all methods for pass rates apply: weights,
clusters, bounds, change detectors, confidence sequences and the budget of false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.statistics.betting import Sampled, mean_bounds
from sidejudge.scoring.statistics.estimate import effective_n
from sidejudge.scoring.statistics.interval import Z_95_ONE_SIDED, Interval, wilson
from sidejudge.scoring.statistics.quantile import Measured, quantile

from .status import Appraisal, Mode, Policy, Status, both_ways

APPLICATION: Final = ""
"""The rubric's name for figures that belong to no rubric: the application's own figures."""
Level: TypeAlias = Literal["warning", "critical"]
_RULE_OF_THREE: Final = 3.0
"""Fewest values beyond a quantile, on average, for a bound on that side to exist (Hanley and Lippman-Hand 1983)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLimit:
    """A limit on one metric. ``name`` is the configuration's: ``latency_p95``, ``answer_relevance_mean``.

    ``measure`` is the metric or figure, ``rubric`` the metric's rubric (``APPLICATION``: a figure of the application).
    ``quantile`` in (0, 1), None for the mean. ``warning`` and ``critical`` are in the metric's ``unit``; with ``below``
    lower values are worse, otherwise higher ones. ``services`` are globs; none means all. ``bounds`` are the metric's.
    """

    name: str
    measure: str
    rubric: str = APPLICATION
    quantile: float | None = None
    warning: float | None = None
    critical: float | None = None
    below: bool = False
    services: tuple[str, ...] = ()
    bounds: tuple[float, float | None] = (0.0, None)
    unit: str = ""

    def concerns(self, service: str) -> bool:
        """Whether it applies to this service."""
        return not self.services or any(fnmatchcase(service, glob) for glob in self.services)

    @property
    def levels(self) -> Iterator[tuple[Level, float]]:
        """The levels with their limits, the worst first."""
        if self.critical is not None:
            yield "critical", self.critical
        if self.warning is not None:
            yield "warning", self.warning

    def kept(self, value: float, limit: float) -> float:
        """How far a value keeps to a limit, in [0, 1]: 1 or 0 for a quantile, the place on the scale for a mean."""
        if self.quantile is not None:
            return float(value >= limit if self.below else value <= limit)
        return self._scaled(value)

    def threshold(self, limit: float) -> float:
        """The mean of ``kept`` below which the limit is violated."""
        if self.quantile is not None:
            return 1 - self.quantile if self.below else self.quantile
        return self._scaled(limit)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of a metric whose mean can be bounded; ``ValueError`` where the upper one is missing."""
        low, high = self.bounds
        if high is None:
            raise ValueError(f"{self.name}: a metric without an upper end has no mean that can be bounded")
        return low, high

    def _scaled(self, value: float) -> float:
        low, high = self.ends
        place = min(1.0, max(0.0, (value - low) / (high - low)))
        return place if self.below else 1 - place

    def needed(self, min_samples: float) -> float:
        """The least sufficient effective sample size."""
        if self.quantile is None:
            return min_samples
        return max(min_samples, _RULE_OF_THREE / min(self.quantile, 1 - self.quantile))

    def text(self, value: float) -> str:
        """A value in its unit, for people."""
        if self.unit == "seconds":
            return f"{value:.3g} s"
        return f"${value:.3g}" if self.unit == "US dollars" else f"{value:.4g}"


_LEVELS: Final[Mapping[Level, Status]] = {"critical": Status.CRITICAL, "warning": Status.WARNING}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShare:
    """The mean of ``kept`` under one limit, with one-sided 95 % bounds (Wilson).

    For ones and zeros the bounds are a proportion's. For other values in [0, 1] they are wider than necessary, never
    narrower: no distribution with this mean varies more (Bhatia and Davis 2000, doi:10.1080/00029890.2000.12005203).
    """

    share: float
    bounds: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEstimate:
    """The metric in one window: ``value`` from ``n`` values, with the interval that holds with 95 % at any look.

    A bound is None where the values do not determine it. ``effective_n`` accounts for weights and clusters. ``kept``
    holds the share of each level, ``weight_sum`` is how many traces the values stand for.
    """

    value: float
    lower: float | None
    upper: float | None
    n: int
    effective_n: float
    clusters: int | None = None
    kept: Mapping[Level, KeptShare] = field(default_factory=dict)
    weight_sum: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEvidence:
    """Evidence value by value on one level: the mean of ``kept`` since a fall began, while one is reported.

    On the critical level it is that of the values after the fall was noticed, where they convince: those before were
    selected because they look bad. ``fallen`` is the estimate from the window's values since the fall. ``sequence`` is
    the evidence that the mean is below its threshold, as a multiple of the convincing amount.
    """

    since: float | None = None
    fallen: MetricEstimate | None = None
    sequence: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricStatus:
    """One limit in one service and environment. ``estimate`` is None without a value; ``since_ns`` dates the status."""

    service: str
    environment: str
    limit: MetricLimit
    estimate: MetricEstimate | None
    appraisal: Appraisal
    since_ns: int | None = None


def keeps_to(limit: MetricLimit, estimate: MetricEstimate | None, bound: float) -> bool:
    """Whether the interval of a metric lies wholly within a limit."""
    if estimate is None:
        return False
    if limit.below:
        return estimate.lower is not None and round(estimate.lower, 9) > bound
    return estimate.upper is not None and round(estimate.upper, 9) < bound


def lies_beyond(limit: MetricLimit, estimate: MetricEstimate | None, bound: float) -> bool:
    """Whether the interval of a metric lies wholly beyond a limit."""
    if estimate is None:
        return False
    if limit.below:
        return estimate.upper is not None and round(estimate.upper, 9) < bound
    return estimate.lower is not None and round(estimate.lower, 9) > bound


def metric_ruled_out(limit: MetricLimit, estimate: MetricEstimate | None) -> Status | None:
    """The mildest alarm whose limit the interval keeps to; more severe ones are ruled out too."""
    levels = reversed([*limit.levels])
    return next((_LEVELS[level] for level, bound in levels if keeps_to(limit, estimate, bound)), None)


def mildest_metric(limit: MetricLimit, estimate: MetricEstimate | None, waiting: float) -> Status | None:
    """The status if all ``waiting`` traces, which have no answer, keep to the limit; None where it does not depend."""
    if estimate is None or waiting <= 0:
        return None
    found, is_open = Status.HEALTHY, False
    for level, bound in reversed([*limit.levels]):
        threshold = round(limit.threshold(bound), 9)
        lowest, highest = both_ways(estimate.kept[level].share, estimate.weight_sum, waiting)
        is_open = is_open or lowest < threshold <= highest
        found = _LEVELS[level] if highest < threshold else found
    return found if is_open else None


def metric_estimate(
    limit: MetricLimit, values: Sequence[Measured], design_effect: float = 1.0, largest: float = 0.0, *, begins: int = 1
) -> MetricEstimate | None:
    """The estimate of a metric; None without values.

    ``largest`` is the service's largest weight so far. ``begins``: the number of moments from which the beginning of
    these values was chosen because they look bad; the interval allows for it (Bonferroni).
    """
    size = effective_n(row.weight for row in values)
    if size is None:
        return None
    size = max(1.0, size / design_effect)
    value, lower, upper = _estimated(limit, values, largest, 0.05 / begins)
    named = {row.cluster for row in values if row.cluster is not None}
    return MetricEstimate(
        value=value, lower=lower, upper=upper, n=len(values), effective_n=size,
        clusters=sum(row.cluster is None for row in values) + len(named) if named else None,
        kept={level: _kept(limit, bound, values, size) for level, bound in limit.levels},
        weight_sum=math.fsum(row.weight for row in values),
    )  # fmt: skip


def _estimated(
    limit: MetricLimit, values: Sequence[Measured], largest: float, error: float
) -> tuple[float, float | None, float | None]:
    if limit.quantile is not None:
        found = quantile(values, limit.quantile, error=error, largest=largest)
        if found is None:
            raise ValueError("a quantile needs values")
        return found.value, found.lower, found.upper
    low, high = limit.bounds
    if high is None:
        return _mean((row.value, row.weight) for row in values), None, None
    width = high - low
    scaled = (Sampled(min(1.0, max(0.0, (row.value - low) / width)), row.weight, row.cluster) for row in values)
    lower, upper = mean_bounds(scaled, error=error, largest=largest)
    return _mean((row.value, row.weight) for row in values), low + lower * width, low + upper * width


def _kept(limit: MetricLimit, bound: float, values: Sequence[Measured], size: float) -> KeptShare:
    share = min(1.0, max(0.0, _mean((limit.kept(row.value, bound), row.weight) for row in values)))
    bounds = wilson(share * size, size, Z_95_ONE_SIDED) or Interval(0.0, 1.0)
    return KeptShare(share=share, bounds=bounds)


def _mean(pairs: Iterable[tuple[float, float]]) -> float:
    rows = list(pairs)
    weight = math.fsum(w for _, w in rows)
    return math.fsum(value * (w / weight) for value, w in rows)


def appraise_metric(
    limit: MetricLimit,
    estimate: MetricEstimate | None,
    policy: Policy,
    evidence: Mapping[Level, MetricEvidence],
    *,
    series: int = 1,
    margin: float = 0.0,
) -> Appraisal:
    """The status of a metric in the mode of the policy.

    Args:
        limit: Its limits.
        estimate: Of its window.
        policy: The mode, and the least effective sample size.
        evidence: The evidence value by value, for mode ``adaptive``.
        series: The number of services, rubrics and limits that share the budget of false alarms.
        margin: The share of the way from each threshold to 1 that a better status needs in addition.
    """
    if estimate is None:
        return Appraisal(Status.INSUFFICIENT_DATA, f"no value of {limit.measure} in the window")
    contested = False
    for level, bound in limit.levels:
        threshold = limit.threshold(bound)
        wanted = threshold + margin * (1 - threshold)
        known = evidence.get(level, MetricEvidence())
        why = _worse(limit, estimate.kept[level], known, wanted=wanted, mode=policy.mode, series=series)
        if why is None or (policy.mode == "bound" and estimate.effective_n < policy.min_samples):
            continue
        # A drop rests on the values since it began; evidence on the present level must not contradict the window.
        fell = _fell(known, wanted)
        if policy.mode != "adaptive" or not keeps_to(limit, known.fallen if fell else estimate, bound):
            return Appraisal(_LEVELS[level], f"{why} the {level} limit {limit.text(bound)}")
        contested = not fell
    if estimate.effective_n < (needed := limit.needed(policy.min_samples)):
        worth = f"{estimate.n} values count as {estimate.effective_n:.1f}"
        counted = worth if estimate.effective_n < estimate.n else f"{estimate.n} values"
        return Appraisal(Status.INSUFFICIENT_DATA, f"{counted}, {needed:.4g} are needed")
    stated, mildest = f"{limit.name} is {limit.text(estimate.value)}", [*limit.levels][-1][1]
    if contested:
        return Appraisal(
            Status.INSUFFICIENT_DATA, f"{stated}: undecided; what came before shows it beyond a limit", undecided=True
        )
    if policy.mode == "adaptive" and lies_beyond(limit, estimate, mildest):
        return Appraisal(
            Status.INSUFFICIENT_DATA,
            f"{stated}: undecided; it lies beyond the limit {limit.text(mildest)}, and one window of a month's may by "
            "chance",
            undecided=True,
        )
    return Appraisal(Status.HEALTHY, f"{stated}; it is not shown to be beyond a limit")


def _fell(evidence: MetricEvidence, wanted: float) -> bool:
    """Whether a fall is reported, and what came since is below this threshold."""
    return evidence.since is not None and round(evidence.since, 9) < wanted


def _worse(
    limit: MetricLimit, kept: KeptShare, evidence: MetricEvidence, *, wanted: float, mode: Mode, series: int
) -> str | None:
    """Why the limit is violated; None without evidence."""
    side = "below" if limit.below else "above"
    name = limit.name
    if mode == "adaptive" and evidence.since is not None and _fell(evidence, wanted):
        return f"{_since(limit, evidence.since)} since it changed: {name} is {side}"
    if mode == "adaptive":
        if evidence.sequence < series:
            return None
        return f"the evidence is {evidence.sequence / series:.3g} times what convinces: {name} is {side}"
    compared = kept.bounds.upper if mode == "bound" else kept.share
    if round(compared, 9) >= wanted:
        return None
    return f"{_since(limit, kept.share)} in the window: {name} is {side}"


def _since(limit: MetricLimit, kept: float) -> str:
    if limit.quantile is not None:
        return f"{1 - kept:.1%} lie beyond the limit"
    low, high = limit.ends
    place = kept if limit.below else 1 - kept
    return f"the mean is {limit.text(low + place * (high - low))}"

"""Declaration: what is watched and when it changes status; the one source of everything about alerts.

The configuration fills it, the runtime evaluates its conditions in process, ``check`` prints it, the metrics export its
limits, and rules for Prometheus can be generated from it.

Thresholds on people's pass rate are put on the judge's scale. Windows, sequences and change detectors follow the
judge's verdicts. People's pass rate is surely below a threshold T where the judge's is below the following, by its
errors on labelled verdicts (``rogan_gladen``, ``ppi``)::

    rogan_gladen    T·s + (1 − T)·(1 − t) − z·sqrt(T²·v(s) + (1 − T)²·v(t))       s, t: right of what people pass, fail
    ppi             T − offset − z·sqrt(v(offset))

z is one-sided at 95 %: what labels leave open is decided in favour of the service. Results are rounded down to
0.01, so that a few more labels change nothing, and clipped to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.cusum import Chart, design
from sidejudge.scoring.statistics.drop_level import BETS, DropLevel
from sidejudge.scoring.statistics.interval import Z_95_ONE_SIDED
from sidejudge.scoring.statistics.ppi import LEAST_LABELS, LabelSums, offset
from sidejudge.scoring.statistics.sequence import GRID, ConfidenceSequence
from sidejudge.scoring.status.hysteresis import NONE, Hysteresis
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.status.status import Policy, Thresholds
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS, MONTH_NS

from .condition import Severity

Correction: TypeAlias = Literal["none", "rogan_gladen", "ppi"]


def judge_scale(bounds: Thresholds, labels: LabelSums | None, correction: Correction) -> Thresholds | Unavailable:
    """The thresholds for the judge's pass rate, or why labels do not determine them."""
    if correction == "none":
        return bounds
    if labels is None or labels.size < LEAST_LABELS - 1e-9:
        known = 0.0 if labels is None else labels.size
        return Unavailable(f"labels count as {known:.3g}, and {LEAST_LABELS} are needed")
    if correction == "ppi":
        found = offset(labels)
        if isinstance(found, Unavailable):
            return found
        more, variance = found
        less = more + Z_95_ONE_SIDED * math.sqrt(variance)
        return _thresholds(bounds.warning - less, bounds.critical - less)
    (right_1, m_1), (right_0, m_0) = labels.true_positive, labels.true_negative
    if m_1 < 1 or m_0 < 1:
        return Unavailable(f"people {'passed' if m_1 < 1 else 'failed'} nothing, so half of the errors are unknown")
    s, t = (right_1 + 1) / (m_1 + 2), (right_0 + 1) / (m_0 + 2)
    if s + t <= 1:
        return Unavailable("the judge does not distinguish what people pass from what they fail")
    v_s, v_t = s * (1 - s) / (m_1 + 2), t * (1 - t) / (m_0 + 2)

    def on_judge(level: float) -> float:
        margin = Z_95_ONE_SIDED * math.sqrt(level**2 * v_s + (1 - level) ** 2 * v_t)
        return level * s + (1 - level) * (1 - t) - margin

    return _thresholds(on_judge(bounds.warning), on_judge(bounds.critical))


def _thresholds(warning: float, critical: float) -> Thresholds:
    warning, critical = (min(1.0, max(0.0, math.floor(100 * each + 1e-9) / 100)) for each in (warning, critical))
    return Thresholds(warning=warning, critical=min(critical, warning))


_OF_CHANGE, _OF_SLIDE, _OF_LEVEL, _OF_DRIFT = 0.5, 0.15, 0.25, 0.1
"""How mode ``adaptive`` divides the budget of false alarms among the four tests that may raise one."""
_OF_METRIC_CHANGE = 0.7
"""A limit on a metric has no test of slide or drift; it has a test of its level."""
_OF_SHARES = 0.25
"""The false alarms of all shares with a limit (blockers, violations) together, as a part of the allowed ones and beside
them, while each is at its limit; below it they are rarer.
"""
_SUSPICIONS = 1.0
"""How often a collapse may be suspected wrongly, as a multiple of the allowed false alarms; it changes no status."""
_OF_DROP = 0.08
"""The chance that a noticed drop is wrongly called critical; per drop, not per month."""
_LEAST_AN_HOUR = 8.0
"""The least number of verdicts an hour that is assumed, because a new service is not yet known to be quiet."""
_BEST_GOOD, _LEAST_GOOD = 0.999, 0.01
"""The best and the least pass ratio that is expected of a service: at 1 a single failure would prove a change, and
from 0 none can fall.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRule:
    """The early warning: a service that passes at ``good`` or better raises it once in ``false_alarm_every_ns``.

    ``good`` and ``bad`` are pass ratios; ``None`` derives them from the rubric's thresholds: ``good`` lies a third of
    the way from the warning threshold to 1 (0.90), ``bad`` midway between the two thresholds (0.775). ``drift_good``
    and ``drift_bad`` are the shares of runs that keep to their scenario, for the early warning that behaviour drifts.
    """

    good: float | None = None
    bad: float | None = None
    drift_good: float = 0.98
    drift_bad: float = 0.90
    false_alarm_every_ns: int = 30 * DAY_NS
    severity: Severity = Severity.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLimits:
    """The limits of the conditions other than the pass ratio.

    Ratios in [0, 1], ``lag_s`` in seconds, ``spool_bytes`` in bytes. ``agreement`` is the least agreement (kappa) of
    the judge with people, ``budget_ratio`` the share of the judge's budget. An alert fires once its limit was passed
    for ``for_ns`` and outlasts that by ``keep_ns``, as in the generated rules; a judge out of reach and the store's
    size need half of ``for_ns``. An alert on the pass ratio follows the status and uses neither.
    """

    blocker_ratio: float = 0.05
    violation_ratio: float = 0.10
    judge_failed_ratio: float = 0.10
    agreement: float = 0.60
    lag_s: float = 300.0
    spool_bytes: int = 2**30
    budget_ratio: float = 0.90
    for_ns: int = 10 * MINUTE_NS
    keep_ns: int = 15 * MINUTE_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Everything that decides about statuses and alerts.

    ``policy`` holds the thresholds of every rubric that ``thresholds`` does not name. ``window_ns`` is how far back a
    look goes, ``look_ns`` the time between looks. ``corrected`` is the method that relates the thresholds to people's
    pass rate.

    ``silence_severity`` is the severity of the alert on missing verdicts. ``slices`` are the dimensions by which parts
    of the traffic are compared with the rest, ``slice_false_alarms`` how many false alarms a month all slices together
    may raise.

    In mode ``adaptive`` a window goes back up to ``longest_ns`` until it holds enough, and ``false_alarms`` is how many
    false alarms a month all services and rubrics together may raise while they are as good as ``good_and_bad`` states.
    They share it evenly: expected numbers add up even where series depend on each other, and the number a month is what
    people put up with. (Benjamini and Hochberg's procedure bounds another number, the share of false alarms in one
    look.)
    """

    policy: Policy = field(default_factory=lambda: Policy(mode="adaptive"))
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    window_ns: int = HOUR_NS
    longest_ns: int = DAY_NS
    false_alarms: float = 1.0
    look_ns: int = MINUTE_NS
    corrected: Correction = "none"
    hysteresis: Hysteresis = field(default_factory=Hysteresis)
    change: ChangeRule = field(default_factory=ChangeRule)
    limits: AlertLimits = field(default_factory=AlertLimits)
    metrics: tuple[MetricLimit, ...] = ()
    silence_severity: Severity = Severity.INFO
    slices: tuple[str, ...] = ("version", "prompt", "model", "name")
    slice_false_alarms: float = 0.25

    def policy_of(self, rubric: str) -> Policy:
        """The policy of one rubric."""
        own = self.thresholds.get(rubric)
        return self.policy if own is None else replace(self.policy, thresholds=own)

    def on_labels(self, labels: Mapping[str, LabelSums]) -> Declaration:
        """This declaration with thresholds on the judge's pass rate where labels determine them."""
        if self.corrected == "none":
            return self
        found = {
            name: judge_scale(self.policy_of(name).thresholds, each, self.corrected) for name, each in labels.items()
        }
        return replace(
            self,
            thresholds={**self.thresholds}
            | {name: each for name, each in found.items() if isinstance(each, Thresholds)},
        )

    @property
    def reach_ns(self) -> int:
        """How far back a window may go, in ns."""
        return max(self.window_ns, self.longest_ns) if self.policy.mode == "adaptive" else self.window_ns

    @property
    def rule(self) -> Hysteresis:
        """The hysteresis in force; none in mode ``point``, whose status depends on the present moment alone."""
        if self.policy.mode == "adaptive":  # its evidence is made to be looked at all the time
            return replace(self.hysteresis, needed=1, looks=1)
        return NONE if self.policy.mode == "point" else self.hysteresis

    def new_sequence(self, rubric: str) -> ConfidenceSequence:
        """A confidence sequence with levels at the rubric's thresholds, at the recovery thresholds, and for a bound."""
        plain = self.policy_of(rubric).thresholds
        raised = plain.raised(self.rule.recovery_margin)
        return self.sequence_at((*GRID, plain.warning, plain.critical, raised.warning, raised.critical))

    def sequence_at(self, levels: Iterable[float]) -> ConfidenceSequence:
        """A confidence sequence with these levels, under its part of the budget of false alarms."""
        return ConfidenceSequence(levels, error=self.level_error, period_ns=MONTH_NS)

    @property
    def level_error(self) -> float:
        """The chance that a confidence sequence is wrong within a month."""
        return min(0.5, _OF_LEVEL * self.false_alarms)

    def metric_chart(self, threshold: float, values_per_window: float, series: int) -> Chart:
        """The change detector's limits for one series of a metric with a limit, given the number of series.

        It distinguishes a mean a third of the way from the threshold to 1 from a mean half as far below the threshold
        as 1 lies above it. For a 95th percentile: 3.3 % of values beyond the limit from 7.5 %.
        """
        good = min(threshold + (1 - threshold) / 3, _BEST_GOOD)
        bad = _apart(good, max(threshold - (1 - threshold) / 2, threshold / 2))
        if self.policy.mode == "adaptive":
            return design(good, bad, self._run_length(values_per_window, series, _OF_METRIC_CHANGE))
        return self._design(good, bad, values_per_window)

    def good_and_bad(self, rubric: str) -> tuple[float, float]:
        """The pass ratios that the change detector distinguishes; 0 < bad < good < 1, whatever the thresholds are."""
        bounds = self.policy_of(rubric).thresholds
        good = self.change.good if self.change.good is not None else bounds.warning + (1 - bounds.warning) / 3
        good = min(good, _BEST_GOOD)
        bad = self.change.bad if self.change.bad is not None else (bounds.warning + bounds.critical) / 2
        return good, _apart(good, bad)

    def usual(self, rubric: str, baseline: float) -> float:
        """The pass ratio that a service's change detector takes for good, given its usual ratio (``Baseline``).

        At least the warning threshold, at most a third of the way from *good* to 1: where a service falls from higher
        and stays healthy, its new ratio is soon the usual one. In steps of 0.01, so that few charts are designed; above
        0, whatever the threshold is.
        """
        good, _ = self.good_and_bad(rubric)
        least = max(_LEAST_GOOD, min(good, self.policy_of(rubric).thresholds.warning))
        return max(least, math.floor(100 * min(baseline, good + (1 - good) / 3) + 1e-9) / 100)

    def chart(self, rubric: str, verdicts_per_window: float, series: int = 1, baseline: float | None = None) -> Chart:
        """The change detector's limits for one series, given its traffic and the number of series.

        The run length is the number of verdicts in the promised time, rounded up to a power of two (in mode
        ``adaptive`` of its fourth root) so that the limit does not follow every change of the traffic. A minimum of a
        few verdicts a window is assumed. Mode ``adaptive`` measures from the ``baseline`` of the service.
        """
        good, bad = self.good_and_bad(rubric)
        if self.policy.mode == "adaptive":
            if baseline is not None:
                good = self.usual(rubric, baseline)
                bad = _apart(good, bad)
            return design(good, bad, self._run_length(verdicts_per_window, series, _OF_CHANGE))
        return self._design(good, bad, verdicts_per_window)

    def drift_chart(self, verdicts_per_window: float, series: int = 1, baseline: float | None = None) -> Chart:
        """The limits for the share of runs that keep to their scenario, with mode ``adaptive``'s budget.

        It measures from the ``baseline`` of the service, held between the largest share that may depart and
        ``drift_good``.
        """
        if self.policy.mode == "adaptive":
            wanted = self._run_length(verdicts_per_window, series, _OF_DRIFT)
            good, bad = self.change.drift_good, self.change.drift_bad
            if baseline is not None:
                least = max(_LEAST_GOOD, 1 - self.limits.violation_ratio)
                good = min(good, max(least, math.floor(100 * baseline + 1e-9) / 100))
                bad = _apart(good, bad)
            return design(good, bad, wanted)
        return self._design(self.change.drift_good, self.change.drift_bad, verdicts_per_window)

    @property
    def share_false_alarms(self) -> float:
        """False alarms a month of all shares with a limit together, each at its limit, in mode ``adaptive``."""
        return _OF_SHARES * self.false_alarms

    def share_chart(self, limit: float, verdicts_per_window: float, series: int) -> Chart:
        """Mode ``adaptive``: the chart that distinguishes a share at its limit from one half as large again."""
        good = min(max(1 - limit, _LEAST_GOOD), _BEST_GOOD)
        return design(good, _apart(good, 1.0), self._run_length(verdicts_per_window, series, _OF_SHARES))

    def _design(self, good: float, bad: float, verdicts_per_window: float) -> Chart:
        wanted = max(32, verdicts_per_window) * max(1.0, self.change.false_alarm_every_ns / self.window_ns)
        return design(good, bad, float(2 ** max(5, (round(wanted) - 1).bit_length())))

    def slide_chart(self, rubric: str, verdicts_per_window: float, series: int, anchor: float) -> Chart:
        """Mode ``adaptive``: the chart of a slow decay, from the ratio of the last week (``Anchor``).

        It distinguishes that ratio from the warning threshold or, where both are close, from a ratio with half as many
        failures again.
        """
        good = self.usual(rubric, anchor)
        bad = _apart(good, self.policy_of(rubric).thresholds.warning)
        return design(good, bad, self._run_length(verdicts_per_window, series, _OF_SLIDE))

    def collapse_chart(self, rubric: str, verdicts_per_window: float, series: int = 1) -> Chart:
        """Mode ``adaptive``: the chart that suspects a collapse, also of a service without a usual ratio yet.

        It distinguishes the warning threshold from a pass ratio below the critical one, by half the distance of the two
        thresholds.
        """
        bounds = self.policy_of(rubric).thresholds
        good = min(max(bounds.warning, 0.02), _BEST_GOOD)
        bad = bounds.critical - (bounds.warning - bounds.critical) / 2
        bad = _apart(good, bad)
        return design(good, bad, self._run_length(verdicts_per_window, series, _SUSPICIONS))

    def new_drop_level(self, rubric: str) -> DropLevel:
        """Mode ``adaptive``: the test that decides whether a drop is critical."""
        critical = self.policy_of(rubric).thresholds.critical
        return DropLevel(min(max(critical, 1e-4), 1 - 1e-4), _OF_DROP)

    def metric_drop_level(self, threshold: float) -> DropLevel:
        """The same for a limit on a metric, with a lower stake too: a percentile's threshold is near 1."""
        level = min(max(threshold, 1e-4), 1 - 1e-4)
        return DropLevel(level, _OF_DROP, (min(BETS[0], (1 - level) / 2), *BETS))

    def slice_chart(self, rubric: str, verdicts_per_window: float, series: int, usual: float) -> Chart:
        """The chart of a slice against the threshold, given the number of slices; designed as ``chart`` is."""
        good = self.usual(rubric, usual)
        bad = _apart(good, self.good_and_bad(rubric)[1])
        wanted = self._verdicts_a_month(verdicts_per_window) * max(1, series) / self.slice_false_alarms
        return design(good, bad, float(2 ** max(5, math.ceil(math.log2(wanted) - 1e-9))))

    def slice_limit(self, verdicts_per_window: float, series: int) -> float:
        """The evidence, in nats, that shows a slice to be worse, given the number of slices; tested once a look."""
        blocks = min(self._verdicts_a_month(verdicts_per_window), MONTH_NS / self.look_ns)
        return math.log(max(32.0, blocks * max(1, series) / self.slice_false_alarms))

    def _verdicts_a_month(self, verdicts_per_window: float) -> float:
        """Verdicts in a month, at least the assumed minimum."""
        return max(_LEAST_AN_HOUR * MONTH_NS / HOUR_NS, verdicts_per_window * MONTH_NS / self.window_ns)

    def _run_length(self, verdicts_per_window: float, series: int, part: float) -> float:
        """The number of verdicts per false alarm that this part of the budget allows one of the series."""
        wanted = max(32.0, self._verdicts_a_month(verdicts_per_window) * max(1, series) / (self.false_alarms * part))
        return float(2 ** (math.ceil(4 * math.log2(wanted) - 1e-9) / 4))


def _apart(good: float, bad: float) -> float:
    """The bad ratio of a chart: with half as many failures again as *good* at least, and above 0."""
    return max(min(bad, good - (1 - good) / 2), good / 100)

"""The section of the configuration on what is watched and when it changes status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.trace.time_units import MONTH_NS

from .metric_limits import MetricLimitSection
from .notify import LinksSection, NotifySection, ReportSection, names
from .section import BY_RUBRIC, GIVEN_AS_LIST, Rate, RubricName, Section, Share
from .units import Duration, PositiveDuration, SizeField, parse_duration

Slice: TypeAlias = Annotated[str, Field(pattern=r"^(version|prompt|model|name|metadata\..{1,100})$")]
"""A dimension that divides the traffic."""
_DEFAULT: Final = Declaration()
"""The defaults of all figures that decide on a status; they are declared there and only referred to here."""
_MOST_FALSE_ALARMS: Final = 1000
FEWEST_FALSE_ALARMS: Final = 1e-9
"""The fewest false alarms a month: promising fewer would change nothing and overflow the numbers."""


class ThresholdsSection(Section):
    """Pass rates at which the status changes."""

    warning: Rate = _DEFAULT.policy.thresholds.warning
    """below this pass rate the status is `warning`"""
    critical: Rate = _DEFAULT.policy.thresholds.critical
    """below this pass rate the status is `critical`; less than `warning`"""

    @model_validator(mode="after")
    def _in_order(self) -> ThresholdsSection:
        if self.critical >= self.warning:
            raise ValueError(f"critical ({self.critical:g}) must be less than warning ({self.warning:g})")
        return self


class OwnThresholdsSection(Section):
    """Thresholds of one rubric; a missing one comes from `alerts.thresholds`."""

    warning: Rate | None = None
    """below this pass rate the status is `warning`"""
    critical: Rate | None = None
    """below this pass rate the status is `critical`"""


class HysteresisSection(Section):
    """How lasting evidence must be; mode `point` has none of it."""

    needed: int = Field(default=_DEFAULT.hysteresis.needed, ge=1)
    """looks that must agree before the status changes; at most `looks`"""
    looks: int = Field(default=_DEFAULT.hysteresis.looks, ge=1, le=1000)
    """the number of last looks that `needed` counts in"""
    recovery_margin: Share = Field(default=_DEFAULT.hysteresis.recovery_margin, lt=1.0)
    """a status gets better only against thresholds that are higher by this"""
    hold: Duration = Duration(_DEFAULT.hysteresis.hold_ns)
    """a status gets better only after this long"""

    @model_validator(mode="after")
    def _can_agree(self) -> HysteresisSection:
        if self.needed > self.looks:
            raise ValueError(f"needed ({self.needed}) must be at most looks ({self.looks})")
        return self


class SequenceSection(Section):
    """Old settings of mode `sequence`, read for one version: together they are `false_alarms_per_month`."""

    error: Rate = Field(default=0.05, lt=1.0)
    """chance of a false alarm within `period`, in (0, 1)"""
    period: PositiveDuration = Duration(MONTH_NS)
    """the time that `error` is promised for"""


class ChangeSection(Section):
    """The early warnings of a falling pass rate, and of behaviour that drifts from its scenario (CUSUM)."""

    good: Rate | None = Field(default=None, lt=1.0)
    """pass rate of a good service; default: a third of the way from the warning threshold to 1 (0.9)"""
    bad: Rate | None = Field(default=None, lt=1.0)
    """pass rate that is to be noticed, less than `good`; default: midway between the thresholds (0.775)"""
    false_alarm_every: PositiveDuration = Duration(_DEFAULT.change.false_alarm_every_ns)
    """mean time between false early warnings of a good service, at least; mode `adaptive` has `false_alarms_per_month`
    instead"""
    severity: Literal["critical", "warning", "info"] = "warning"
    """severity of the early warning"""

    drift_good: float = Field(default=_DEFAULT.change.drift_good, gt=0.0, lt=1.0)
    """share of runs that keep to their scenario when nothing has changed; mode `adaptive` measures from the service's
    usual share, at most from this
    """
    drift_bad: float = Field(default=_DEFAULT.change.drift_bad, gt=0.0, lt=1.0)
    """the share that is to be noticed, less than `drift_good`"""

    @model_validator(mode="after")
    def _in_order(self) -> ChangeSection:
        if self.drift_bad >= self.drift_good:
            raise ValueError(f"drift_bad ({self.drift_bad:g}) must be less than drift_good ({self.drift_good:g})")
        if self.good is not None and self.bad is not None and self.bad >= self.good:
            raise ValueError(f"bad ({self.bad:g}) must be less than good ({self.good:g})")
        return self


class SilenceSection(Section):
    """A service of which no verdict comes for longer than is plausible at that hour: its status is `no_data`."""

    severity: Literal["critical", "warning", "info"] = "info"
    """severity of the alert that verdicts no longer come (`traffic_stopped`)"""


class LimitsSection(Section):
    """Limits of the alerts other than the pass rate."""

    blocker_rate: Share = _DEFAULT.limits.blocker_ratio
    """share of verdicts that one metric's blocker may hit"""
    violation_rate: Share = _DEFAULT.limits.violation_ratio
    """share of traces that may depart from their scenario"""
    judge_failure_rate: Share = _DEFAULT.limits.judge_failed_ratio
    """share of verdicts that may be incomplete because of the judge"""
    agreement: Share = _DEFAULT.limits.agreement
    """least agreement of the judge with people, Cohen's kappa"""
    lag: PositiveDuration = Duration(int(_DEFAULT.limits.lag_s * 10**9))
    """95th percentile of the time from when a trace's last span came to its verdict"""
    spool: SizeField = _DEFAULT.limits.spool_bytes
    """size of the working store on disk"""
    budget: Share = _DEFAULT.limits.budget_ratio
    """share of the judge's budget of an hour or a day that may be spent"""
    lasting: Duration = Duration(_DEFAULT.limits.for_ns)
    """how long one of these must be passed before its alert fires; half of it: a judge out of reach, the store's
    size"""
    keep: Duration = Duration(_DEFAULT.limits.keep_ns)
    """how long the alert outlasts the violation, so that it does not flap"""


class AlertsSection(Section):
    """When the status is healthy, warning, critical or unknown, and what raises an alert."""

    thresholds: ThresholdsSection = ThresholdsSection()
    rubrics: Annotated[Mapping[RubricName, OwnThresholdsSection], BY_RUBRIC] = Field(default_factory=dict)
    """thresholds of single rubrics, by rubric id"""
    window: PositiveDuration = Duration(_DEFAULT.window_ns)
    """verdicts of this last while make the status"""
    min_samples: int = Field(default=int(_DEFAULT.policy.min_samples), ge=1)
    """fewer verdicts in the window than this: `insufficient_data`"""
    min_failures: int = Field(default=_DEFAULT.policy.min_failures, ge=1)
    """fewer failures in the window than this raise nothing (mode `bound`)"""
    longest_window: PositiveDuration = Duration(_DEFAULT.longest_ns)
    """mode `adaptive`: how far back a window may reach to hold `min_samples`"""
    false_alarms_per_month: float = Field(
        default=_DEFAULT.false_alarms, gt=0, le=_MOST_FALSE_ALARMS, allow_inf_nan=False
    )
    """mode `adaptive`: false alarms a month that all good services and rubrics together may raise"""
    cluster: str = Field(default="session", pattern=r"^(session|user|none|metadata\..+)$")
    """what groups verdicts that pass and fail together, and so carry less information: `session`, `user`,
    `metadata.KEY`, `none`
    """
    slices: Annotated[tuple[Slice, ...], GIVEN_AS_LIST] = Field(default=_DEFAULT.slices, max_length=8)
    """dimensions of the traffic, to find a part that is worse than the others (`version_worse`, `slice_worse`) and to
    explain an alert on a pass ratio: `version`, `prompt`, `model`, `name` (of the trace), `metadata.KEY` such as
    `metadata.tenant`
    """
    slice_false_alarms_per_month: float = Field(default=_DEFAULT.slice_false_alarms, gt=0, le=1000, allow_inf_nan=False)
    """false alarms a month that all parts of the traffic of all services together may raise, in addition to
    `false_alarms_per_month`
    """
    mode: Literal["adaptive", "bound", "point", "sequence"] = "adaptive"
    """`adaptive`: change detectors and a confidence sequence under one budget of false alarms, right at any traffic;
    `bound`: the upper confidence bound of the pass rate is compared; `point`: the pass rate; `sequence`: an old name of
    `adaptive`, read for one version"""
    corrected: Literal["none", "rogan_gladen", "ppi"] = "none"
    """whose pass rate the thresholds are about: `none`: the judge's; `rogan_gladen`, `ppi`: the rate that people would
    find, computed from their labels in Langfuse, with the uncertainty in the service's favour. With fewer than 30
    labels of a rubric: the judge's
    """
    look: PositiveDuration = Duration(_DEFAULT.look_ns)
    """time between two looks at all of it"""
    hysteresis: HysteresisSection = HysteresisSection()
    sequence: SequenceSection = SequenceSection()
    change: ChangeSection = ChangeSection()
    silence: SilenceSection = SilenceSection()
    limits: LimitsSection = LimitsSection()
    metrics: Annotated[tuple[MetricLimitSection, ...], GIVEN_AS_LIST] = ()
    """limits of continuous metrics: latency, cost, tokens, graded scores"""
    notify: Annotated[tuple[NotifySection, ...], GIVEN_AS_LIST] = ()
    """receivers of alerts; without any, only the page, the API and the metrics show them"""
    remind: PositiveDuration = parse_duration("4h")
    """an alert that still fires is sent again after this long"""
    links: LinksSection = LinksSection()
    instance: str | None = Field(default=None, min_length=1)
    """name of this monitor in notices, where several watch the same services (a Pod's: `${POD_NAME}`); each then has
    its own alerts, so that none ends an alert of another; alerts of a fleet (`fleet.database`) stay shared
    """
    report: ReportSection | None = None
    """no daily report unless this section is there"""

    @property
    def false_alarms(self) -> float:
        """False alarms a month; under the old mode `sequence` what its settings promised, unless the key is set."""
        found = self.false_alarms_per_month
        if self.mode == "sequence" and "false_alarms_per_month" not in self.model_fields_set:
            found = min(_MOST_FALSE_ALARMS, self.sequence.error * MONTH_NS / self.sequence.period.ns)
        return max(FEWEST_FALSE_ALARMS, found)

    @field_validator("notify")
    @classmethod
    def _reported_apart(cls, notify: tuple[NotifySection, ...]) -> tuple[NotifySection, ...]:
        names(notify)
        return notify

    @model_validator(mode="after")
    def _in_order(self) -> AlertsSection:
        for name, own in self.rubrics.items():
            warning = self.thresholds.warning if own.warning is None else own.warning
            critical = self.thresholds.critical if own.critical is None else own.critical
            if critical >= warning:
                raise ValueError(f"rubrics.{name}: critical ({critical:g}) must be less than warning ({warning:g})")
        return self

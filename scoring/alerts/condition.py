"""Condition: one watched thing, as a value with one function. The facts of one look come in, findings go out.

Facts are all that is known at one look, as plain values; a finding is what it found of one instance of a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from sidejudge.scoring.statistics.estimate import Estimate, MeanEstimate
from sidejudge.scoring.statistics.judge_drift import JudgeDrift
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.snapshots import JudgeSnapshot
from sidejudge.scoring.trace.time_units import MINUTE_NS

REFUSED_NS: Final = 15 * MINUTE_NS
"""The time in which refused requests are counted."""


VIOLATION: Final = ""
"""The name of the violations' share among the shares of blocking metrics."""


class BeyondLimit(NamedTuple):
    """A share that is proven to be beyond its limit: the share itself, in [0, 1], since an estimated time in ns."""

    share: float
    since_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """One (service, environment, rubric) over its window. Shares are estimates that count the event as a *failure*.

    ``blocked`` by metric, ``means`` by metric, ``violating`` of workflow verdicts, ``keeping`` of these with departures
    from signs too, ``judge_failed`` of all verdicts.
    ``beyond``: shares that are beyond their limit, by metric that blocks (``VIOLATION``: of violations); None outside
    mode ``adaptive`` and of a window that is not followed: there the bounds of the shares decide.
    ``acceptable`` gives by metric the end of its acceptable band and whether higher is better.
    """

    status: ServiceStatus
    beyond: Mapping[str, BeyondLimit] | None = None
    blocked: Mapping[str, Estimate] = field(default_factory=dict)
    means: Mapping[str, MeanEstimate] = field(default_factory=dict)
    acceptable: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    violating: Estimate | None = None
    keeping: Estimate | None = None
    judge_failed: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far a judge agrees with people on one rubric: kappa with its upper bound, from ``n`` pairs."""

    rubric: str
    kappa: float
    upper: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorFacts:
    """What a monitor knows of itself.

    ``unusable`` gives by destination or source why it cannot be used, empty while it can. ``waiting_s`` is the age of
    the oldest unsent item by destination. ``refused`` counts requests with spans that were answered with an error in
    the last ``REFUSED_NS``, by status. ``odd`` gives the cause by kind of traffic anomaly, empty while there is none.
    ``trouble`` is why nothing can be kept, judged or decided, ``behind_s`` how long the oldest trace has waited to be
    judged.
    """

    unusable: Mapping[str, str] = field(default_factory=dict)
    waiting_s: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    odd: Mapping[str, str] = field(default_factory=dict)
    trouble: str | None = None
    behind_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that conditions read, at ``now_ns``. Unknown values are ``None``, never 0.

    ``monitor`` is what the process knows of itself; None where a fleet is watched. ``lag_s`` is the 95th percentile of
    the evaluation lag over the last ``lag_n`` traces.
    """

    now_ns: int
    windows: Sequence[WindowFacts] = ()
    lag_s: float | None = None
    lag_n: int = 0
    spool_bytes: int | None = None
    judge: JudgeSnapshot | None = None
    agreements: Sequence[Agreement] = ()
    drifts: Sequence[JudgeDrift] = ()
    metrics: Sequence[MetricStatus] = ()
    monitor: MonitorFacts | None = None


Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels that distinguish the instances of a condition: (name, value) in the condition's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFinding:
    """``breached`` is ``None`` if there is too little data: neither a breach nor a recovery.

    ``undecided``: the data contradict themselves, and an alert that exists stays as it was. ``shown``: the figures
    beside it show it too; where only evidence of what came before does, an alert that was muted or unknown stays so.

    ``value``, ``lower``, ``upper`` and ``limit`` are in the condition's unit, ``None`` where there is none; ``n`` is
    the sample size since ``measured_ns``, of a pass ratio with ``failures`` among them. ``stated`` is one sentence.
    ``changed_ns`` is the estimated time of the change.
    """

    labels: Labels
    breached: bool | None
    stated: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    n: int | None = None
    failures: int | None = None
    limit: float | None = None
    changed_ns: int | None = None
    measured_ns: int | None = None
    undecided: bool = False
    shown: bool = True


Unit: TypeAlias = Literal["ratio", "seconds", "bytes", "count", "metric"]
"""The unit of the value and the limit; ``metric`` stands for the unit of the metric that the label names."""
Scope: TypeAlias = tuple[
    Literal[
        "service", "environment", "rubric", "metric", "model", "period", "slice", "value", "connection", "code", "kind"
    ],
    ...,
]
"""The labels that distinguish its instances; without labels there is one instance."""

PLACE: Scope = ("service", "environment", "rubric")


class Severity(StrEnum):
    """``critical`` wakes somebody, ``warning`` waits for the morning, ``info`` is for people who look.

    The monitor's own troubles are never critical: nobody is woken because of the monitor.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A watched condition and its alert.

    ``when`` describes when it is breached, with the limits in force; ``meaning`` describes what that means to people;
    ``runbook`` is the slug of the runbook page. ``limit`` is set where one number holds for all instances. While
    ``muted_by`` (an id) fires for the same labels, this alert is muted. ``examples``: failing traces illustrate it. A
    text beside the type of a field is what the API's schema says of it.
    """

    id: str
    severity: Severity
    title: str
    when: str
    meaning: str
    scope: Annotated[Scope, "labels that distinguish its alerts"]
    unit: Unit
    find: Callable[[Observed], Iterable[AlertFinding]]
    limit: float | None = None
    for_ns: Annotated[int, "it fires once it was breached for this long"] = 0
    keep_ns: Annotated[int, "it resolves once it was not breached for this long"] = 0
    muted_by: str | None = None
    examples: bool = False

    @property
    def runbook(self) -> str:
        """The slug of its runbook: ``pass-rate-critical``."""
        return self.id.replace("_", "-")

    @property
    def alert_name(self) -> str:
        """Its name among Prometheus' alerts: ``SidejudgePassRateCritical``."""
        return alert_name(self.id)


def alert_name(condition: str) -> str:
    """The name of a condition's alert among Prometheus' alerts.

    >>> alert_name("pass_rate_critical")
    'SidejudgePassRateCritical'
    """
    return "Sidejudge" + "".join(word.capitalize() for word in condition.split("_"))

"""Facts: everything that conditions may read at one look, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.scoring.statistics.estimate import Estimate, MeanEstimate
from sidejudge.scoring.statistics.judge_drift import JudgeDrift
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.snapshots import JudgeSnapshot

REFUSED_NS: Final = 15 * 60 * 10**9
"""The time in which refused requests are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """One (service, environment, rubric) over its window. Shares are estimates that count the event as a *failure*.

    ``blocked`` by metric, ``means`` by metric, ``violating`` of workflow verdicts, ``judge_failed`` of all verdicts.
    ``acceptable`` gives by metric the end of its acceptable band and whether higher is better.
    """

    status: ServiceStatus
    blocked: Mapping[str, Estimate] = field(default_factory=dict)
    means: Mapping[str, MeanEstimate] = field(default_factory=dict)
    acceptable: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    violating: Estimate | None = None
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
    ``trouble`` is why nothing can be kept or judged, ``behind_s`` how long the oldest trace has waited to be judged.
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

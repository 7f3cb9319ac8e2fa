"""Facts: what is known at one look, as plain values: all that conditions may go by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.statistics.judge_drift import JudgeDrift
from sidejudge.scoring.statistics.mean import MeanEstimate
from sidejudge.scoring.status.judge_snapshot import JudgeSnapshot
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """One (service, environment, rubric) over its window. Shares are estimates whose *failures* are the events.

    ``blocked`` by metric, ``means`` by metric, ``violating`` of workflow verdicts, ``judge_failed`` of all verdicts.
    ``acceptable`` is, for a metric, where its acceptable band ends, and whether higher is better.
    """

    status: ServiceStatus
    blocked: Mapping[str, Estimate] = field(default_factory=dict)
    means: Mapping[str, MeanEstimate] = field(default_factory=dict)
    acceptable: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    violating: Estimate | None = None
    judge_failed: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far a judge agrees with people on one rubric: kappa with its upper bound, of ``n`` pairs."""

    rubric: str
    kappa: float
    upper: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that conditions read, at ``now_ns``. What is not known is ``None``, never 0.

    ``lag_s`` is the 95th percentile of the evaluation lag over the last ``lag_n`` traces.
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

"""Service status: one service under one rubric at one moment. Metrics, API and status page show the same.

Slice status: a part of a service's traffic, such as a tenant or a version, beside all the rest of it.

Silence: since when a service has had no verdict, and why, as far as a monitor knows.

Fleet report: the status of the whole fleet, who belongs to it, and what this monitor adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.statistics.interval import MissingBand
from sidejudge.scoring.statistics.ppi import Corrected

from .snapshots import CascadeSnapshot
from .status import Appraisal, Thresholds

RELEASED: Final = ("version", "prompt", "model")
"""What is released: one is worse than the others, whatever it passes. Of anything else the level counts."""
OTHERS: Final = "__other__"
"""The value of all that are too many to be kept apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceStatus:
    """The traffic that has ``value`` in the dimension ``by``. The value comes from traces: escape it.

    ``estimate`` is of its verdicts within the window, ``others`` of all others then; both as verdicts were first.
    ``worse``: its alert is raised. ``share`` is how far it is from that, 1 at the limit, ``since_ns`` since when it
    seems to be so.
    """

    by: str
    value: str
    estimate: Estimate | None
    others: Estimate | None
    worse: bool = False
    share: float = 0.0
    since_ns: int | None = None

    @property
    def stated(self) -> str:
        """Both figures in short, without what the traffic is called."""
        rest = "" if self.others is None else f", others {self.others.pass_ratio:.2f} (n = {self.others.n:,})"
        if self.estimate is None:
            return f"no verdict{rest}"
        return f"{self.estimate.pass_ratio:.2f} pass (n = {self.estimate.n:,}){rest}"


UNKNOWN_SERVICE = "unknown_service"
"""The service of a trace that names none, as OpenTelemetry's resource conventions have it."""
UNKNOWN_ENVIRONMENT = "unknown"
"""The environment of a trace that names none."""
OTHER = "__other__"
"""What all services and environments are called that are too many to be distinguished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """The change detector's state: its score as a share of its limit, which it may exceed by one failure.

    It distinguishes pass ratios of ``good`` and ``bad``; at ``good`` it raises a false alarm once in ``run_length``
    verdicts, or more rarely. ``alarmed`` until the score is back at 0; ``since_ns`` is the estimated time of the
    change.
    """

    share: float
    alarmed: bool
    good: float
    bad: float
    run_length: float
    since_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """The window of one (service, environment, rubric).

    ``estimate`` is ``None`` without a verdict that passed or failed. ``incomplete`` counts verdicts that did neither,
    ``judge_failed`` those of them that did not because the judge failed, ``forced`` those that only a sampling rule
    drew. Means are weighted as the estimate is: ``composite_mean`` over the verdicts with a composite, in [0, 1];
    ``metric_means`` over those with a value, in the metric's unit. ``missing`` is how
    far the pass ratio could lie off for the incomplete verdicts. Where a history is kept: ``since_ns`` the status is
    what it is, ``sequence_upper`` the upper bound that holds at all times (mode ``adaptive``), and the ``change``
    detector; ``drift`` is the same for the share that keeps to its scenario. ``corrected`` is the pass rate that people
    would have found by Rogan and Gladen, ``rectified`` by prediction-powered inference; None where labels are too few.
    ``cascade`` is what a stronger judge changed, None without a cascade; with one, the estimate is of the strongest
    judge's pass ratio. ``last_ns`` is the time of the last verdict that passed or failed, ``reach_ns`` how far back the
    window reaches, None where nobody asked; ``silence`` is what is known of a service with the status *no data*.
    ``slices`` are the parts of its traffic that are worse than the others, or come nearest to it, the worst first.
    """

    service: str
    environment: str
    rubric: str
    estimate: Estimate | None
    appraisal: Appraisal
    incomplete: int = 0
    judge_failed: int = 0
    forced: int = 0
    composite_mean: float | None = None
    metric_means: Mapping[str, float] = field(default_factory=dict)
    missing: MissingBand | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    since_ns: int | None = None
    sequence_upper: float | None = None
    change: StatusChange | None = None
    drift: StatusChange | None = None
    corrected: Corrected | None = None
    rectified: Corrected | None = None
    cascade: CascadeSnapshot | None = None
    last_ns: int | None = None
    reach_ns: int | None = None
    silence: Silence | None = None
    slices: tuple[SliceStatus, ...] = ()


MonitorState: TypeAlias = Literal["working", "quiet", "left", "gone"]
"""There, with verdicts in the window; there, without any; ended in order; not seen though it did not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMonitor:
    """One monitor. ``seen_s`` is how long ago it was last there; ``verdicts`` are its part of the fleet's window."""

    name: str
    version: str
    host: str
    started_s: float
    seen_s: float
    state: MonitorState
    verdicts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """The fleet from one monitor, ``name``.

    ``services`` are the fleet's, reached by ``leader`` at ``at_ns``. While no status of the fleet is known they are
    this monitor's own, ``leader`` and ``at_ns`` are None, and ``alone`` is why. ``own`` are always its own: its share.
    ``other_settings`` is what to do where the leader has watched by another configuration for long.
    """

    name: str
    monitors: Sequence[FleetMonitor]
    services: Sequence[ServiceStatus]
    own: Sequence[ServiceStatus]
    leader: str | None = None
    at_ns: int | None = None
    alone: str | None = None
    other_settings: str | None = None

    def own_verdicts(self, status: ServiceStatus) -> int:
        """How many verdicts of a service under a rubric this monitor has reached within its own window."""
        place = (status.service, status.environment, status.rubric)
        found = (each for each in self.own if (each.service, each.environment, each.rubric) == place)
        return next((each.estimate.n for each in found if each.estimate is not None), 0)


_MINUTE_NS, _HOUR_NS = 60 * 10**9, 3_600 * 10**9


class SilenceCause(StrEnum):
    """How far what the service sends still comes."""

    NO_SPANS = "no_spans"
    NONE_SAMPLED = "none_sampled"
    NONE_JUDGED = "none_judged"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


_SAID: Final = {
    SilenceCause.NO_SPANS: "no spans of it arrive",
    SilenceCause.NONE_SAMPLED: "its spans arrive and none is sampled",
    SilenceCause.NONE_JUDGED: "its traces are sampled and none is judged",
    SilenceCause.INCOMPLETE: "its verdicts are incomplete: none passed or failed",
    SilenceCause.UNKNOWN: "why is not known",
}
PAGES: Final = dict.fromkeys(SilenceCause, "how-to/missing-trace") | {SilenceCause.NONE_SAMPLED: "how-to/sampling"}
"""The page of the documentation that goes on from each cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No verdict passed or failed since ``since_ns``, in ns since the epoch, and that is not usual at this hour."""

    since_ns: int
    cause: SilenceCause

    def stated(self, now_ns: int) -> str:
        """One short sentence: how long, and why."""
        return f"last verdict {_ago(now_ns - self.since_ns)} ago, which is not usual; {_SAID[self.cause]}"

    @property
    def page(self) -> str:
        """The address of the page in the monitor's own documentation."""
        return f"/help/{PAGES[self.cause]}"


def _ago(ns: int) -> str:
    if ns < 2 * _HOUR_NS:
        return f"{max(1, ns // _MINUTE_NS)} min"
    return f"{ns // _HOUR_NS} h" if ns < 72 * _HOUR_NS else f"{ns // (24 * _HOUR_NS)} days"

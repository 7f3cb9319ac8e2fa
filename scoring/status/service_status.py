"""Service status: one service under one rubric at one moment. Metrics, API and status page show the same.

A slice is a part of its traffic, such as a tenant or a version, compared with the rest. A silence states since when a
service has had no verdict, and why, as far as is known. The fleet report joins the statuses of all monitors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.statistics.interval import MissingBand
from sidejudge.scoring.statistics.ppi import Corrected
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS

from .snapshots import CascadeSnapshot
from .status import Appraisal, Thresholds

RELEASED: Final = ("version", "prompt", "model")
"""Dimensions that are released: a value is worse if it is worse than the others, whatever its level. In other
dimensions the level counts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceStatus:
    """The traffic that has ``value`` in the dimension ``by``. The value comes from traces: escape it.

    ``estimate`` covers its verdicts within the window, ``others`` all other verdicts then; both in their first version.
    ``worse``: its alert is raised. ``share`` is the evidence as a share of the limit, ``since_ns`` its estimated
    beginning.
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
        """Both figures in short, without the name of the slice."""
        rest = "" if self.others is None else f", others {self.others.pass_ratio:.2f} (n = {self.others.n:,})"
        if self.estimate is None:
            return f"no verdict{rest}"
        return f"{self.estimate.pass_ratio:.2f} pass (n = {self.estimate.n:,}){rest}"


UNKNOWN_SERVICE = "unknown_service"
"""The service of a trace that names none, as OpenTelemetry's resource conventions have it."""
UNKNOWN_ENVIRONMENT = "unknown"
"""The environment of a trace that names none."""
OTHER: Final = "__other__"
"""The joint name of all services, environments or values of a dimension beyond the limit of distinct ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """The change detector's state: its score as a share of its limit, which it may exceed by one failure.

    ``alarmed`` lasts until the score is back at 0. A text beside the type of a field is what the API's schema says of
    it.
    """

    alarmed: bool
    share: Annotated[float, "share of what raises the early warning"]
    since_ns: Annotated[int | None, "estimated time of the change; null: nothing speaks for one"] = None
    good: Annotated[float, "pass ratio that it distinguishes from `bad`"]
    bad: float
    run_length: Annotated[float, "mean number of verdicts to a false alarm, at `good`"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """The window of one (service, environment, rubric).

    ``estimate`` is ``None`` without a verdict that passed or failed. ``incomplete`` counts verdicts that did neither,
    ``judge_failed`` those of them whose judge failed, ``forced`` those drawn only by a sampling rule. Means are
    weighted as the estimate is: ``composite_mean`` over the verdicts with a composite, in [0, 1]; ``metric_means`` over
    those with a value, in the metric's unit. ``missing`` is the range of the pass ratio over all outcomes of the
    incomplete verdicts. Where a history is kept: ``since_ns`` is the beginning of the status, ``sequence_upper`` the
    upper bound that holds at all times (mode ``adaptive``), ``change`` the change detector; ``drift`` is the same for
    the share that keeps to its scenario. ``corrected`` is the pass rate that people would find, by Rogan and Gladen,
    ``rectified`` by prediction-powered inference; None where labels are too few. ``cascade`` holds a stronger judge's
    changes, None without a cascade; with one, the estimate is of the strongest judge's pass ratio. ``last_ns`` is the
    time of the last verdict that passed or failed, ``reach_ns`` how far back the window reaches, None where it was not
    requested; ``silence`` explains the status *no data*. ``slices`` are the parts of its traffic that are worse than
    the others, or nearest to it, the worst first. ``waiting`` is how many traces stand for those that an outage, or a
    budget that is spent, leaves without an answer: they wait, or have got none within the window.
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
    waiting: float = 0.0


MonitorState: TypeAlias = Literal["working", "quiet", "left", "gone"]
"""Present with verdicts in the window; present without any; ended in order; lost without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMonitor:
    """One monitor. ``started_s`` is in s since the epoch."""

    name: str
    version: str
    host: str
    started_s: float
    seen_s: Annotated[float, "how long ago it was last there, by the database's clock"]
    state: Annotated[
        MonitorState,
        "`working`; `quiet`: there, without a verdict in the window; `left`: ended in order; `gone`: not seen though "
        "it did not end",
    ]
    verdicts: Annotated[int, "its verdicts in the fleet's window that passed or failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """The fleet from one monitor, ``name``.

    ``services`` are the fleet's, computed by ``leader`` at ``at_ns``. While no status of the fleet is known they are
    this monitor's own, ``leader`` and ``at_ns`` are None, and ``alone`` is why. ``own`` are always this monitor's
    share. ``other_settings`` is the remedy where the leader has long had a different configuration.
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
        """This monitor's number of verdicts on a service under a rubric within its own window."""
        place = (status.service, status.environment, status.rubric)
        found = (each for each in self.own if (each.service, each.environment, each.rubric) == place)
        return next((each.estimate.n for each in found if each.estimate is not None), 0)


class SilenceCause(StrEnum):
    """How far the service's traffic still gets."""

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
"""The page of the documentation on each cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No verdict passed or failed since ``since_ns`` (ns since the epoch), which is unusual at this hour."""

    since_ns: int
    cause: SilenceCause

    def stated(self, now_ns: int) -> str:
        """One short sentence with duration and cause."""
        return f"last verdict {_ago(now_ns - self.since_ns)} ago, which is not usual; {_SAID[self.cause]}"

    @property
    def page(self) -> str:
        """The address of the page in the monitor's own documentation."""
        return f"/help/{PAGES[self.cause]}"


def _ago(ns: int) -> str:
    if ns < 2 * HOUR_NS:
        return f"{max(1, ns // MINUTE_NS)} min"
    return f"{ns // HOUR_NS} h" if ns < 72 * HOUR_NS else f"{ns // DAY_NS} days"

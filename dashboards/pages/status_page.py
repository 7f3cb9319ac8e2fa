"""Status page: where every service stands, on one page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from sidejudge.integrations.otlp.server.traffic import Forwarding, Receiving
from sidejudge.scoring.alerts.board import Posted
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.export_snapshot import ExportSnapshot
from sidejudge.scoring.status.fleet_report import FleetReport
from sidejudge.scoring.status.fleet_snapshot import FleetSnapshot
from sidejudge.scoring.status.judge_snapshot import JudgeSnapshot
from sidejudge.scoring.status.late_reference_snapshot import LateReferenceSnapshot
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.pull_snapshot import PullSnapshot
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE, ServiceStatus
from sidejudge.scoring.status.status import WORST_FIRST, Policy, Status
from sidejudge.scoring.status.trend import Trend

from .next_step import next_step
from .rendering import render
from .trend import trend_drawing

REFRESH_S = 10
MOST = 100
"""Services on the page, the worst first."""
_ICONS = {
    Status.HEALTHY: "1a7f4b",
    Status.WARNING: "d98200",
    Status.CRITICAL: "c22b32",
    Status.INSUFFICIENT_DATA: "626c7c",
    Status.NO_DATA: "626c7c",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnomaly:
    """An anomaly as it is shown: a few words, one line of cause, one of remedy; ``service`` None: all of them."""

    kind: str
    service: str | None
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """The contents of the page. ``failures`` are verdicts in their JSON form; times are ns since the epoch.

    ``trends`` are by service, environment and rubric.
    """

    overall: Status
    services: Sequence[ServiceStatus]
    policy: Policy
    window_s: float
    seen: int
    open: int
    ended: Mapping[str, int]
    sampling_rate: float
    otlp_port: int
    version: str
    fingerprint: str
    now_ns: int
    started_ns: int
    failures: Sequence[Mapping[str, object]] = ()
    trends: Mapping[tuple[str, str, str], Trend] = field(default_factory=dict)
    judge: JudgeSnapshot | None = None
    agreement: AgreementSnapshot | None = None
    pull: PullSnapshot | None = None
    fleet: FleetSnapshot | None = None
    whole_fleet: FleetReport | None = None
    late: LateReferenceSnapshot | None = None
    exports: Sequence[ExportSnapshot] = ()
    anomalies: Sequence[ShownAnomaly] = ()
    receiving: Receiving | None = None
    forwarding: Forwarding | None = None
    alerts: Sequence[Posted] = ()
    metrics: Sequence[MetricStatus] = ()


def status_page(page: StatusPage) -> str:
    """The page as HTML. Every value is escaped: names of services and reasons come from traces."""
    values = {each.name: getattr(page, each.name) for each in fields(page)}
    ordered = sorted(page.services, key=_worst_first)
    services = [
        (each, trend_drawing(page.trends.get((each.service, each.environment, each.rubric)), each.thresholds))
        for each in ordered[:MOST]
    ]
    return render(
        "status.html",
        **{
            **values, "services": services, "metrics": page.metrics[:MOST],
            "next_step": next_step(page.seen, page.open, page.ended, page.receiving, page.otlp_port),
            "unnamed": any(each.service.startswith(UNKNOWN_SERVICE) for each in ordered),
            "more_services": max(0, len(ordered) - MOST),
            "own_thresholds": any(each.thresholds != page.policy.thresholds for each in ordered),
            "title": f"{page.overall.value.replace('_', ' ')} · sidejudge", "here": "/", "refresh_s": REFRESH_S,
            "icon": _ICONS[page.overall],
        },
    )  # fmt: skip


def _worst_first(status: ServiceStatus) -> tuple[int, float, int]:
    """By status; of equal ones the lowest pass ratio first, then the one that more verdicts are known of."""
    found = status.estimate
    level = WORST_FIRST.index(status.appraisal.status)
    return (level, found.pass_ratio, -found.n) if found is not None else (level, 1.0, 0)

"""What gauges are made of: the state of the monitor at the moment of a scrape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sidejudge.scoring.alerts.board import Posted
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.export_snapshot import ExportSnapshot
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.fleet_snapshot import FleetSnapshot
from sidejudge.scoring.status.judge_snapshot import JudgeSnapshot
from sidejudge.scoring.status.late_reference_snapshot import LateReferenceSnapshot
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.pull_snapshot import PullSnapshot
from sidejudge.scoring.status.service_status import ServiceStatus

CONNECTION_STATES = ("starting", "ok", "waiting", "retrying", "stopped")
"""States of a connection, as the snapshots of exports and of the source name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSize:
    """What waits: how many items, and since when the oldest does (seconds since the epoch, ``None`` when none does)."""

    items: int
    oldest_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The gauges of one moment. It is made at every scrape and must be quick: no query, no file."""

    services: Iterable[ServiceStatus] = ()
    traces_open: int = 0
    sampling_rate: float | None = None
    load_share: float = 1.0
    behind_s: float = 0.0
    queues: Mapping[str, QueueSize] = field(default_factory=dict)
    spool_bytes: int | None = None
    forward_buffer_bytes: int | None = None
    contents_bytes: int | None = None
    judge: JudgeSnapshot | None = None
    exports: Iterable[ExportSnapshot] = ()
    connections: Mapping[str, str] = field(default_factory=dict)
    pull: PullSnapshot | None = None
    fleet: FleetSnapshot | None = None
    late_references: LateReferenceSnapshot | None = None
    anomalies: Mapping[str, bool] = field(default_factory=dict)
    alerts: Sequence[Posted] = ()
    agreement: AgreementSnapshot | None = None
    failures: Sequence[FailureGroup] = ()
    metrics: Sequence[MetricStatus] = ()

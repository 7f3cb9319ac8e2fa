"""Report: the state of the monitor at one moment, and the filters of a query for verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

from sidejudge.integrations.otlp.server.traffic import Forwarding, Receiving
from sidejudge.integrations.store.verdict_search import VerdictFilter
from sidejudge.monitor.alerting.comparisons import PlaceComparison
from sidejudge.monitor.ingest.anomaly import Anomaly
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.lifecycle import Posted
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import FleetReport, ServiceStatus
from sidejudge.scoring.status.snapshots import (
    ExportSnapshot,
    FleetSnapshot,
    JudgeSnapshot,
    LateReferenceSnapshot,
    PromptSnapshot,
    PullSnapshot,
)
from sidejudge.scoring.status.status import WORST_FIRST, Policy, Status
from sidejudge.scoring.verdict.verdict import State

Passed: TypeAlias = Literal["true", "false", "none"]
"""Outcomes that a query for verdicts may name: passed, failed, or neither (incomplete)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorReport:
    """Everything at one moment. Times are ns since the epoch; ``ended`` counts traces by the reason they ended with.

    ``seen == open + sum(ended)``, always. ``shortened`` counts verdicts that left a window early, for lack of memory.
    ``judge`` and ``pull`` are None where none is configured, ``agreement`` where no labels are read,
    ``late_references`` where references are in the traces alone, ``fleet`` and ``whole_fleet`` where none is
    configured. ``alerts`` are in the order in which people want to see them.
    """

    services: Sequence[ServiceStatus]
    policy: Policy
    window_ns: int
    seen: int
    open: int
    ended: Mapping[str, int]
    revisions: int
    sampling_rate: float
    otlp_port: int
    sampling_rules: Sequence[str]
    version: str
    fingerprint: str
    started_ns: int
    now_ns: int
    begun_by_callers: int = 0
    disbelieved: Mapping[str, int] = field(default_factory=dict)
    shortened: int = 0
    judge: JudgeSnapshot | None = None
    agreement: AgreementSnapshot | None = None
    exports: Sequence[ExportSnapshot] = ()
    pull: PullSnapshot | None = None
    fleet: FleetSnapshot | None = None
    whole_fleet: FleetReport | None = None
    late_references: LateReferenceSnapshot | None = None
    prompts: Sequence[PromptSnapshot] = ()
    anomalies: Sequence[Anomaly] = ()
    receiving: Receiving | None = None
    forwarding: Forwarding | None = None
    alerts: Sequence[Posted] = ()
    conditions: Sequence[Condition] = ()
    metrics: Sequence[MetricStatus] = ()

    @property
    def overall(self) -> Status:
        """The worst status of any window or limited metric; insufficient data only when all are."""
        found = {each.appraisal.status for each in self.services}
        found |= {each.appraisal.status for each in self.metrics}
        return next((status for status in WORST_FIRST if status in found), Status.INSUFFICIENT_DATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedReport:
    """Comparisons, and whether older verdicts were left unread. ``higher_is_better`` is about what was compared."""

    comparisons: Sequence[PlaceComparison]
    capped: bool
    higher_is_better: bool


@dataclass(frozen=True, slots=True)
class TracePosition:
    """Where a page of traces ended: just after this trace, newest first."""

    _FORM: ClassVar = re.compile(r"([0-9]{1,19})-([0-9a-f]{32})")
    closed_ns: int
    trace_id: str

    def __str__(self) -> str:
        return "-".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """The position that a cursor names; ``ValueError`` when it is none."""
        match = cls._FORM.fullmatch(cursor)
        if match is None or int(match[1]) >= 1 << 63:
            raise ValueError(f"{cursor[:100]!r} is not a cursor; use next_cursor of the page before")
        closed_ns, *names = match.groups()
        return cls(int(closed_ns), *names)


@dataclass(frozen=True, slots=True)
class Position(TracePosition):
    """Where a page of verdicts ended: just after the verdict on this trace under this rubric, newest first."""

    _FORM: ClassVar = re.compile(r"([0-9]{1,19})-([0-9a-f]{32})-([A-Za-z0-9_-]{1,64})")
    rubric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictQuery:
    """The verdicts that a query wants; ``None`` does not restrict. ``since_ns`` is inclusive, ``after`` exclusive."""

    rubric: str | None = None
    service: str | None = None
    environment: str | None = None
    passed: Passed | None = None
    state: State | None = None
    trace_id: str | None = None
    since_ns: int | None = None
    limit: int = 100
    after: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSearch(VerdictFilter):
    """A query for people, by what verdicts hold: one page of it, from just after a position."""

    limit: int = 100
    after: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPage:
    """Verdicts in their JSON form, newest first, and where the next page begins (``None``: there is none).

    Of a search: how many match by what may be chosen, and whether older verdicts were not looked at, and in how
    many of them failing metrics were counted (None: in all).
    """

    verdicts: Sequence[Mapping[str, object]] = ()
    next: Position | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    capped: bool = False
    failing_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """The ended traces that a query wants; ``None`` does not restrict.

    ``since_ns`` is inclusive, ``after`` exclusive.
    """

    reason: str | None = None
    service: str | None = None
    since_ns: int | None = None
    limit: int = 100
    after: TracePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceList:
    """Ended traces, newest first, and where the next page begins (``None``: there is none)."""

    traces: Sequence[Mapping[str, object]] = ()
    next: TracePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadResult:
    """What came of reading the configuration again.

    ``mistakes``: why nothing changed; ``changed``: rubrics with another version, new and gone ones; ``restart``:
    sections that differ and are not in force before a restart.
    """

    mistakes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """For an answer of the API and the log."""
        return {"changed": list(self.changed), "needs_restart": list(self.restart), "mistakes": list(self.mistakes)}

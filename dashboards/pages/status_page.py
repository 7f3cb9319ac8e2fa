"""Status page: what stands where, on one page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from integrations.otlp.server.traffic import Forwarding, Receiving
from scoring.alerts.board import Posted
from scoring.status.agreement_snapshot import AgreementSnapshot
from scoring.status.export_snapshot import ExportSnapshot
from scoring.status.judge_snapshot import JudgeSnapshot
from scoring.status.late_reference_snapshot import LateReferenceSnapshot
from scoring.status.pull_snapshot import PullSnapshot
from scoring.status.service_status import ServiceStatus
from scoring.status.status import Policy, Status
from scoring.status.trend import Trend

from .agreement_card import agreement_card
from .alerts_card import alerts_card
from .anomalies_card import ShownAnomaly, suspicions_card
from .card import card
from .export_card import export_card
from .html import escape, frame
from .instants import age, stamp
from .judge_card import judge_card
from .late_references_card import belated_card
from .outcomes_card import ledger_card
from .pills import NAMES, status_pill
from .pull_card import pull_card
from .services_card import standings_card
from .traffic_card import traffic_card
from .verdict_rows import verdict_table

REFRESH_S = 10
_ICONS = {
    Status.HEALTHY: "#1a7f4b",
    Status.WARNING: "#d98200",
    Status.CRITICAL: "#c22b32",
    Status.INSUFFICIENT_DATA: "#626c7c",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """What the page shows. ``failures`` are verdicts in their JSON form; times are ns since the epoch.

    ``trends`` are by service, environment and rubric.
    """

    overall: Status
    standings: Sequence[ServiceStatus]
    policy: Policy
    window_s: float
    seen: int
    open: int
    ended: Mapping[str, int]
    sampling_rate: float
    version: str
    fingerprint: str
    now_ns: int
    started_ns: int
    failures: Sequence[Mapping[str, object]] = ()
    trends: Mapping[tuple[str, str, str], Trend] = field(default_factory=dict)
    judge: JudgeSnapshot | None = None
    agreement: AgreementSnapshot | None = None
    pull: PullSnapshot | None = None
    belated: LateReferenceSnapshot | None = None
    exports: Sequence[ExportSnapshot] = ()
    suspected: Sequence[ShownAnomaly] = ()
    receiving: Receiving | None = None
    forwarding: Forwarding | None = None
    alerts: Sequence[Posted] = ()


def status_page(page: StatusPage) -> str:
    """The page as HTML. Every value is escaped: names of services and reasons come from traces."""
    sections = (
        _head(page), _tiles(page), alerts_card(page.alerts, page.now_ns), suspicions_card(page.suspected),
        standings_card(page.standings, page.policy, page.window_s, page.trends), _failures(page),
        judge_card(page.judge), agreement_card(page.agreement, page.now_ns), pull_card(page.pull, page.now_ns),
        belated_card(page.belated, page.now_ns), export_card(page.exports, page.now_ns / 1e9),
        ledger_card(page.seen, page.open, page.ended), traffic_card(page.receiving, page.forwarding), _links(page),
    )  # fmt: skip
    title = f"{NAMES[page.overall]} · sidejudge"
    return frame(title, "\n".join(filter(None, sections)), here="/", refresh_s=REFRESH_S, icon=_ICONS[page.overall])


def _head(page: StatusPage) -> str:
    return (
        f'<header id="head"><h1>Status</h1>{status_pill(page.overall)}<span class="soft" id="as-of">as of '
        f"{stamp(page.now_ns)}<noscript> · reloads every {REFRESH_S} s</noscript></span></header>"
    )


def _tiles(page: StatusPage) -> str:
    tiles = (
        (f"{page.seen:,}", "traces seen"),
        (f"{page.ended.get('scored', 0):,}", "traces scored"),
        (f"{page.open:,}", "traces open"),
        (f"{page.sampling_rate:.4g}", "base sampling rate"),
    )
    shown = "".join(f'<div class="tile"><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>' for value, name in tiles)
    up = f'<div class="tile"><dd>{age(page.started_ns, page.now_ns, ago=False)}</dd><dt>up</dt></div>'
    return f'<dl class="tiles" id="tiles">{shown}{up}</dl>'


def _failures(page: StatusPage) -> str:
    if not page.failures:
        return ""
    shown = verdict_table(page.failures, page.now_ns, "The latest failed verdicts, newest first")
    return card("failures", "Latest failures", shown, note='<a href="/verdicts?passed=false">all failed verdicts</a>')


def _links(page: StatusPage) -> str:
    links = (
        ("/v1/status", "status as JSON"),
        ("/v1/alerts", "alerts"),
        ("/v1/verdicts", "verdicts"),
        ("/metrics", "metrics"),
    )
    shown = "".join(f'<a href="{path}">{name}</a>' for path, name in links)
    return (
        f'<div id="foot"><nav aria-label="For programs">{shown}</nav><p class="soft">version {escape(page.version)} · '
        f'<a href="/configuration">configuration {escape(page.fingerprint)}</a></p></div>'
    )

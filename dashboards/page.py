"""Status page: what stands where, on one page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from integrations.otlp.traffic import Forwarding, Receiving
from scoring.alerts.board import Posted
from scoring.export_standing import ExportStanding
from scoring.judge_standing import JudgeStanding
from scoring.standing import Standing
from scoring.status import Policy, Status

from .alerts_card import alerts_card
from .export_card import export_card
from .html import duration, escape, frame
from .judge_card import judge_card
from .traffic_card import traffic_card

REFRESH_S = 10
_ICONS = {
    Status.HEALTHY: "#1a7f4b",
    Status.WARNING: "#d98200",
    Status.CRITICAL: "#c22b32",
    Status.INSUFFICIENT_DATA: "#626c7c",
}
_NAMES = {status: status.value.replace("_", " ") for status in Status}
_ORDER = (Status.CRITICAL, Status.WARNING, Status.HEALTHY, Status.INSUFFICIENT_DATA)
_COMPARED = {"point": "pass ratio", "bound": "upper bound", "sequence": "confidence sequence"}
_WIDTH, _MARGIN = 160, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """What the page shows. ``failures`` are verdicts in their JSON form; times are seconds."""

    overall: Status
    standings: Sequence[Standing]
    policy: Policy
    window_s: float
    seen: int
    open: int
    ended: Mapping[str, int]
    sampling_rate: float
    version: str
    fingerprint: str
    now: str
    uptime_s: float
    failures: Sequence[Mapping[str, object]] = ()
    judge: JudgeStanding | None = None
    exports: Sequence[ExportStanding] = ()
    now_s: float = 0.0
    receiving: Receiving | None = None
    forwarding: Forwarding | None = None
    alerts: Sequence[Posted] = ()
    now_ns: int = 0


def status_page(page: StatusPage) -> str:
    """The page as HTML. Every value is escaped: names of services and reasons come from traces."""
    sections = (
        _head(page), _tiles(page), alerts_card(page.alerts, page.now_ns), _standings(page), judge_card(page.judge),
        export_card(page.exports, page.now_s), _failures(page), _ledger(page),
        traffic_card(page.receiving, page.forwarding), _links(),
    )  # fmt: skip
    title = f"{_NAMES[page.overall]} · sidejudge"
    return frame(title, "\n".join(sections), refresh_s=REFRESH_S, icon=_ICONS[page.overall])


def _pill(status: Status) -> str:
    return f'<span class="pill {status.value}">{_NAMES[status]}</span>'


def _head(page: StatusPage) -> str:
    return (
        f"<header><h1>sidejudge</h1>{_pill(page.overall)}"
        f'<span class="soft">{escape(page.now)} · reloads every {REFRESH_S} s</span></header>'
    )


def _tiles(page: StatusPage) -> str:
    scored = page.ended.get("scored", 0)
    tiles = (
        (f"{page.seen:,}", "traces seen"),
        (f"{scored:,}", "traces scored"),
        (f"{page.open:,}", "traces open"),
        (f"{page.sampling_rate:.4g}", "base sampling rate"),
        (duration(page.uptime_s), "up"),
    )
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in tiles
    ) + "</div>"  # fmt: skip


def _standings(page: StatusPage) -> str:
    bounds = page.policy.thresholds
    own = any(standing.thresholds != bounds for standing in page.standings)
    note = (
        f"last {duration(page.window_s)} · warning when the {_COMPARED[page.policy.mode]} is below {bounds.warning:g}, "
        f"critical below {bounds.critical:g}{'; some rubrics have thresholds of their own' if own else ''}"
    )
    head = f'<div class="head"><h2>Pass ratio</h2><span class="soft">{escape(note)}</span></div>'
    if not page.standings:
        return f'<section class="card">{head}<div class="empty">No verdict yet.</div></section>'
    ordered = sorted(page.standings, key=lambda each: _ORDER.index(each.appraisal.status))
    rows = "".join(map(_row, ordered))
    return (
        f'<section class="card">{head}<div class="scroll"><table class="stacked"><thead>'
        "<tr><th>Status<th>Service<th>Rubric"
        '<th class="number">Pass ratio<th>Bounds<th class="number">Verdicts<th class="number">Failed<th>Why'
        f"</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _row(standing: Standing) -> str:
    told, status = standing.estimate, standing.appraisal.status
    ratio = f"{told.pass_ratio:.1%}" if told else "–"
    asked = {"service": standing.service, "environment": standing.environment, "rubric": standing.rubric}
    failed = "0"
    if told and told.failures:
        # encoded as bytes: a lone surrogate in a name must not cost the page
        asked_bytes = {key: value.encode("utf-8", "replace") for key, value in asked.items()}
        link = escape("/v1/verdicts?" + urlencode({**asked_bytes, "passed": "false"}), limit=4000)
        failed = f'<a href="{link}">{told.failures:,}</a>'
    return (
        f"<tr><td>{_pill(status)}"
        f'<td class="name">{_name(standing.service)}<br>{_name(standing.environment, "soft")}'
        f'<td class="name" data-name="rubric">{_name(standing.rubric)}'
        f'<td class="number" data-name="pass ratio">{ratio}'
        f'<td class="{status.value}">{_range(standing)}'
        f'<td class="number" data-name="verdicts">{told.n if told else 0:,}'
        f'<td class="number" data-name="failed">{failed}'
        f'<td class="why">{escape(standing.appraisal.reason)}{_missing(standing)}</tr>'
    )


def _name(value: object, style: str = "") -> str:
    """A name, cut to what a column holds; the whole of it shows on pointing."""
    return f'<span class="{style}" title="{escape(value)}">{escape(value, limit=48)}</span>'


def _missing(standing: Standing) -> str:
    """What the verdicts that are missing could change; nothing where none is."""
    band = standing.missing
    if band is None or not standing.incomplete:
        return ""
    return f"; with the {standing.incomplete:,} incomplete between {band.worst:.1%} and {band.best:.1%}"


def _range(standing: Standing) -> str:
    """The ratio between its bounds, on a scale from 0 to 1 with both thresholds."""
    told = standing.estimate
    if told is None:
        return ""

    def x(value: float) -> str:
        return f"{_MARGIN + value * (_WIDTH - 2 * _MARGIN):.1f}"

    width = max(2.0, (told.upper - told.lower) * (_WIDTH - 2 * _MARGIN))
    marks = "".join(
        f'<line class="mark" x1="{x(bound)}" x2="{x(bound)}" y1="1" y2="19"/>'
        for bound in (standing.thresholds.critical, standing.thresholds.warning)
    )
    label = f"{told.pass_ratio:.3f}, between {told.lower:.3f} and {told.upper:.3f}"
    return (
        f'<svg class="range" viewBox="0 0 {_WIDTH} 20" role="img"><title>{label}</title>'
        f'<rect class="track" x="{x(0)}" y="8" width="{_WIDTH - 2 * _MARGIN}" height="4" rx="2"/>{marks}'
        f'<rect class="span" x="{x(told.lower)}" y="6" width="{width:.1f}" height="8" rx="4"/>'
        f'<circle class="point" cx="{x(told.pass_ratio)}" cy="10" r="4"/></svg>'
    )


def _failures(page: StatusPage) -> str:
    if not page.failures:
        return ""
    rows = "".join(_failure(verdict) for verdict in page.failures)
    return (
        '<section class="card"><div class="head"><h2>Latest failures</h2></div><div class="scroll">'
        '<table class="stacked"><thead><tr>'
        '<th>Trace<th>Service<th>Rubric<th class="number">Composite<th>Why</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _failure(verdict: Mapping[str, object]) -> str:
    # A session has no trace id; its story stands under the id of its case.
    trace, composite = str(verdict.get("trace_id") or verdict.get("case_id") or ""), verdict.get("composite")
    value = f"{composite:.3f}" if isinstance(composite, int | float) else "–"
    link = f'<a href="/v1/traces/{escape(trace)}">{escape(trace[:12])}…</a>' if trace else "–"
    url, why = str(verdict.get("trace_url") or ""), verdict.get("reason") or ""
    if url.startswith(("https://", "http://")):
        link += f' <a href="{escape(url, limit=2000)}" rel="noreferrer">Langfuse</a>'
    return (
        f'<tr><td class="id" data-name="trace">{link}<td class="name">{_name(verdict.get("service") or "–")}'
        f'<td class="name">{_name(verdict.get("rubric") or "–")}'
        f'<td class="number" data-name="composite">{value}'
        f'<td class="why">{escape(why)}</tr>'
    )


def _ledger(page: StatusPage) -> str:
    counts = [("open", page.open), *sorted(page.ended.items(), key=lambda item: -item[1])]
    rows = "".join(
        f"<div><dt>{escape(reason.replace('_', ' '))}</dt><dd>{count:,}</dd></div>" for reason, count in counts
    )
    note = f"{page.seen:,} traces seen since the start, each counted once"
    return (
        f'<section class="card"><div class="head"><h2>Ledger</h2><span class="soft">{note}</span></div>'
        f"<dl>{rows}</dl></section>"
        f'<p class="soft">version {escape(page.version)} · configuration {escape(page.fingerprint)}</p>'
    )


def _links() -> str:
    links = (
        ("/v1/status", "status as JSON"),
        ("/v1/alerts", "alerts"),
        ("/v1/verdicts", "verdicts"),
        ("/metrics", "metrics"),
        ("/docs", "API"),
    )
    return "<nav>" + "".join(f'<a href="{path}">{name}</a>' for path, name in links) + "</nav>"

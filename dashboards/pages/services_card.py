"""Standings card: every service under every rubric, with its estimate, its bounds and where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scoring.status.service_status import ServiceStatus
from scoring.status.status import Policy, Status
from scoring.status.trend import Trend

from .card import card, name_cell, table
from .html import duration, escape
from .pills import status_pill
from .trend import trend_drawing
from .verdict_rows import failed_verdicts

MOST = 100
"""Standings on the page, the worst first."""
_ORDER = (Status.CRITICAL, Status.WARNING, Status.HEALTHY, Status.INSUFFICIENT_DATA)
_COMPARED = {"point": "pass ratio", "bound": "upper bound", "sequence": "confidence sequence"}
_WIDTH, _MARGIN = 160, 4
_COLUMNS = ("Status", "Service", "Rubric", "Pass ratio#", "Bounds", "Trend", "Verdicts#", "Failed#", "Why")


def standings_card(
    standings: Sequence[ServiceStatus],
    policy: Policy,
    window_s: float,
    trends: Mapping[tuple[str, str, str], Trend],
) -> str:
    """The section as HTML. Names come from traces: all is escaped. ``trends`` by service, environment and rubric."""
    if not standings:
        return card(
            "standings", "Pass ratio", '<div class="empty">No verdict yet.</div>', note=_note((), policy, window_s)
        )
    ordered = sorted(
        standings,
        key=lambda each: (_ORDER.index(each.appraisal.status), -each.estimate.n if each.estimate else 0),
    )
    rows = (_row(each, trends.get((each.service, each.environment, each.rubric))) for each in ordered[:MOST])
    caption = "Pass ratio of every service under every rubric, the worst first"
    more = (
        f'<div class="empty">{len(ordered) - MOST:,} more, none of them worse, in '
        '<a href="/v1/status">the status as JSON</a>.</div>'
        if len(ordered) > MOST
        else ""
    )
    shown = table(caption, _COLUMNS, rows, stacked=True)
    return card("standings", "Pass ratio", shown + more, note=_note(standings, policy, window_s))


def _note(standings: Sequence[ServiceStatus], policy: Policy, window_s: float) -> str:
    bounds = policy.thresholds
    own = any(standing.thresholds != bounds for standing in standings)
    return escape(
        f"last {duration(window_s)} · warning when the {_COMPARED[policy.mode]} is below {bounds.warning:g}, "
        f"critical below {bounds.critical:g}{'; some rubrics have thresholds of their own' if own else ''}"
    )


def _row(standing: ServiceStatus, trend: Trend | None) -> str:
    told, status = standing.estimate, standing.appraisal.status
    ratio = f"{told.pass_ratio:.1%}" if told else "–"
    failed = "0"
    if told and told.failures:
        where = f"{standing.service}, {standing.rubric}"
        address = failed_verdicts(standing.service, standing.environment, standing.rubric)
        failed = (
            f'<a href="{address}">{told.failures:,}'
            f'<span class="unseen"> failed verdicts of {escape(where, limit=120)}</span></a>'
        )
    return (
        f"<tr><td>{status_pill(status)}"
        f'<th scope="row" class="name">{name_cell(standing.service)}<br>{name_cell(standing.environment, "soft")}</th>'
        f'<td class="name" data-name="rubric">{name_cell(standing.rubric)}'
        f'<td class="number" data-name="pass ratio">{ratio}'
        f'<td class="{status.value}">{_range(standing)}'
        f'<td class="{status.value} trended">{trend_drawing(trend, standing.thresholds)}'
        f'<td class="number" data-name="verdicts">{told.n if told else 0:,}'
        f'<td class="number" data-name="failed">{failed}'
        f'<td class="why">{escape(standing.appraisal.reason)}{_missing(standing)}{_corrected(standing)}</tr>'
    )


def _missing(standing: ServiceStatus) -> str:
    """What the verdicts that are missing could change; nothing where none is."""
    band = standing.missing
    if band is None or not standing.incomplete:
        return ""
    return f"; with the {standing.incomplete:,} incomplete between {band.worst:.1%} and {band.best:.1%}"


def _corrected(standing: ServiceStatus) -> str:
    """What people would have found, by their labels; nothing where labels do not tell."""
    found = standing.corrected
    if found is None:
        return ""
    return f"; people would pass {found.rate:.1%} ({found.lower:.1%} – {found.upper:.1%})"


def _range(standing: ServiceStatus) -> str:
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
        f'<span class="bounds">{told.lower:.1%} – {told.upper:.1%}</span>'
    )

"""Alerts card: what fires, what is about to, and what cannot be told any more; a section of the status page."""

from __future__ import annotations

from collections.abc import Sequence

from scoring.alerts.board import Posted
from scoring.alerts.condition import Severity
from scoring.alerts.lifecycle import Stage

from .html import duration, escape

_STYLES = {Severity.CRITICAL: "critical", Severity.WARNING: "warning", Severity.INFO: "insufficient_data"}
_STAGES = {Stage.PENDING: "pending", Stage.FIRING: "firing", Stage.UNKNOWN: "cannot be told now"}


def alerts_card(posted: Sequence[Posted], now_ns: int) -> str:
    """The section as HTML, empty without an alert. Names and reasons come from traces: all is escaped."""
    if not posted:
        return ""
    rows = "".join(_row(each, now_ns) for each in posted)
    firing = sum(each.alert.stage is Stage.FIRING for each in posted)
    note = f'<span class="soft">{firing} of {len(posted)} firing</span>'
    return (
        f'<section class="card"><div class="head"><h2>Alerts</h2>{note}</div><div class="scroll"><table><thead><tr>'
        f"<th>Severity<th>Alert<th>Where<th>Since<th>Why</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _row(posted: Posted, now_ns: int) -> str:
    condition, alert = posted.condition, posted.alert
    stage = _STAGES[alert.stage] + (", muted" if posted.muted else "")
    where = " · ".join(escape(value, limit=48) for _, value in alert.labels) or "this monitor"
    began = alert.finding.changed_ns
    change = f"; it began about {duration((now_ns - began) / 1e9)} ago" if began is not None else ""
    return (
        f'<tr><td><span class="pill {_STYLES[condition.severity]}">{condition.severity.value}</span>'
        f'<td>{escape(condition.title)}<br><span class="soft">{stage} · runbook {escape(condition.runbook)}</span>'
        f'<td class="name">{where}<td>{duration((now_ns - alert.since_ns) / 1e9)}'
        f'<td class="why">{escape(alert.finding.said)}{change}</tr>'
    )

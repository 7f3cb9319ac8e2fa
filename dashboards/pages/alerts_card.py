"""Alerts card: what fires, what is about to, and what cannot be told any more; a section of the status page."""

from __future__ import annotations

from collections.abc import Sequence

from scoring.alerts.board import Posted
from scoring.alerts.condition import Severity
from scoring.alerts.lifecycle import Stage

from .card import card
from .html import escape
from .instants import age
from .verdict_rows import failed_verdicts

_STYLES = {Severity.CRITICAL: "critical", Severity.WARNING: "warning", Severity.INFO: "insufficient_data"}
_STAGES = {Stage.PENDING: "pending", Stage.FIRING: "firing", Stage.UNKNOWN: "cannot be told now"}
_FEW = 3
"""So many minor alerts are shown without folding them away."""


def alerts_card(posted: Sequence[Posted], now_ns: int) -> str:
    """The section as HTML, empty without an alert. Names and reasons come from traces: all is escaped.

    What is pending, and what is muted by something more severe about the same thing, takes one line each, below.
    """
    if not posted:
        return ""
    minor = [each for each in posted if each.alert.stage is Stage.PENDING or each.muted]
    firing = sum(each.alert.stage is Stage.FIRING for each in posted)
    items = "".join(_item(each, now_ns) for each in posted if each not in minor)
    lines = "".join(_line(each, now_ns) for each in minor)
    shown = f'<ul class="alerts">{items}{"" if len(minor) > _FEW else lines}</ul>'
    if len(minor) > _FEW:
        told = f"{len(minor)} more, pending or muted by one of these" if items else f"{len(minor)} pending"
        shown += f'<details class="folded"><summary>{told}</summary><ul class="alerts">{lines}</ul></details>'
    return card("alerts", "Alerts", shown, note=f"{firing} of {len(posted)} firing")


def _line(posted: Posted, now_ns: int) -> str:
    return (
        f'<li class="minor">{_pill(posted)}<div>{escape(posted.condition.title)} '
        f'<span class="why">{_where(posted)} · {_stage(posted, now_ns)}</span></div></li>'
    )


def _item(posted: Posted, now_ns: int) -> str:
    condition, alert = posted.condition, posted.alert
    began = alert.finding.changed_ns
    change = f"; it began about {age(began, now_ns)}" if began is not None else ""
    return (
        f'<li>{_pill(posted)}<div><b>{escape(condition.title)}</b> <span class="where">{_where(posted)}</span>'
        f'<div class="why">{escape(alert.finding.said)}{change}</div>'
        f'<div class="why">{_stage(posted, now_ns)} · runbook <code>{escape(condition.runbook)}</code>{_failed(posted)}'
        "</div></div></li>"
    )


def _pill(posted: Posted) -> str:
    severity = posted.condition.severity
    return f'<span class="pill {_STYLES[severity]}">{severity.value}</span>'


def _where(posted: Posted) -> str:
    return " · ".join(escape(value, limit=48) for _, value in posted.alert.labels) or "this monitor"


def _failed(posted: Posted) -> str:
    """A link to the failed verdicts that the alert speaks of, where it speaks of some."""
    about = dict(posted.alert.labels)
    if not {"service", "environment", "rubric"} <= about.keys():
        return ""
    address = failed_verdicts(about["service"], about["environment"], about["rubric"])
    return f' · <a href="{address}">failed verdicts<span class="unseen"> of {_where(posted)}</span></a>'


def _stage(posted: Posted, now_ns: int) -> str:
    muted = ", muted" if posted.muted else ""
    return f"{_STAGES[posted.alert.stage]}{muted} for {age(posted.alert.since_ns, now_ns, ago=False)}"

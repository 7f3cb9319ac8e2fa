"""Export card: whether scores and notices reach where they go to, and what waits; a section of the status page."""

from __future__ import annotations

from collections.abc import Sequence

from scoring.export_standing import ExportStanding

from .html import duration, escape

_STATES = {
    "starting": ("insufficient_data", "starting"),
    "ok": ("healthy", "ok"),
    "retrying": ("warning", "retrying"),
    "stopped": ("critical", "stopped"),
}


def export_card(exports: Sequence[ExportStanding], now_s: float) -> str:
    """The section as HTML, empty without a destination. Names and reasons come from servers: all is escaped."""
    if not exports:
        return ""
    rows = "".join(_row(export, now_s) for export in exports)
    return (
        '<section class="card"><div class="head"><h2>Written back and told</h2></div><div class="scroll"><table><thead>'
        '<tr><th>State<th>Where<th class="number">Waiting<th>Oldest<th class="number">Not seen yet'
        f'<th class="number">Given up<th>Last success<th>Why</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _row(export: ExportStanding, now_s: float) -> str:
    style, name = _STATES[export.state]
    where = " · ".join(filter(None, (export.server or export.destination, export.project)))
    return (
        f'<tr><td><span class="pill {style}">{name}</span><td class="name">{escape(where, limit=120)}'
        f'<td class="number">{export.waiting:,}<td>{_since(export.oldest_s, now_s)}'
        f'<td class="number">{export.unseen:,}<td class="number">{export.dead:,}'
        f'<td>{_since(export.last_success_s, now_s)}<td class="why">{escape(export.reason)}</tr>'
    )


def _since(at_s: float | None, now_s: float) -> str:
    return "–" if at_s is None else f"{escape(duration(max(0.0, now_s - at_s)))} ago"

"""Export card: whether scores and notices reach where they go to, and what waits; a section of the status page."""

from __future__ import annotations

from collections.abc import Sequence

from scoring.status.export_snapshot import ExportSnapshot

from .card import card, table
from .html import escape
from .instants import age
from .pills import pill

_STATES = {
    "starting": ("insufficient_data", "starting"),
    "ok": ("healthy", "ok"),
    "retrying": ("warning", "retrying"),
    "stopped": ("critical", "stopped"),
}
_COLUMNS = ("State", "Where", "Waiting#", "Oldest", "Not seen yet#", "Given up#", "Last success", "Why")


def export_card(exports: Sequence[ExportSnapshot], now_s: float) -> str:
    """The section as HTML, empty without a destination. Names and reasons come from servers: all is escaped."""
    if not exports:
        return ""
    caption = "Where scores and notices go to, and how far they have come"
    shown = table(caption, _COLUMNS, (_row(export, now_s) for export in exports), stacked=True)
    return card("exports", "Written back and told", shown)


def _row(export: ExportSnapshot, now_s: float) -> str:
    style, name = _STATES[export.state]
    where = " · ".join(filter(None, (export.server or export.destination, export.project)))
    return (
        f'<tr><td>{pill(style, name)}<th scope="row" class="name">{escape(where, limit=120)}</th>'
        f'<td class="number" data-name="waiting">{export.waiting:,}'
        f'<td data-name="oldest">{_since(export.oldest_s, now_s)}'
        f'<td class="number" data-name="not seen yet">{export.unseen:,}'
        f'<td class="number" data-name="given up">{export.dead:,}'
        f'<td data-name="last success">{_since(export.last_success_s, now_s)}'
        f'<td class="why">{escape(export.reason)}</tr>'
    )


def _since(at_s: float | None, now_s: float) -> str:
    return "–" if at_s is None else age(int(at_s * 1e9), int(now_s * 1e9))

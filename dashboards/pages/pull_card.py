"""Pull card: how far reading traces out of Langfuse has come; a section of the status page."""

from __future__ import annotations

from scoring.status.pull_snapshot import PullSnapshot

from .card import card, facts
from .html import duration, escape
from .instants import age
from .pills import pill

_STATES = {
    "starting": ("insufficient_data", "starting"),
    "ok": ("healthy", "ok"),
    "waiting": ("warning", "waiting"),
    "retrying": ("warning", "retrying"),
    "stopped": ("critical", "stopped"),
}
_READS = {"v2": "observations, v2", "legacy": "traces, as servers of version 3 have them"}


def pull_card(pull: PullSnapshot | None, now_ns: int) -> str:
    """The section as HTML, empty where nothing is read. Names and reasons come from servers: all is escaped."""
    if pull is None:
        return ""
    told = [
        ("observations", f"{pull.rows:,}"),
        ("traces taken", f"{pull.taken:,}"),
        ("seen, not taken yet", f"{pull.pending:,}"),
        *([("behind by", duration(pull.lag_s))] if pull.lag_s is not None else ()),
        *([("by", _READS[pull.reads])] if pull.reads else ()),
        *((f"ended early, {reason.replace('_', ' ')}", f"{count:,}") for reason, count in pull.errors if count),
    ]
    why = f'<p class="reason">{escape(pull.reason)}</p>' if pull.reason else ""
    where = escape(" · ".join(filter(None, (pull.server, pull.project))) or "not asked yet", limit=200)
    read = f" · read {age(int(pull.read_s * 1e9), now_ns)}" if pull.read_s is not None else ""
    return card("pull", "Traces from Langfuse", why + facts(told), note=f"{pill(*_STATES[pull.state])} {where}{read}")

"""Belated card: verdicts whose reference changed after their spans were let go; a section of the status page."""

from __future__ import annotations

from scoring.status.late_reference_snapshot import LateReferenceSnapshot

from .card import card, facts
from .html import escape
from .instants import age
from .pills import pill

_STATES = {
    "ok": ("healthy", "ok"),
    "waiting": ("warning", "waiting"),
    "retrying": ("warning", "retrying"),
    "stopped": ("critical", "stopped"),
    "off": ("warning", "off"),
}


def belated_card(belated: LateReferenceSnapshot | None, now_ns: int) -> str:
    """The section as HTML; empty where there is nothing to tell. Reasons come from servers: all is escaped."""
    if belated is None or not (
        belated.waiting or belated.given_up or belated.revised or belated.unchanged or belated.failures
    ):
        return ""
    told = [
        ("to be judged again", f"{belated.waiting:,}"),
        ("revised", f"{belated.revised:,}"),
        ("judged again, the same", f"{belated.unchanged:,}"),
        ("given up", f"{belated.given_up:,}"),
        *((f"in vain, {reason.replace('_', ' ')}", f"{count:,}") for reason, count in belated.failures if count),
    ]
    why = f'<p class="reason">{escape(belated.reason)}</p>' if belated.reason else ""
    oldest = f" the oldest since {age(int(belated.oldest_s * 1e9), now_ns)}" if belated.oldest_s is not None else ""
    return card(
        "belated", "References that came late", why + facts(told), note=f"{pill(*_STATES[belated.state])}{oldest}"
    )

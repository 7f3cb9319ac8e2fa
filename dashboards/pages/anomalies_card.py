"""Suspicions card: what about the traffic makes verdicts fewer, or other, than the configuration asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .card import card
from .html import escape
from .pills import pill


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnomaly:
    """A suspicion as it is shown: a few words, one line of cause, one of remedy; ``service`` None: all of them."""

    kind: str
    service: str | None
    cause: str
    remedy: str


def suspicions_card(suspected: Sequence[ShownAnomaly]) -> str:
    """The section as HTML, empty where nothing is suspected. Services come from traces: all is escaped."""
    if not suspected:
        return ""
    items = "".join(
        f"<li>{pill('warning', 'suspected')}<div><b>{escape(each.kind.replace('_', ' '))}</b> "
        f'<span class="where">{escape(each.service or "all services", limit=48)}</span>'
        f'<div class="why">{escape(each.cause)}</div><div class="why">{escape(each.remedy)}</div></div></li>'
        for each in suspected
    )
    note = "about the traffic, not about the application"
    return card("suspicions", "Suspicions", f'<ul class="alerts">{items}</ul>', note=note)

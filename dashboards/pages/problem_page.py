"""Problem page: why there is nothing to show, and what to do about it."""

from __future__ import annotations

from .card import card
from .html import escape, frame


def problem_page(cause: str, remedy: str) -> str:
    """The page as HTML: one line of cause, one of remedy."""
    shown = f'<div class="empty">{escape(remedy, limit=600)}</div>'
    body = f"<header><h1>Nothing to show</h1></header>{card('problem', cause[:300], shown)}"
    return frame("Nothing to show · sidejudge", body)

"""Instants: when something was, as the pages write it. Scripts may bring an age up to date; the instant stays."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from .html import duration

_SAID = re.compile(r"(<time\b[^>]*>)[^<]*")


def stamp(ns: int) -> str:
    """An instant in full, in UTC (``Z``), to the second."""
    return f"<time>{_utc(ns)}Z</time>"


def age(ns: int, now_ns: int, *, ago: bool = True) -> str:
    """How long ago an instant was: ``5 min ago``; without ``ago`` how long it has lasted: ``5 min``."""
    kind = "ago" if ago else "for"
    return (
        f'<time datetime="{_iso(ns)}" class="{kind}" title="{_utc(ns)} UTC">'
        f"{duration((now_ns - ns) / 1e9)}{' ago' if ago else ''}</time>"
    )


def undated(page: str) -> str:
    """A page without the texts of its instants: the same as long as nothing but time has passed."""
    return _SAID.sub(r"\1", page)


def _iso(ns: int) -> str:
    return _at(ns).isoformat(timespec="seconds").replace("+00:00", "Z")


def _utc(ns: int) -> str:
    return _at(ns).strftime("%Y-%m-%d %H:%M:%S")


def _at(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 10**9, UTC)

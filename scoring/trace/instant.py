"""Instant: a moment as verdicts and stories write it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal


def written(ns: int, timespec: Literal["seconds", "milliseconds"] = "milliseconds") -> str:
    """ISO 8601 in UTC (``2026-11-21T00:00:00.000Z``) of ``ns`` since the epoch."""
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")

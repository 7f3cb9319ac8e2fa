"""Time: its units in nanoseconds (names that end in ``_ns``), and instants as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
HOUR_NS: Final = 60 * MINUTE_NS
DAY_NS: Final = 24 * HOUR_NS
MONTH_NS: Final = 30 * DAY_NS

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def iso_time(ns: int, timespec: Literal["seconds", "milliseconds"] = "milliseconds") -> str:
    """ISO 8601 in UTC (``2026-11-21T00:00:00.000Z``) of ``ns`` since the epoch."""
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def read_instant(text: str) -> int | None:
    """Nanoseconds since the epoch of an ISO 8601 time, UTC where it names no zone; None where it is no time.

    >>> read_instant("1970-01-01T00:00:01.5Z")
    1500000000
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000

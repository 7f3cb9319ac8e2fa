"""Units of time in nanoseconds, in which all instants and durations are kept."""

from __future__ import annotations

from typing import Final

SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
HOUR_NS: Final = 60 * MINUTE_NS
DAY_NS: Final = 24 * HOUR_NS
MONTH_NS: Final = 30 * DAY_NS

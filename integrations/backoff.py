"""Backoff: errors of a delivery, by what helps (waiting, or a person), and the wait after failures in a row.

Waits have jitter, so that many monitors do not come back at the same moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from sidejudge.scoring.errors import SidejudgeError


class DestinationUnreachableError(SidejudgeError):
    """The receiver did not accept it now and may later: no part of the delivery is known to have arrived.

    ``retry_after_s`` is how long the receiver asks to be left alone, ``None`` when it names no time.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.retry_after_s = reason, retry_after_s


class RefusedError(SidejudgeError):
    """The receiver will never accept this; a person must correct the content or the configuration."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


LONGEST_S: Final = 60.0
SOMEBODY_S: Final = 300.0
"""Between attempts where only a person can help."""
LONGEST_ASKED_S: Final = 3600.0
"""The longest wait that a server may ask for."""
_LONGEST_READ_S: Final = 1e9


def grown_s(failures: int, *, first_s: float, longest_s: float) -> float:
    """The wait after so many failures in a row, in seconds: ``first_s``, doubled with each further failure.

    >>> [grown_s(n, first_s=1, longest_s=5) for n in (1, 2, 3, 4)]
    [1.0, 2.0, 4.0, 5]
    """
    return min(longest_s, first_s * 2.0 ** (min(failures, 32) - 1))


def requested_s(retry_after: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a ``Retry-After`` asks for (RFC 9110 §10.2.3), in [0, 1e9]; None where it cannot be read.

    Args:
        retry_after: seconds, or the date of an HTTP header.
        now: what a date is held against; None for the time here.

    >>> [requested_s(text, datetime(2026, 11, 21, tzinfo=UTC)) for text in ("30", "Sat, 21 Nov 2026 00:02:00 GMT", "?")]
    [30.0, 120.0, None]
    """
    text = (retry_after or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text)
            seconds = (at.replace(tzinfo=at.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(0.0, seconds), _LONGEST_READ_S) if math.isfinite(seconds) else None


class Backoff:
    """Counts failures in a row.

    Args:
        jitter: draws from [0, 1).
        first_s: the wait after the first failure, in seconds; it doubles with each further one.
        longest_s: the longest wait, in seconds.
    """

    def __init__(self, jitter: Callable[[], float], *, first_s: float = 1.0, longest_s: float = LONGEST_S) -> None:
        self._jitter, self._first_s, self._longest_s = jitter, first_s, longest_s
        self.failures = 0

    def succeeded(self) -> None:
        """Begin again with the shortest wait."""
        self.failures = 0

    def after_failure(self, requested_s: float | None, *, needs_somebody: bool = False) -> float:
        """Count a failure and return the seconds to wait.

        Args:
            requested_s: how long the server asks to be left alone; the wait is at least that long, up to an hour.
            needs_somebody: only a person can help, so the wait is five minutes from the start.

        Returns:
            Seconds, half of them drawn by chance.
        """
        self.failures += 1
        whole_s = SOMEBODY_S if needs_somebody else self._grown(self.failures)
        wait_s = whole_s * (0.5 + self._jitter() / 2)
        return wait_s if requested_s is None else max(min(requested_s, LONGEST_ASKED_S) + self._jitter(), wait_s)

    def postponed_ns(self, attempts: int) -> int:
        """How long one item is postponed that failed ``attempts`` times already, in ns."""
        return int(self._grown(attempts + 3) * 1e9)

    def _grown(self, failures: int) -> float:
        return grown_s(failures, first_s=self._first_s, longest_s=self._longest_s)

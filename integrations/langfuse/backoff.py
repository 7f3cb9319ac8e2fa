"""Patience: how long to wait after failures, with jitter, so that many monitors do not come back at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LONGEST_S: Final = 60.0
SOMEBODY_S: Final = 300.0
"""Between attempts where only a person can help."""
LONGEST_ASKED_S: Final = 3600.0
"""The longest wait that a server may ask for."""


class Backoff:
    """Counts failures in a row. ``jitter`` draws from [0, 1)."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self.failures = 0

    def succeeded(self) -> None:
        self.failures = 0

    def after_failure(self, asked_s: float | None, *, needs_somebody: bool = False) -> float:
        """Seconds to wait: at least what the server asked for, else twice as long each time, half of it by chance."""
        self.failures += 1
        whole_s = SOMEBODY_S if needs_somebody else self._grown(self.failures)
        wait_s = whole_s * (0.5 + self._jitter() / 2)
        return wait_s if asked_s is None else max(min(asked_s, LONGEST_ASKED_S) + self._jitter(), wait_s)

    def postponed_ns(self, attempts: int) -> int:
        """How long one score is set aside that failed so often already, in ns."""
        return int(self._grown(attempts + 3) * 1e9)

    @staticmethod
    def _grown(failures: int) -> float:
        return min(LONGEST_S, 0.5 * 2.0 ** min(failures, 10))

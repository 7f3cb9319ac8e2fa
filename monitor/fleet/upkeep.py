"""Upkeep: one monitor of the fleet deletes what is too old, some thousand rows at a time."""

from __future__ import annotations

import time
from typing import Final

from sidejudge.integrations.postgres.archive import purge
from sidejudge.integrations.postgres.database import Transaction

from .fleet import Fleet

LEASE: Final = "upkeep"
EVERY_S: Final = 60.0
WINDOWS_S: Final = 25 * 3_600.0
"""How long windows are kept at least: an hour more than the longest that ships."""
ANSWERS_S: Final = 7 * 86_400.0
MOST_ANSWERS: Final = 200_000


class Upkeep:
    """Deletes once a minute, where this monitor holds the lease."""

    def __init__(self, fleet: Fleet, *, results_s: float, windows_s: float = 0.0) -> None:
        self._fleet, self._results_s = fleet, results_s
        self._windows_s = max(WINDOWS_S, windows_s)
        self._due_s = 0.0
        fleet.want(LEASE)
        fleet.each_round("upkeep", self.round, when=self._is_due)

    def _is_due(self) -> bool:
        return self._fleet.held(LEASE) is not None and time.monotonic() >= self._due_s

    async def round(self, transaction: Transaction) -> None:
        """Delete what is too old."""
        self._due_s = time.monotonic() + EVERY_S
        await purge(
            transaction, results_s=self._results_s, windows_s=self._windows_s, answers_s=ANSWERS_S,
            answers=MOST_ANSWERS,
        )  # fmt: skip

"""Archived trends: what the history of ``sinks.parquet`` adds to a trend beyond the store's retention."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sidejudge.scoring.status.trend import Stretch

log = logging.getLogger("sidejudge.parquet")

_KEPT_S: Final = 600.0
"""How long a reading stands: what is old changes only where people have something erased, or references come late."""
_MOST: Final = 16
"""Readings that are kept."""


class _Reading(NamedTuple):
    at_s: float
    since_ns: int
    found: Sequence[Stretch]


class ArchivedTrends:
    """Reads the history at ``path``, one reading at a time, for stretches that end ``retention_ns`` ago or earlier."""

    def __init__(self, path: str, retention_ns: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._path, self._retention_ns, self._clock_s = path, retention_ns, clock_s
        self._kept: dict[tuple[int, int], _Reading] = {}
        self._one = threading.Lock()
        self._out = False

    def whole(self, stored: Sequence[Stretch], *, until_ns: int, step_ns: int, steps: int) -> Sequence[Stretch]:
        """The store's stretches, and in place of those that its retention has cut the history's. It may block long.

        While the history cannot be read, the store's are all there is; the first time that is logged.
        """
        since_ns = until_ns - steps * step_ns
        old = min(steps, -(-(until_ns - self._retention_ns - since_ns) // step_ns))
        if old <= 0:
            return stored
        with self._one:
            archived = self._archived(since_ns, step_ns, old)
        if archived is None:
            return stored
        return [*archived, *(each for each in stored if each.number >= old)]

    def _archived(self, since_ns: int, step_ns: int, old: int) -> Sequence[Stretch] | None:
        now_s = self._clock_s()
        known = self._kept.get((step_ns, old))
        if known is not None and now_s - known.at_s < _KEPT_S and since_ns - known.since_ns <= step_ns // 20:
            return known.found
        try:
            found = _read(self._path, since_ns, step_ns, old)
        except (ImportError, OSError, ValueError) as error:
            if not self._out:
                cause = f"{type(error).__name__}: {str(error)[:300]}"
                log.warning("the history cannot be read; trends end with the store", extra={"cause": cause})
            self._out = True
            return None if known is None else known.found
        self._out = False
        self._kept[step_ns, old] = _Reading(self._clock_s(), since_ns, found)
        for key in list(self._kept)[: max(0, len(self._kept) - _MOST)]:
            del self._kept[key]
        return found


def _read(path: str, since_ns: int, step_ns: int, old: int) -> Sequence[Stretch]:
    from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # pyarrow only where it is configured
    from sidejudge.integrations.history.trends import history_trends  # noqa: PLC0415  # as above

    until_ns = since_ns + old * step_ns
    return history_trends(Place(path), since_ns=since_ns, until_ns=until_ns, step_ns=step_ns)

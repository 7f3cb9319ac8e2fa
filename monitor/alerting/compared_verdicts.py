"""Compared verdicts: those of the store, and beyond its retention those of the history of ``sinks.parquet``."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from sidejudge.integrations.store.bounded_read import ComparedFilter, ComparedVerdict, read_compared

log = logging.getLogger("sidejudge.parquet")

_KEPT_S: Final = 600.0
"""How long a reading stands, as that of a trend. One is kept: it may hold 100,000 verdicts."""


class ComparedVerdicts(NamedTuple):
    """Verdicts, the newest first, and whether older ones were left unread."""

    verdicts: Sequence[ComparedVerdict]
    capped: bool


class _Reading(NamedTuple):
    at_s: float
    wanted: ComparedFilter
    found: ComparedVerdicts


class ComparedSource:
    """Reads the store at ``path`` and, where one is named, the history at ``history`` beyond ``retention_ns``."""

    def __init__(
        self, path: Path, history: str | None, retention_ns: int, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._path, self._history, self._retention_ns, self._clock_s = path, history, retention_ns, clock_s
        self._kept: _Reading | None = None
        self._one = threading.Lock()
        self._out = False

    def read(self, wanted: ComparedFilter, now_ns: int) -> ComparedVerdicts:
        """Those that match, each once: of a trace and a rubric the store's. It may block long.

        While the history cannot be read, the store's verdicts are all there is; the first time that is logged. Raises
        ``StoreError``, ``SearchTooLong``.
        """
        stored = read_compared(self._path, wanted)
        old_ns = min(wanted.until_ns, now_ns - self._retention_ns)
        capped = len(stored) >= wanted.most
        if self._history is None or capped or wanted.since_ns >= old_ns:
            return ComparedVerdicts(stored, capped)
        with self._one:
            archived = self._archived(self._history, wanted, old_ns)
        known = {(each.trace_id, each.rubric) for each in stored}
        both = [*stored, *(
            each for each in archived.verdicts
            if wanted.since_ns <= each.closed_ns < wanted.until_ns and (each.trace_id, each.rubric) not in known
        )]  # fmt: skip
        both.sort(key=lambda each: each.closed_ns, reverse=True)
        return ComparedVerdicts(both[: wanted.most], archived.capped or len(both) > wanted.most)

    def _archived(self, history: str, wanted: ComparedFilter, old_ns: int) -> ComparedVerdicts:
        at_s, kept = self._clock_s(), self._kept
        usable = kept is not None and _covers(kept.wanted, wanted, old_ns)
        if kept is not None and usable and at_s - kept.at_s < _KEPT_S:
            return kept.found
        # What the store gives up while the reading stands is read ahead; what it still has is its own.
        ahead = replace(wanted, until_ns=old_ns + 2 * round(_KEPT_S * 1e9))
        try:
            found = _read(history, ahead)
        except (ImportError, OSError, ValueError) as error:
            if not self._out:
                cause = f"{type(error).__name__}: {str(error)[:300]}"
                log.warning("the history cannot be read; comparisons end with the store", extra={"cause": cause})
            self._out = True
            return kept.found if kept is not None and usable else ComparedVerdicts((), capped=False)
        self._out = False
        self._kept = _Reading(self._clock_s(), ahead, found)
        return found


def _covers(read: ComparedFilter, wanted: ComparedFilter, old_ns: int) -> bool:
    alike = replace(read, since_ns=wanted.since_ns, until_ns=wanted.until_ns) == wanted
    return alike and read.since_ns <= wanted.since_ns and old_ns <= read.until_ns


def _read(path: str, wanted: ComparedFilter) -> ComparedVerdicts:
    from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # pyarrow only where it is configured

    from .archived_verdicts import history_compared  # noqa: PLC0415  # as above

    return ComparedVerdicts(*history_compared(Place(path), wanted))

"""Health of the store: whether its last reads and write worked, its limit, and how full it is.

A full disk does not flood the log. A volume that runs over its limit takes its Pod with it, the application in it
included. So a store that was given a limit keeps below it by itself: SQLite refuses pages beyond it. New spans are
refused a little earlier, and before the disk is full, so that what is held can still be judged, written and deleted.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import StoreCorrupt, StoreError, StoreUnavailable

_log = logging.getLogger("sidejudge.store")

_LOG_EVERY_S: Final = 60.0
"""A failure that lasts is logged this often, with how many calls it refused."""
WRITE: Final = "write"
"""The operation of everything that is written; each query is an operation of its own."""
_LASTS_S: Final = 120.0
"""For how long a failure counts that did not occur again: nobody may ask the same again. What is read or written
regularly is tried once a minute or more often."""


@dataclass(slots=True)
class _Failure:
    error: StoreError
    count: int
    logged_s: float
    last_s: float


class StoreHealth:
    """What does not work now, by operation: ``WRITE``, or the name of a query. Any thread may report."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._failing: dict[str, _Failure] = {}

    @property
    def trouble(self) -> str | None:
        """Why the store cannot be read or written now; None while it can."""
        return self._first([*self._failing.values()])

    @property
    def refusal(self) -> str | None:
        """Why nothing can be written now; None while it can, whatever cannot be read."""
        write = self._failing.get(WRITE)
        return None if write is None else self._first([write])

    def _first(self, failing: list[_Failure]) -> str | None:
        since_s = self._clock_s() - _LASTS_S
        return next((str(each.error) for each in failing if each.last_s > since_s), None)

    def failed(self, operation: str, error: StoreError) -> None:
        """Record a refused call. The first of a kind is logged at once, the others once a minute.

        A refusal for what is in the data (neither unavailable nor corrupt) is logged, and does not count against the
        store.
        """
        if not isinstance(error, StoreUnavailable | StoreCorrupt):
            _log.error("%s", error, extra={"operation": operation})
            return
        now_s, known = self._clock_s(), self._failing.get(operation)
        if known is None or str(known.error) != str(error):
            count = 1 if known is None else known.count + 1
            self._failing[operation] = _Failure(error, count, now_s, now_s)
        else:
            known.count, known.last_s = known.count + 1, now_s
            if now_s - known.logged_s < _LOG_EVERY_S:
                return
            known.logged_s = now_s
        _log.error("%s", error, extra={"operation": operation, "refused": self._failing[operation].count})

    def worked(self, operation: str) -> None:
        """Record a call that was answered: what failed before works again."""
        if self._failing and (over := self._failing.pop(operation, None)) is not None:
            _log.warning("the store works again", extra={"operation": operation, "refused": over.count})


_APPEND: Final = 0.9
"""Share of the capacity beyond which no new spans are taken; the rest is for endings, which make room."""
_RESERVE: Final = 16 << 20
"""Bytes of the disk that new spans leave, on a small one a quarter of it. SQLite moves what is committed from its log
into the file in steps of 8 MB, for which the file has to grow: on a full disk the log stays as it is, and then not even
a deletion fits."""


class Capacity:
    """``max_bytes`` of the database file, None for no limit. Its write-ahead log (64 MiB at rest) comes on top.

    ``folder``: the file's, whose disk is the limit in any case.
    """

    def __init__(self, connection: sqlite3.Connection, max_bytes: int | None, folder: Path) -> None:
        self._folder = folder
        (self._page_size,) = connection.execute("PRAGMA page_size").fetchone()
        self._max_bytes = max_bytes
        self._used = 0
        if max_bytes is not None:
            # A file that is larger already stays as it is and does not grow.
            connection.execute(f"PRAGMA max_page_count = {max(1, max_bytes // self._page_size)}")
        self.measure(connection)

    def measure(self, connection: sqlite3.Connection) -> None:
        """Look again. Free pages within the file do not count: they are used before it grows."""
        if self._max_bytes is not None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            self._used = (pages - free) * self._page_size

    @property
    def fullness(self) -> float:
        """Used share of the capacity when it was measured last; 0 without a limit."""
        return self._used / self._max_bytes if self._max_bytes else 0.0

    @property
    def refusal(self) -> str | None:
        """Why new spans are refused, with the remedy; None while they are accepted."""
        if self.fullness >= _APPEND:
            return "nearly full; raise store.max_bytes, or sample less"
        with suppress(OSError):  # a folder that is gone is reported by what is written there
            disk = shutil.disk_usage(self._folder)
            if disk.free < min(_RESERVE, disk.total // 4):
                return f"the disk is full but for {disk.free / 2**20:.1f} MiB; free some, or set store.max_bytes"
        return None


SLICE: Final = 1_000
"""Rows purged in one transaction."""


def give_back(connection: sqlite3.Connection) -> bool:
    """Return free pages to the disk while they are more than a quarter of the file; whether there may be more to do."""
    for _ in range(SLICE):
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if free * 4 <= pages:
            return False
        connection.execute("PRAGMA incremental_vacuum")  # one page a call: it stops at each row that it would return
        if connection.execute("PRAGMA freelist_count").fetchone()[0] == free:
            return False  # a file that was made without this ability
    return True

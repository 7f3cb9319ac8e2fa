"""Capacity: how much a store may hold, and how full it is.

A volume that runs over its limit takes its Pod with it, the application in it included. So a store that was given a
limit keeps below it by itself: SQLite refuses pages beyond it, and new spans are refused a little earlier, so that
what is held can still be judged, written and deleted.
"""

from __future__ import annotations

import sqlite3
from typing import Final

_APPEND: Final = 0.9
"""Share of the capacity beyond which no new spans are taken; the rest is for endings, which make room."""


class Capacity:
    """``max_bytes`` of the database file, None for no limit. Its write-ahead log (64 MiB at rest) comes on top."""

    def __init__(self, connection: sqlite3.Connection, max_bytes: int | None) -> None:
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
    def takes_spans(self) -> bool:
        return self.fullness < _APPEND


SLICE: Final = 1_000
"""Rows purged in one transaction."""


def purge_some(statement: str, before_ns: int, connection: sqlite3.Connection) -> int:
    """Delete one slice; return how many rows that were."""
    return connection.execute(statement, {"before": before_ns, "limit": SLICE}).rowcount


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

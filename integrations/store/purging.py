"""What deletes rows in slices and returns their pages to the disk."""

from __future__ import annotations

import sqlite3
from typing import Final

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

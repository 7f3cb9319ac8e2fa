"""Bounded read: a look at the store for people, over a connection of its own, that ends after some seconds."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .connection import reading
from .errors import SearchTooLong

_LONGEST_S = 5.0
_INSTRUCTIONS = 20_000
"""Steps of the database between two looks at the clock."""


@contextmanager
def bounded_read(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads. Raises ``StoreError``, and ``SearchTooLong`` where the reading takes too long."""
    ends = time.monotonic() + _LONGEST_S
    with reading(path) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > ends, _INSTRUCTIONS)
        try:
            yield connection
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            narrower = "narrow it by time, service or rubric"
            raise SearchTooLong(f"the search took longer than {_LONGEST_S:g} s; {narrower}") from None

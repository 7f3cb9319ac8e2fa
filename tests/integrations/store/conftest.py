"""Stores as earlier versions left them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sidejudge.integrations.store.connection import schema


@pytest.fixture
def left_by() -> Callable[[Path, int], None]:
    """Makes an empty store at a path, as the version of that number left it."""

    def make(path: Path, version: int) -> None:
        with closing(sqlite3.connect(path)) as old, old:
            for each in range(1, version + 1):
                old.executescript(schema(each))
            old.execute(f"PRAGMA user_version = {version}")
        old.close()

    return make

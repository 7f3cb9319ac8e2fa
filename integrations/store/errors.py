"""Errors of the store, divided by what helps: waiting, or a person."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from sidejudge.scoring.errors import SidejudgeError

_PASSING: Final = {
    sqlite3.SQLITE_FULL: "the disk is full (free space on its volume), or store.max_bytes is reached",
    sqlite3.SQLITE_BUSY: "another process holds its lock; only one monitor may use a store",
    sqlite3.SQLITE_LOCKED: "another process holds its lock; only one monitor may use a store",
    sqlite3.SQLITE_IOERR: "reading or writing failed; check its volume",
    sqlite3.SQLITE_NOMEM: "memory ran out; raise the memory limit",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; create its folder and make it writable",
    sqlite3.SQLITE_PERM: "access is refused; make the file and its folder writable",
}
BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_CHANGED: Final = ("Could not decode to UTF-8", "malformed JSON")
"""How errors begin that a changed byte inside of a text causes, which SQLite itself does not notice."""


class StoreError(SidejudgeError):
    """A request to the store failed; nothing of it was committed."""


class StoreUnavailable(StoreError):  # noqa: N818  # it names the store's state
    """The store cannot take or give anything now (disk full, locked, closed); it may later."""


class SearchTooLong(StoreUnavailable):
    """A search was stopped for the time it took. Its message says nothing of this machine: any caller may read it."""


class SpansErased(StoreError):  # noqa: N818  # likewise
    """None of a trace's spans is there any more: it was forgotten while it was judged."""


class StoreCorrupt(StoreError):  # noqa: N818  # likewise
    """The database file is damaged, or is not one of ours; only a person can help."""


def explain(error: Exception, path: Path) -> StoreError:
    """The store error that an error of the database (or of the data) means, naming the file and the remedy."""
    if isinstance(error, StoreError):
        return error
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary in BROKEN:
        return damaged(f"not a sound SQLite database ({error})", path)
    if isinstance(error, sqlite3.OperationalError) and str(error).startswith(_CHANGED):
        return changed(path)
    if primary in _PASSING:
        return StoreUnavailable(f"store {path}: {error}: {_PASSING[primary]}")
    return StoreError(f"store {path}: {type(error).__name__}: {error}")


def damaged(how: str, path: Path) -> StoreCorrupt:
    """The error of a store that is damaged, with what helps."""
    return StoreCorrupt(
        f"store {path}: {how}\n"
        f"'sidejudge store recover --store {path}' saves what can be read of it, and store.on_damage: recover does "
        f"so at each start; or move it away (with {path.name}-wal and {path.name}-shm): then all of it is lost"
    )


def changed(path: Path) -> StoreCorrupt:
    """The error for a store whose text is not as it was written. The text is not shown."""
    return damaged("a text in it is no longer what was written: bytes of the file have changed", path)

"""Connections to the store's file, its lock, and the version of its schema; the SQL is in the files beside this one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from sidejudge.integrations.sql import statements
from sidejudge.scoring.lexical.shown_text import is_named
from sidejudge.scoring.result.result import OUTAGES, is_of_outage
from sidejudge.scoring.verdict.documents import failed_reasons

from .errors import SearchTooLong, StoreCorrupt, StoreUnavailable, changed, explain

VERSION: Final = 15
"""Version of the schema, kept in the file's ``user_version``."""
_OF_SERVICE: Final = re.compile(r"is_named\((coalesce\(nullif\([v.]*service, ''\), 'unknown_service'\)), :service\)")
_FAILED: Final = re.compile(
    r"\(:passed IS NULL OR (v\.)?passed IS \(CASE :passed WHEN 'true' THEN 1 WHEN 'false' THEN 0 END\)\)"
)
_INDEXES: Final = (
    "outbox_over_index", "turns_of_session_index", "turns_by_session_gone", "verdicts_by_service_index",
    "verdicts_failed_index",
    "mail_parked_index",
)  # fmt: skip


@cache
def schema(version: int) -> str:
    """The statements that bring a database of the version before (0: an empty one) to this version.

    What a version once wrote is never changed: a new version is a new file, ``schema_N.sql``, and the number above.
    """
    return files(__package__).joinpath(f"schema_{version}.sql").read_text("utf-8")


def queries() -> dict[str, str]:
    """The statements to the store."""
    return statements("sidejudge.integrations.store")


def select(connection: sqlite3.Connection, name: str, given: Mapping[str, object]) -> sqlite3.Cursor:
    """The rows of a statement whose filters are all optional: ``:x IS NULL OR …``, which no index can answer.

    What is given becomes a condition: of several that have an index the one that leaves least, for SQLite does not know
    which that is. Bounds of time have one together with each. Of several services at once no index has the verdicts in
    the order of time: all of theirs would be read and sorted for each page.
    """
    text, meant = queries()[name], _services(connection, given.get("service"))
    if meant is not None:
        text = _OF_SERVICE.sub(r"\1 = :meant", text)
    indexed = ("trace_id", "rubric") if meant is None else ("trace_id", "service", "rubric")
    first = next((each for each in indexed if given.get(each) is not None), "")
    for each in (first, "since", "until", "after_ns"):
        if given.get(each) is not None:
            text = text.replace(f":{each} IS NULL OR ", "")
    if given.get("passed") == "false":
        text = _FAILED.sub(r"\1passed = 0", text)
    return connection.execute(text, {**given, "meant": next(iter(meant or ()), None)})


def _services(connection: sqlite3.Connection, wanted: object) -> list[object] | None:
    """The one service that a filter means, or none; None without a filter, for several, and where there is no index."""
    if wanted is None:
        return None
    with suppress(sqlite3.OperationalError):
        found = [name for (name,) in connection.execute(queries()["services_meant"], (wanted,))]
        return found if len(found) < 2 else None
    return None


def connect(path: Path) -> sqlite3.Connection:
    """A connection with the store's settings. Raises ``StoreError`` where the file cannot be opened."""
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
        # These take effect on a new file only. Verdicts and chunks take some kB each: in pages of 8 kB there is
        # less left over between them.
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 67108864")  # the log shrinks again after a burst
        add_functions(connection)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise explain(error, path) from error
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Let statements ask whether a filter means a name, and whether an outage kept a verdict from being reached."""
    connection.create_function("is_named", 2, is_named, deterministic=True)
    connection.create_function("is_unanswered", 1, _is_unanswered, deterministic=True)


def _is_unanswered(verdict: str) -> bool:
    """Whether a question that counts could not be asked, in a verdict that neither passed nor failed."""
    if not any(outage in verdict for outage in OUTAGES):
        return False
    try:
        return any(map(is_of_outage, failed_reasons(json.loads(verdict))))
    except (LookupError, TypeError, ValueError):  # it is not what was written
        return False


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of its own that only reads, all of one moment; nobody waits for it. Raises ``StoreError``."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            add_functions(connection)
            connection.execute("BEGIN")
            yield connection
    except ValueError as error:  # a text that is no JSON
        raise changed(path) from error
    except sqlite3.Error as error:
        raise explain(error, path) from error


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema to this version. Raises ``StoreCorrupt`` for a newer one, or a file that is not a store."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    foreign = version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if version > VERSION or foreign:
        raise StoreCorrupt(
            f"store {path}: it has schema version {version}, this version of sidejudge writes {VERSION}\n"
            "use the version that wrote it, or set store.path to a new file"
        )
    for step in range(version + 1, VERSION + 1):
        connection.executescript(f"BEGIN IMMEDIATE;\n{schema(step)}\nPRAGMA user_version = {step};\nCOMMIT;")
    for table in ("untaken_table", "whose_table"):  # no steps: earlier versions go on without them
        connection.execute(queries()[table])
    with suppress(sqlite3.Error):  # on a full disk, or beside a damaged page; without it all is as before, but slower
        for index in _INDEXES:
            connection.execute(queries()[index])


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file that a path names now; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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


class Lock:
    """One monitor a store: two would each judge what the other took in.

    Held from construction to ``release``, or until the process ends in whatever way: no stale lock stays behind.
    """

    def __init__(self, store: Path) -> None:
        # A link to a store is that store.
        self._store, self._path = store, Path(os.path.realpath(store) + ".lock")
        self._file: int | None = self._acquire()

    def _acquire(self) -> int:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            cause = f"{self._path.name} cannot be made ({error.strerror})"
            raise StoreUnavailable(f"store {self._store}: {cause}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise StoreUnavailable(
                f"store {self._store}: another monitor uses it\nstop that one, or set store.path to another file"
            ) from None
        return file

    def check(self) -> None:
        """Whether the lock is still what others look at. One whose file was removed is taken again.

        Raises ``StoreUnavailable`` where another monitor took it meanwhile: of two, the later one goes on.
        """
        if self._file is None:
            return
        try:
            if os.path.samestat(os.fstat(self._file), self._path.stat()):
                return
        except FileNotFoundError:
            pass
        taken = self._acquire()
        os.close(self._file)
        self._file = taken

    def release(self) -> None:
        """Let another monitor have the store; idempotent."""
        # Closed twice, the number may by then be somebody else's file.
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

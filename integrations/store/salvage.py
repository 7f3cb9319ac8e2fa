"""Salvage: what can be read of a damaged store goes into a new one. The damaged file is kept beside it.

Rows are read one after the other, and where a page cannot be read, behind it. A row is taken if each text is text and
each JSON is JSON. What is lost is counted as far as an index still knows how much there was.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from .connection import connect, migrate
from .damaged_files import at_full_length, mended_log, with_head_of
from .errors import BROKEN, StoreError, explain
from .lock import Lock
from .statements import VERSION

_BESIDE: Final = ("-wal", "-shm")
_FAR: Final = 1 << 40
"""A row id that none reaches; where the largest cannot be read, rows are looked for up to it."""
_MOST_JUMPS: Final = 200
Row: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class Salvaged:
    """What came of it: rows that went on, by table, and of how many where that is known; where the damaged file is."""

    kept_as: Path
    rows: dict[str, int] = field(default_factory=dict)
    of: dict[str, int | None] = field(default_factory=dict)

    @property
    def lost(self) -> dict[str, int | None]:
        """Rows that were lost, by table; None: nobody knows how many."""
        found = {table: None if (of := self.of[table]) is None else max(0, of - n) for table, n in self.rows.items()}
        return {table: n for table, n in found.items() if n != 0}


def is_damaged(path: Path) -> bool:
    """Whether a store that is there cannot be used as it is: its structure and its texts are looked through, whole."""
    if not path.exists() or not path.stat().st_size:
        return False
    if mended_log(_log_of(path)) is not None:
        return True
    try:
        with closing(_reading(path)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != _Text(b"ok"):
                return True
            return any(_sound(row) is None for row in _texts(connection))
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF in BROKEN


def _texts(connection: sqlite3.Connection) -> Iterator[Row]:
    """The columns that are declared as text, of all rows: SQLite notices no byte that changed inside of one."""
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        name = table.value.decode()
        declared = connection.execute(f"PRAGMA table_info({name})").fetchall()
        columns = [column.value.decode() for _, column, kind, *_ in declared if kind == _Text(b"TEXT")]
        if columns:
            yield from connection.execute(f"SELECT {', '.join(columns)} FROM {name}")  # noqa: S608  # the store's names


def salvage(path: Path) -> Salvaged:
    """Put a new store in the place of a damaged one, with all rows that can be read.

    Raises ``StoreError`` where another process uses it, or no new one can be written; then the damaged one stays.
    """
    lock = Lock(path)
    try:
        return _salvaged(path)
    finally:
        lock.release()


def _salvaged(path: Path) -> Salvaged:
    new = path.with_name(f"{path.name}.recovered")
    for each in ("", *_BESIDE):
        Path(f"{new}{each}").unlink(missing_ok=True)
    found = Salvaged(kept_as=_free_name(path))
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        with closing(connect(new)) as to:
            migrate(to, new)
            tables = [name for (name,) in to.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            with (
                _mended(_log_of(path), _log_of(found.kept_as)),
                at_full_length(path),
                _listing_tables(path, new) as readable,
                closing(_reading(readable)) as connection,
            ):
                _check_version(connection, path)
                for table in sorted(name for name in tables if not name.startswith("sqlite_")):
                    _copy(connection, to, table, found)
    except sqlite3.Error as error:
        raise explain(error, new) from error
    for each in (*_BESIDE, ""):
        with suppress(FileNotFoundError):
            Path(f"{path}{each}").replace(f"{found.kept_as}{each}")
    new.replace(path)
    return found


@contextmanager
def _listing_tables(path: Path, empty: Path) -> Iterator[Path]:
    """The file itself, or, where its list of tables cannot be read, a copy that has that of an empty store."""
    with suppress(sqlite3.DatabaseError), closing(_reading(path)) as connection:
        if len(connection.execute("SELECT sql FROM sqlite_schema").fetchall()):
            yield path
            return
    with closing(sqlite3.connect(empty)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with with_head_of(path, empty.read_bytes()) as copy:
        yield copy or path


def _log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


@contextmanager
def _mended(log: Path, kept_as: Path) -> Iterator[None]:
    """Have a damaged write-ahead log be whole for as long as the store is read; it is put back as it was."""
    mended = mended_log(log)
    if mended is None:
        yield
        return
    log.replace(kept_as)
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(mended)
        yield
    finally:
        kept_as.replace(log)


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    with suppress(sqlite3.DatabaseError):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoreError(f"store {path}: it has schema version {version}; recover it by the version that wrote it")


def _copy(connection: sqlite3.Connection, to: sqlite3.Connection, table: str, found: Salvaged) -> None:
    named = [(name, bool(key)) for _, name, _, _, _, key in to.execute(f"PRAGMA table_info({table})")]
    found.rows[table], found.of[table] = 0, None
    try:
        there = {name.value.decode() for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
    except sqlite3.DatabaseError:
        return
    columns = [name for name, _ in named if name in there]
    if not columns:  # it is younger than the store, or the schema cannot be read
        found.of[table] = None if not there else 0
        return
    with suppress(sqlite3.DatabaseError):
        (found.of[table],) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608  # our names
    keys = [name for name, is_key in named if is_key and name in there]
    values = ", ".join("?" * len(columns))
    to.execute("BEGIN")
    for row in _rows(connection, table, columns, keys):
        if (clean := _sound(row)) is None:
            continue
        with suppress(sqlite3.IntegrityError):
            put = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our names
            found.rows[table] += to.execute(put, clean).rowcount
    to.execute("COMMIT")


def _rows(connection: sqlite3.Connection, table: str, columns: list[str], keys: list[str]) -> Iterator[Row]:
    """The rows that can be read, each once but for some of a table without row ids."""
    wanted = ", ".join(columns)
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")  # noqa: S608  # our names
    except sqlite3.OperationalError:
        # Without row ids: from both ends, up to what cannot be read.
        for order in ("ASC", "DESC"):
            ordered = ", ".join(f"{key} {order}" for key in keys)
            with suppress(sqlite3.DatabaseError):
                yield from connection.execute(f"SELECT {wanted} FROM {table} ORDER BY {ordered}")  # noqa: S608  # our names
                return
        return
    yield from _numbered(connection, table, wanted)


def _numbered(connection: sqlite3.Connection, table: str, wanted: str) -> Iterator[Row]:
    try:
        last = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0  # noqa: S608  # our names
    except sqlite3.DatabaseError:
        last = _FAR
    at, step, jumps = -(1 << 62), 1, 0
    query = f"SELECT rowid, {wanted} FROM {table} WHERE rowid > ? ORDER BY rowid"  # noqa: S608  # our names
    while at < last and jumps < _MOST_JUMPS:
        with suppress(sqlite3.DatabaseError):
            for number, *row in connection.execute(query, (at,)):
                yield tuple(row)
                at, step = int(number), 1
            return
        at, step, jumps = max(at, 0) + step, step * 2, jumps + 1  # behind what cannot be read, ever further


def _sound(row: Row) -> Row | None:
    """A row with its texts decoded; None where one is none, or is JSON that cannot be read."""
    found: list[object] = []
    for value in row:
        text = value.value if isinstance(value, _Text) else value
        if isinstance(value, _Text):
            try:
                text = value.value.decode()
                if text.startswith(("{", "[")):
                    json.loads(text)
            except (ValueError, RecursionError):
                return None
        found.append(text)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text as bytes: one that is no UTF-8 must not end the reading of its table."""

    value: bytes


def _reading(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2.0)
    connection.text_factory = _Text
    connection.execute("PRAGMA query_only = ON")
    return connection


def _free_name(path: Path) -> Path:
    numbers = iter(range(1, 10_000))
    return next(name for n in numbers if not (name := path.with_name(f"{path.name}.damaged-{n}")).exists())

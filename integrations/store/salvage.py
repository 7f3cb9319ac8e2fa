"""Salvage: what can be read of a damaged store goes into a new one. The damaged file is kept beside it.

Rows are read one after the other, and where a page cannot be read, behind it. A row is taken if each text is text, each
JSON is JSON, each value of the declared kind, and its checksum, where it has one, fits. What is lost is counted as far
as an index still knows how much there was.

The files go through three states, so that a process may be killed at any moment: a new store that is being written
(``.recovered``); one that is whole (``.damaged-1.successor``); and one in the place of the damaged, which is then
``.damaged-1``.
"""

from __future__ import annotations

import glob
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from .connection import VERSION, Lock, connect, migrate
from .damaged_files import at_full_length, create, mended_log, with_head_of
from .errors import BROKEN, StoreError, StoreUnavailable, explain
from .part import with_checksum

_BESIDE: Final = ("-wal", "-shm")
_FAR: Final = 1 << 40
"""A row id that none reaches; where the largest cannot be read, rows are looked for up to it."""
_MOST_JUMPS: Final = 200
_CHECKSUM: Final = "checksum"
_KINDS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "INTEGER": ("('integer', 'null')", (int,)), "REAL": ("('real', 'integer', 'null')", (float, int)),
    "TEXT": ("('text', 'null')", (str,)), "BLOB": ("('blob', 'null')", (bytes,)),
}  # fmt: skip
"""What a column of each declared kind holds, for SQLite and here."""
Row: TypeAlias = tuple[object, ...]
Columns: TypeAlias = Mapping[str, str]
"""The declared kind of each column, in the order of a row."""


@dataclass(slots=True)
class Salvaged:
    """The result: rescued rows by table, the number there had been where known, and the damaged file's place."""

    kept_as: Path
    rows: dict[str, int] = field(default_factory=dict)
    of: dict[str, int | None] = field(default_factory=dict)

    @property
    def lost(self) -> dict[str, int | None]:
        """Rows that were lost, by table; None: nobody knows how many."""
        found = {table: None if (of := self.of[table]) is None else max(0, of - n) for table, n in self.rows.items()}
        return {table: n for table, n in found.items() if n != 0}


def is_damaged(path: Path) -> bool:
    """Whether a store that is there cannot be used as it is: its structure and its texts are looked through, whole.

    One whose salvage was broken off is, though its file may have been moved already.
    """
    if _broken_off(path) is not None:
        return True
    if not path.exists() or not path.stat().st_size:
        return False
    if mended_log(_log_of(path)) is not None:
        return True
    try:
        with closing(_reading(path)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != _Text(b"ok"):
                return True
            return any(_sound(names, row) is None for names, row in _texts(connection))
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF in BROKEN


def _texts(connection: sqlite3.Connection) -> Iterator[tuple[Columns, Row]]:
    """Texts, checksums, and all columns of a row with a value of another kind: SQLite notices no change inside them."""
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        name = table.value.decode()
        declared = _declared(connection, name)
        texts = {column: kind for column, kind in declared.items() if kind == "TEXT" or column == _CHECKSUM}
        misfits = [f"typeof({column}) NOT IN {_KINDS[kind][0]}" for column, kind in declared.items() if kind in _KINDS]
        for columns, where in ((texts, ""), (declared, f" WHERE {' OR '.join(misfits)}")):
            if columns and misfits:
                rows = connection.execute(f"SELECT {', '.join(columns)} FROM {name}{where}")  # noqa: S608  # the store's names
                yield from ((columns, row) for row in rows)


def _declared(connection: sqlite3.Connection, table: str) -> Columns:
    """The columns of a table with their kinds, in order; names and kinds are ours."""
    found = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return {column.value.decode(): kind.value.decode() for _, column, kind, *_ in found}


def salvage(path: Path) -> Salvaged:
    """Put a new store in the place of a damaged one, with all rows that can be read.

    Raises ``StoreError`` where another process uses it, or no new one can be written; then the damaged one stays.
    """
    lock = Lock(path)
    try:
        kept_as = _broken_off(path)
        found = _whole(kept_as) if kept_as is not None else _salvaged(path)
        for each in (*_BESIDE, ""):
            with suppress(FileNotFoundError):
                Path(f"{path}{each}").replace(f"{found.kept_as}{each}")
        _successor(found.kept_as).replace(path)
    except sqlite3.Error as error:
        raise explain(error, path) from error
    except OSError as error:
        raise StoreUnavailable(f"store {path}: no new one can be put in its place ({error})") from None
    finally:
        lock.release()
    return found


def _successor(kept_as: Path) -> Path:
    """The new store, whole, until it stands in the place of the damaged one."""
    return kept_as.with_name(f"{kept_as.name}.successor")


def _whole(kept_as: Path) -> Salvaged:
    """What came of a salvage that was broken off behind its last row; of how many rows is known no more."""
    with closing(sqlite3.connect(_successor(kept_as))) as connection:
        rows = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  # our names
            for table in _tables(connection)
        }
    return Salvaged(kept_as, rows, dict.fromkeys(rows))


def _tables(connection: sqlite3.Connection) -> list[str]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return sorted(name for name in names if not name.startswith("sqlite_"))


def _broken_off(path: Path) -> Path | None:
    """As what a damaged store is kept whose successor is whole and not yet in its place."""
    for each in path.parent.glob(f"{glob.escape(path.name)}.damaged-*.successor"):
        kept_as = each.with_suffix("")
        if not (kept_as.exists() and path.exists()):  # else a store was begun meanwhile without it
            return kept_as
    return None


def _salvaged(path: Path) -> Salvaged:
    """Write the successor."""
    new = path.with_name(f"{path.name}.recovered")
    for each in ("", *_BESIDE):
        Path(f"{new}{each}").unlink(missing_ok=True)
    found = Salvaged(kept_as=_free_name(path))
    create(new)
    with closing(connect(new)) as to:
        migrate(to, new)
        with (
            _mended(_log_of(path), _log_of(found.kept_as)),
            at_full_length(path),
            _listing_tables(path, new) as readable,
            closing(_reading(readable)) as connection,
        ):
            _check_version(connection, path)
            for table in _tables(to):
                _copy(connection, to, table, found)
    new.replace(_successor(found.kept_as))
    return found


@contextmanager
def _listing_tables(path: Path, empty: Path) -> Iterator[Path]:
    """The file itself; where its list of tables cannot be read, a copy with the list of an empty store."""
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
    """Repair a damaged write-ahead log while the store is read, then put the original back."""
    mended = mended_log(log)
    if mended is None:
        yield
        return
    whole = log.with_name(f"{log.name}.mended")
    create(kept_as, log.read_bytes())
    create(whole, mended)
    whole.replace(log)
    try:
        yield
    finally:
        kept_as.replace(log)


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    with suppress(sqlite3.DatabaseError):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoreError(f"store {path}: it has schema version {version}; recover it by the version that wrote it")


def _copy(connection: sqlite3.Connection, to: sqlite3.Connection, table: str, found: Salvaged) -> None:
    named = [(name, kind, bool(key)) for _, name, kind, _, _, key in to.execute(f"PRAGMA table_info({table})")]
    found.rows[table], found.of[table] = 0, None
    try:
        there = _declared(connection, table)
    except sqlite3.DatabaseError:
        return
    columns = {name: kind for name, kind, _ in named if name in there}
    if not columns:  # it is younger than the store, or the schema cannot be read
        found.of[table] = None if not there else 0
        return
    with suppress(sqlite3.DatabaseError):
        (found.of[table],) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608  # our names
    keys = [name for name, _, is_key in named if is_key and name in there]
    values = ", ".join("?" * len(columns))
    to.execute("BEGIN")
    for row in _rows(connection, table, columns, keys):
        if (clean := _sound(columns, row)) is None:
            continue
        with suppress(sqlite3.IntegrityError):
            put = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our names
            found.rows[table] += to.execute(put, clean).rowcount
    to.execute("COMMIT")


def _rows(connection: sqlite3.Connection, table: str, columns: Columns, keys: list[str]) -> Iterator[Row]:
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


def _sound(columns: Columns, row: Row) -> Row | None:
    """A row with its texts decoded; None where one is none, or is JSON that cannot be read, or it is not as written."""
    found: list[object] = []
    for kind, value in zip(columns.values(), row, strict=True):
        text = value.value if isinstance(value, _Text) else value
        if isinstance(value, _Text):
            try:
                text = value.value.decode()
                if text.startswith(("{", "[")):
                    json.loads(text)
            except (ValueError, RecursionError):
                return None
        if text is not None and kind in _KINDS and not isinstance(text, _KINDS[kind][1]):
            return None
        found.append(text)
    if _CHECKSUM in columns and found[-1] is not None:
        return tuple(found) if tuple(found) == with_checksum(str(found[0]), str(found[1])) else None
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

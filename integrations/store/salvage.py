"""Salvage: what can be read of a damaged store goes into a new one. The damaged file is kept beside it.

Rows are read one after the other, and where a page cannot be read, behind it. A row is taken if each text is text, each
JSON is JSON, each value of the declared kind, and its checksum, where it has one, fits. What is lost is counted as far
as an index still knows how much there was.

First the damaged files are brought into a form that SQLite reads. A file that was cut off is refused whole by SQLite,
and a write-ahead log is read up to the first frame that does not fit its checksum, without a word about those behind
it. Here such a file gets its length back, as zeros that take no space, and a log checksums that fit: what was cut off
or changed is then found row by row. A file whose first page is gone, which lists the tables, gets that of an empty
store: SQLite keeps the roots of tables at the beginning of such a file (``auto_vacuum``), so that they stand where
those of an empty store do.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
from array import array
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from .connection import VERSION, Lock, connect, migrate
from .errors import BROKEN, StoreError, explain
from .part import with_checksum

_MAGIC: Final = b"SQLite format 3\x00"
_LOG_MAGIC: Final = 0x377F0682
"""The last bit is set where checksums read words with the high byte first."""
_LOG_HEAD: Final = struct.Struct(">8I")
"""Magic, version, page size, number, two salts, two checksums."""
_FRAME: Final = struct.Struct(">6I")
"""Page, pages of the file after a commit (else 0), two salts, two checksums."""
_SUMMED: Final = 8
"""Bytes of a frame's head that its checksum covers; its page is behind it."""


_FILE_HEAD: Final = 100
_TABLES: Final = frozenset({0x05, 0x0D})
"""First bytes of the pages of a table: those with pointers, those with rows."""
_INDEXES: Final = frozenset({0x02, 0x0A})
_MOST_MISFITS: Final = 3
"""Roots that may be damaged too."""


@contextmanager
def with_head_of(path: Path, empty: bytes) -> Iterator[Path | None]:
    """A copy of a store, with all that its log commits and the list of tables of an empty one.

    None where the roots of its tables stand elsewhere: another version has written it, or they are damaged too.
    """
    copy = path.with_name(f"{path.name}.reading")
    try:
        shutil.copyfile(path, copy)
        page = int.from_bytes(empty[16:18])
        with copy.open("r+b") as file:
            for number, content in _committed(Path(f"{path}-wal"), page):
                file.seek((number - 1) * page)
                file.write(content)
            fits = _write_head(file, empty, page)
        yield copy if fits else None
    finally:
        copy.unlink(missing_ok=True)


def _committed(log: Path, page: int) -> Iterator[tuple[int, bytes]]:
    """The pages that a sound log commits, with their numbers, in order."""
    data = bytearray(log.read_bytes()) if log.exists() else bytearray()
    if len(data) < _LOG_HEAD.size or _LOG_HEAD.unpack_from(data)[2] != page:
        return
    salts = _LOG_HEAD.unpack_from(data)[4:6]
    waiting: list[tuple[int, bytes]] = []
    for frame in _frames(data, page, (salts[0], salts[1])):
        if not frame.fits:
            return
        number, commits, *_ = _FRAME.unpack_from(data, frame.at)
        body = frame.at + _FRAME.size
        waiting.append((number, bytes(data[body : body + page])))
        if commits:
            yield from waiting
            waiting = []


def _write_head(file: BinaryIO, empty: bytes, page: int) -> bool:
    """Replace a file's first page by an empty store's, and append the pages that it points to."""
    pages = -(-file.seek(0, os.SEEK_END) // page)
    (last_root,) = struct.unpack_from(">I", empty, 52)
    misfits = 0
    for root in range(3, last_root + 1):
        file.seek((root - 1) * page)
        kinds = _TABLES if empty[(root - 1) * page] in _TABLES else _INDEXES
        misfits += int.from_bytes(file.read(1)) not in kinds
    if misfits > _MOST_MISFITS:
        return False
    head, more = bytearray(empty[:page]), bytearray()
    head[18:20] = b"\x01\x01"  # there is no log
    if head[_FILE_HEAD] == min(_TABLES):
        (cells,) = struct.unpack_from(">H", head, _FILE_HEAD + 3)
        of_cells = struct.unpack_from(f">{cells}H", head, _FILE_HEAD + 12)
        for at in (*of_cells, _FILE_HEAD + 8):
            (child,) = struct.unpack_from(">I", head, at)
            more += empty[(child - 1) * page : child * page]
            struct.pack_into(">I", head, at, pages + len(more) // page)
    struct.pack_into(">I", head, 28, pages + len(more) // page)
    file.seek(pages * page)
    file.write(more)
    file.seek(0)
    file.write(head)
    return True


@contextmanager
def at_full_length(path: Path) -> Iterator[None]:
    """Give a file the length that its head states for as long as it is read."""
    size, stated = path.stat().st_size, _stated_size(path)
    if stated <= size:
        yield
        return
    with suppress(OSError):  # the number itself may be damaged
        os.truncate(path, stated)
    try:
        yield
    finally:
        os.truncate(path, size)


def _stated_size(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(_MAGIC):
        return 0
    page, (pages,) = int.from_bytes(head[16:18]), struct.unpack_from(">I", head, 28)
    return (65536 if page == 1 else page) * int(pages)


class _Frame(NamedTuple):
    at: int
    fits: bool


def mended_log(log: Path) -> bytes | None:
    """A write-ahead log with checksums that fit, up to the last frame that was whole.

    None where SQLite reads all of it as it is. Behind the last commit of a process that was killed a frame may be half
    written, and behind that come those of an earlier time; neither is damage.
    """
    data = bytearray(log.read_bytes()) if log.exists() else bytearray()
    if len(data) < _LOG_HEAD.size:
        return None
    magic, _, page, _, *salts, _, _ = _LOG_HEAD.unpack_from(data)
    if magic & ~1 != _LOG_MAGIC or page < 512:
        return None
    frames = list(_frames(data, page, (salts[0], salts[1])))
    whole = max((n for n, frame in enumerate(frames) if frame.fits), default=-1)
    if all(frame.fits for frame in frames[:whole]):
        return None
    state = _checksum(data[:24], (0, 0), magic)
    for at, _ in frames[: whole + 1]:
        body = at + _FRAME.size
        state = _checksum(data[at : at + _SUMMED] + data[body : body + page], state, magic)
        struct.pack_into(">4I", data, at + _SUMMED, *salts, *state)
    return bytes(data[: frames[whole].at + _FRAME.size + page])


def _frames(data: bytearray, page: int, salts: tuple[int, int]) -> Iterator[_Frame]:
    """The frames, and whether each is as it was written: its checksum continues the one that stands before it."""
    magic, *_, first, second = _LOG_HEAD.unpack_from(data)
    state = (first, second)
    for at in range(_LOG_HEAD.size, len(data) - _FRAME.size - page + 1, _FRAME.size + page):
        _, _, *of, first, second = _FRAME.unpack_from(data, at)
        body = at + _FRAME.size
        fits = tuple(of) == salts and (first, second) == _checksum(
            data[at : at + _SUMMED] + data[body : body + page], state, magic
        )
        yield _Frame(at, fits)
        state = (first, second)


def _checksum(part: bytearray, state: tuple[int, int], magic: int) -> tuple[int, int]:
    """SQLite's checksum of a part, continued from ``state`` (https://www.sqlite.org/fileformat2.html#checksum_algorithm)."""
    words, (first, second) = array("I", bytes(part)), state
    if (magic & 1) != (struct.pack("=H", 1) == b"\x00\x01"):
        words.byteswap()
    pairs = iter(words)
    for even, odd in zip(pairs, pairs, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


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

"""Damaged files: a database and its write-ahead log in a form that SQLite reads, for as long as they are read.

SQLite refuses a file that was cut off, and reads a write-ahead log up to the first frame with a wrong checksum,
silently leaving out the frames behind it. Here the file gets its length back, as zeros that take no space, and the log
gets checksums that fit; what was cut off or changed is then found row by row. The first page lists the tables. If it is
gone, the file gets the first page of an empty store: with ``auto_vacuum`` SQLite keeps the roots of tables at the
beginning of the file, at the same places in every store.
"""

from __future__ import annotations

import os
import shutil
import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

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


def create(path: Path, content: bytes = b"") -> None:
    """A file that its owner alone may read, in the place of any that is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@contextmanager
def with_head_of(path: Path, empty: bytes) -> Iterator[Path | None]:
    """A copy of a store, with all that its log commits and the list of tables of an empty one.

    None where the roots of its tables stand elsewhere: another version has written it, or they are damaged too.
    """
    copy = path.with_name(f"{path.name}.reading")
    try:
        create(copy)
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

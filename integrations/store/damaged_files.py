"""The files of a damaged store, brought into a form that SQLite reads.

A file that was cut off is refused whole, and a write-ahead log is read up to the first frame that does not fit its
checksum, without a word about those behind it. Here a file gets its length back, as zeros that take no space, and a log
checksums that fit: what was cut off or changed is then found row by row.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

_MAGIC: Final = b"SQLite format 3\x00"
_LOG_MAGIC: Final = 0x377F0682
"""The last bit is set where checksums read words with the high byte first."""
_LOG_HEAD: Final = struct.Struct(">8I")
"""Magic, version, page size, number, two salts, two checksums."""
_FRAME: Final = struct.Struct(">6I")
"""Page, pages of the file after a commit (else 0), two salts, two checksums."""
_SUMMED: Final = 8
"""Bytes of a frame's head that its checksum covers; its page is behind it."""


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

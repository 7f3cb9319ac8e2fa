"""Lines of a file of any size, each of bounded length."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAX_LINE = 64 * 2**20
"""Bytes of one case. A longer line is not held in memory: it is reported and skipped."""


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """Line ``number`` (from 1), its bytes (``None`` when it is too long), and the bytes read so far with it."""

    number: int
    text: bytes | None
    read: int


def lines(file: BinaryIO, limit: int = MAX_LINE) -> Iterator[NumberedLine]:
    """Every line that is not blank. A byte order mark at the start of the file is no part of the first."""
    number = read = 0
    while chunk := file.readline(limit + 1):
        number += 1
        read += len(chunk)
        too_long = len(chunk) > limit
        if number == 1:
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        while too_long and chunk and not chunk.endswith(b"\n"):
            chunk = file.readline(limit)
            read += len(chunk)
        if too_long:
            yield NumberedLine(number, None, read)
        elif chunk.strip():
            yield NumberedLine(number, chunk, read)

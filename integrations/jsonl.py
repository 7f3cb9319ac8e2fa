"""JSON Lines: records appended to a file, one a line, each once although the process may be killed at any moment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import orjson

from sidejudge.scoring.errors import SidejudgeError

from .backoff import DestinationUnreachableError


def line(record: Mapping[str, object]) -> bytes:
    """A record as one line of JSON, with its line break."""
    try:
        return orjson.dumps(record) + b"\n"
    except TypeError:  # whole numbers beyond 64 bits, halves of surrogate pairs: json can write what orjson refuses
        return json.dumps(record).encode() + b"\n"


class SinkError(SidejudgeError):
    """A file that cannot be appended to."""


class JsonLines:
    """Appends lines. The file is opened for each batch, so that a log rotator may move it at any time."""

    def __init__(self, path: Path, mode: int = 0o600) -> None:
        """``mode``: who may read a file that is made here; one that is there keeps its own."""
        self._path, self._mode = path, mode
        self._first = True

    def check(self) -> int:
        """Who may read the file beyond ``mode``, as bits of a mode.

        Raises:
            SinkError: The file cannot be appended to.
        """
        try:
            with self._opened("ab") as file:
                return os.fstat(file.fileno()).st_mode & 0o777 & ~self._mode
        except OSError as error:
            raise SinkError(f"sinks.jsonl.path: cannot append to {self._path}: {error.strerror}") from None

    def _opened(self, how: str) -> IO[bytes]:
        def made(path: str, flags: int) -> int:  # Path.open takes no mode of a new file
            return os.open(path, flags, self._mode)

        return open(self._path, how, opener=made)

    def append(self, lines: Sequence[bytes]) -> None:
        """Append all lines in one write.

        The first batch of a process may stand in the file already, written by a process that was killed before it
        could record that. Lines that the file ends with are not written again; a line that broke off is completed if
        it is one of the batch, and ended otherwise.

        Raises:
            DestinationUnreachableError: nothing of it is to be relied on; it is to be appended again.
        """
        try:
            with self._opened("a+b") as file:
                if self._first:
                    lines = _missing(file, lines)
                file.write(b"".join(lines))
        except OSError as error:
            self._first = True  # a full disk may have taken a part
            raise DestinationUnreachableError(f"cannot append to {self._path}: {error.strerror}") from None
        self._first = False


def _missing(file: IO[bytes], lines: Sequence[bytes]) -> Sequence[bytes]:
    """The bytes to append so that the file ends with these lines; it may hold the first ones already."""
    whole = b"".join(lines)
    end = file.seek(0, os.SEEK_END)
    tail_at = file.seek(max(0, end - len(whole) - 1))
    tail = file.read()
    begin = 0 if tail_at == 0 else tail.find(b"\n") + 1  # a line begins at the file's start or after a line break
    while begin < len(tail) and (begin or not tail_at):
        if whole.startswith(tail[begin:]):
            return [whole[len(tail) - begin :]]
        begin = tail.find(b"\n", begin) + 1 or len(tail)
    return [b"\n", *lines] if tail and not tail.endswith(b"\n") else lines

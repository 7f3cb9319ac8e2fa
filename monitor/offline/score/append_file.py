"""A file that one process at a time appends to, and that a killed one may have left with half a line."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sidejudge.scoring.errors import SidejudgeError


class AnotherRunError(SidejudgeError):
    """The file holds what this run did not give, or another run is writing it."""


class AppendFile:
    """Opened for appending and locked until it is closed; ``AnotherRunError`` while another process has it open."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        if path.is_file():
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise AnotherRunError(f"{path} is being written by another process") from None

    def write(self, block: bytes) -> None:
        """Append all of it."""
        view = memoryview(block)
        while view:
            view = view[self._file.write(view) :]

    def cut(self, size: int) -> None:
        """Cut away what follows the first ``size`` bytes."""
        os.ftruncate(self._file.fileno(), size)

    def close(self) -> None:
        self._file.close()

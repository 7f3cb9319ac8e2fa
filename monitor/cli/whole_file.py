"""Files that a command writes as a whole, or not at all: what stood there stays where a disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

_MOST: Final = 100
"""Characters of a name that the file beside it repeats; names have a limit."""
_IN_PLACE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})
"""No file may be made beside it, or take its place: it is mounted alone, or only it may be written."""


def write_whole(path: Path, text: str) -> None:
    """Put a text in the place of a file; a pipe or a device gets it as it is. Raises ``OSError``, naming ``path``."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        try:
            _replace(path.resolve(), text)
        except OSError as error:
            if error.errno not in _IN_PLACE or not path.is_file():
                raise
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _replace(target: Path, text: str) -> None:
    fresh = target.with_name(f".{target.name[:_MOST]}-{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        if target.exists():
            fresh.chmod(target.stat().st_mode & 0o777)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)

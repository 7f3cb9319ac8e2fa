"""Files that a command writes as a whole, or not at all: what stood there stays where a disk is full."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

_MOST: Final = 50
"""Characters of a name that the file beside it repeats; names have a limit in bytes."""
_IN_PLACE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})
"""No file may be made beside it, or take its place: it is mounted alone, or only it may be written."""


def write_whole(path: Path, text: str, *, check: Callable[[Path], object] | None = None, new_mode: int = 0o666) -> None:
    """Replace a file's text at once; pipes and devices are written directly. Raises ``OSError``, naming ``path``.

    Args:
        path: the file; a link stays, and what it leads to is replaced.
        text: the new contents.
        check: reads the new file, whose name has the same ending; what it raises leaves the old one in place.
        new_mode: the permissions of a file that was not there, less the umask.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        try:
            _replace(path.resolve(), text, check, new_mode)
        except OSError as error:
            if check is not None or error.errno not in _IN_PLACE or not path.is_file():
                raise
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _replace(target: Path, text: str, check: Callable[[Path], object] | None, new_mode: int) -> None:
    fresh = target.with_name(f".{target.stem[:_MOST]}-{os.getpid()}{target.suffix}")
    fresh.unlink(missing_ok=True)  # a kill may have left one, and in a container each process has the same number
    known = target.stat().st_mode & 0o777 if target.exists() else None
    try:
        # It never has more permissions than the file that it replaces.
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, new_mode if known is None else 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if known is not None:
            fresh.chmod(known)
        if check is not None:
            check(fresh)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)

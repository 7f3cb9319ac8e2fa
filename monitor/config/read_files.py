"""The files that a configuration was read from, to notice when one of them changes."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

Stamp: TypeAlias = tuple[int, int, int, int]

GONE: Final[Stamp] = (0, 0, 0, 0)
MAX_BYTES: Final = 4 * 2**20


def stamp(path: Path) -> Stamp:
    """What changes with a file: device, inode, time of the last change in ns, and size; ``GONE`` without one."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return GONE
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def read_text(path: Path) -> str:
    """A file's text, of at most ``MAX_BYTES``, because a path may name an endless device.

    Raises ``OSError`` where it cannot be read or is larger, ``UnicodeDecodeError`` where it is not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES >> 20} MiB", str(path))
    return data.decode("utf-8-sig")


@dataclass(slots=True)
class ReadFiles:
    """Files by path, and patterns with the files that they matched."""

    stamps: dict[Path, Stamp] = field(default_factory=dict)
    patterns: dict[tuple[Path, str], tuple[Path, ...]] = field(default_factory=dict)

    def read(self, path: Path) -> str:
        """The text of a file; see ``read_text``."""
        self.stamps[path] = stamp(path)  # before it is read: what is written meanwhile counts as a change
        return read_text(path)

    def match(self, folder: Path, pattern: str) -> tuple[Path, ...]:
        """Files by a pattern, in order of their names; hidden ones (a mounted ConfigMap has some) are left out."""
        found = self.patterns[folder, pattern] = _matching(folder, pattern)
        return found

    def stamped_anew(self) -> ReadFiles:
        """The same files as they are now."""
        return ReadFiles(
            {path: stamp(path) for path in self.stamps}, {each: _matching(*each) for each in self.patterns}
        )

    @property
    def changed(self) -> bool:
        """Whether a file has changed, come or gone since it was read."""
        return any(stamp(path) != before for path, before in self.stamps.items()) or any(
            _matching(*given) != before for given, before in self.patterns.items()
        )


def _matching(folder: Path, pattern: str) -> tuple[Path, ...]:
    path = Path(pattern)
    if not path.name:  # "/" and "./", which name no file
        return ()
    try:
        matched = (
            Path(path.anchor).glob(str(path.relative_to(path.anchor))) if path.is_absolute() else folder.glob(pattern)
        )
        return tuple(sorted(each for each in matched if each.is_file() and not each.name.startswith(".")))
    except (ValueError, NotImplementedError, OSError):
        return ()

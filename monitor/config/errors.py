"""The errors of a configuration: all of them at once, each with its place and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sidejudge.scoring.errors import SidejudgeError

from .read_files import ReadFiles

UNREADABLE = "cannot be read"
"""How the message on a file begins that could not be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake. ``path`` is its YAML path (``sampling.rules[0].rate``), or empty for the file as a whole.

    ``source`` is the file or the environment variable that sets it, ``line`` the 1-based line in that file,
    ``nearest`` the valid key that was probably meant, ``valid`` what would be accepted when nothing is near.
    ``elsewhere`` is a key of another section that may have been meant as well.
    """

    path: str
    message: str
    source: str | None = None
    line: int | None = None
    nearest: str | None = None
    elsewhere: str | None = None
    valid: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = self._place
        text = f"{place}: {self.message}" if place else self.message
        if self.nearest is not None:
            other = f", or {self.elsewhere}" if self.elsewhere is not None else ""
            return f"{text}; did you mean {self.nearest}{other}?"
        if self.valid:
            return f"{text}; valid here: {', '.join(self.valid)}"
        return text

    @property
    def unreadable(self) -> bool:
        """Whether a file could not be read at all."""
        return self.message.startswith(UNREADABLE)

    @property
    def _place(self) -> str:
        where = self.source if self.source != self.path else None
        if self.line is not None:
            where = f"{self.source or 'file'}, line {self.line}"
        if not self.path:
            return where or ""
        return f"{self.path} ({where})" if where is not None else self.path


class ConfigError(SidejudgeError):
    """The configuration cannot be used; ``problems`` holds every mistake that was found, in file order.

    ``files`` are the files that were read, to notice a change of one.
    """

    def __init__(self, problems: Iterable[Problem], files: ReadFiles | None = None) -> None:
        self.files = files
        ordered = sorted(problems, key=lambda p: (p.line is None, p.line or 0, p.path))
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(ordered))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def nearest(word: str, valid: Sequence[str]) -> str | None:
    """The valid name closest to ``word`` by difflib's ratio, at least 0.6; else the only one with a word of it.

    >>> nearest("baseurl", ["model", "api_base"]), nearest("base_url", ["model", "api_base"])
    (None, 'api_base')
    """
    if (found := nearest_by_letters(word, valid, alike=0.6)) is not None:
        return found
    words = set(word.lower().split("_"))
    sharing = [name for name in valid if words & set(name.lower().split("_"))]
    return sharing[0] if len(sharing) == 1 else None


def nearest_by_letters(word: str, valid: Sequence[str], *, alike: float) -> str | None:
    """The valid name closest to ``word`` by difflib's ratio, at least ``alike`` (0 to 1), whatever the case."""
    lowered = {name.lower(): name for name in valid}
    found = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=alike)
    return lowered[found[0]] if found else None


def path_of(location: Sequence[str | int]) -> str:
    """``("sampling", "rules", 0, "rate")`` as ``sampling.rules[0].rate``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path

"""Memory: cached results for what comes again and again, bounded in number and in length.

Of texts, of which a bound on their number would not suffice, because their writer chooses their length; of single
characters, for ``str.translate``; and of names, because spans from one line of an application always have the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")


class TextMemory(Generic[Found]):
    """A cached function of one text; the cache is emptied when its texts exceed ``longest`` characters together."""

    def __init__(self, answer: Callable[[str], Found], longest: int) -> None:
        self._answer, self._longest = answer, longest
        self._known: dict[str, Found] = {}
        self._length = 0

    def __call__(self, text: str) -> Found:
        try:
            return self._known[text]
        except KeyError:
            found = self._answer(text)
        if len(text) <= self._longest:
            if self._length + len(text) > self._longest:
                self._known.clear()
                self._length = 0
            # Threads that add at once may count a text twice, or not: until it begins anew.
            self._length += len(text)
            self._known[text] = found
        return found


Known = TypeVar("Known", int, str)

MOST: Final = 8192
"""Most cached code points: more than the texts of one language use."""


class CodePoints(dict[int, Known], Generic[Known]):
    """Code point → result of ``answer`` for it. It is emptied when it grows too large."""

    def __init__(self, answer: Callable[[int], Known]) -> None:
        super().__init__()
        self._answer: Callable[[int], Known] = answer

    def __missing__(self, code: int) -> Known:
        if len(self) >= MOST:
            self.clear()
        self[code] = found = self._answer(code)
        return found


_MOST_SETS, _MOST_NAMES, _LONGEST = 512, 256, 8192
"""Limits: sets of names that are remembered, names in one set, and characters of all its names."""


def by_names(answer: Callable[[tuple[str, ...]], Found]) -> Callable[[tuple[str, ...]], Found]:
    """The cached form of a function of names in their order."""
    return Remembered(answer).__getitem__


class Remembered(dict[tuple[str, ...], Found]):
    """The remembered answers; when there are too many it starts anew."""

    def __init__(self, answer: Callable[[tuple[str, ...]], Found]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, names: tuple[str, ...]) -> Found:
        found = self._answer(names)
        if len(names) <= _MOST_NAMES and sum(map(len, names)) <= _LONGEST:
            if len(self) >= _MOST_SETS:
                self.clear()
            self[names] = found
        return found

"""Memory: cached results for what comes again and again, bounded in number and in length.

Of texts and of names, whose number and length their writer chooses, spans from one line of an application always having
the same names; and of single characters, for ``str.translate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", str, tuple[str, ...])
Found = TypeVar("Found")


class Remembered(dict[Key, Found], Generic[Key, Found]):
    """What ``answer`` gave for each key, in two generations of the size ``most``, together twice that.

    When the younger is full it takes the place of the older, so that keys in use stay: emptied instead, a memory that
    is a little too small for its keys answers next to none of them.
    """

    def __init__(self, answer: Callable[[Key], Found], size: Callable[[Key], int], most: int, longest: int) -> None:
        super().__init__()
        self._answer: Callable[[Key], Found] = answer
        self._size: Callable[[Key], int] = size
        self._most, self._longest = most, longest
        self.clear()

    def clear(self) -> None:
        super().clear()
        self._held = 0
        self._older: dict[Key, Found] = {}

    def __missing__(self, key: Key) -> Found:
        older = self._older
        found = older[key] if key in older else self._answer(key)
        if (size := self._size(key)) <= self._longest:
            if self._held + size > self._most:
                older = dict(self)
                self.clear()
                self._older = older
            # Threads that add at once may count a key twice, or not: until it begins anew.
            self._held += size
            self[key] = found
        return found


def by_text(answer: Callable[[str], Found], longest: int) -> Callable[[str], Found]:
    """The remembering form of a function of one text; it holds twice ``longest`` characters at most."""
    return Remembered(answer, len, longest, longest).__getitem__


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


_LONGEST, _NAME, _SETS = 8192, 32, 1024
"""Characters of all names of a set that is remembered, at most; of a name, at least; and sets in a generation."""


def remembered_by_names(answer: Callable[[tuple[str, ...]], Found]) -> Remembered[tuple[str, ...], Found]:
    """What a function gives for names in their order, each set counted as a thousand characters or its own.

    A name counts at least ``_NAME``: however short, it takes some 80 bytes.
    """
    return Remembered(answer, lambda names: max(sum(map(len, names)), _NAME * len(names), 1024), _SETS * 1024, _LONGEST)


def by_names(answer: Callable[[tuple[str, ...]], Found]) -> Callable[[tuple[str, ...]], Found]:
    """The remembering form of a function of names in their order."""
    return remembered_by_names(answer).__getitem__

"""Text memory: cached results for repeated texts, bounded by the texts' length.

A bound on the number of texts would not suffice, because their writer chooses their length.

Code points: results for single characters, for ``str.translate``, in a memory that does not grow.
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

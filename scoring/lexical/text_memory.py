"""Text memory: what was worked out of texts that come again, bounded by their length.

A number of texts is no bound: who writes them chooses how long they are.

Code points: what is known of single characters, for ``str.translate``, in a memory that does not grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")


class TextMemory(Generic[Found]):
    """A function of one text that remembers answers, of ``longest`` characters together; beyond that it begins anew."""

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
"""Code points that are remembered: more than the texts of one language use."""


class CodePoints(dict[int, Known], Generic[Known]):
    """Code point → what ``answer`` says of it. When there are too many, it begins anew."""

    def __init__(self, answer: Callable[[int], Known]) -> None:
        super().__init__()
        self._answer: Callable[[int], Known] = answer

    def __missing__(self, code: int) -> Known:
        if len(self) >= MOST:
            self.clear()
        self[code] = found = self._answer(code)
        return found

"""Code points: what is known of single characters, for ``str.translate``, in a memory that does not grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

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

"""What depends on names alone is worked out once: spans that one line of an application makes have the same for ever.

Names come from clients. What is remembered is bounded in number and in size; what is beyond is worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_MOST, _MOST_NAMES, _LONGEST = 512, 256, 8192
"""Sets of names that are remembered, and of one of them the names and their characters altogether."""

Answer = TypeVar("Answer")


class ByNames(Generic[Answer]):
    """A function of names, in their order, that remembers what it answered; with too much in mind it starts anew."""

    __slots__ = ("_answer", "_known")

    def __init__(self, answer: Callable[[tuple[str, ...]], Answer]) -> None:
        self._answer = answer
        self._known: dict[tuple[str, ...], Answer] = {}

    def __call__(self, names: tuple[str, ...]) -> Answer:
        """The answer for these names."""
        found = self._known.get(names)
        if found is None:
            found = self._answer(names)
            if len(names) <= _MOST_NAMES and sum(map(len, names)) <= _LONGEST:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[names] = found
        return found

"""Results that depend on names alone are cached: spans from one line of an application always have the same names.

Names come from clients. The cache is bounded in number and in size; beyond it results are computed each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_MOST, _MOST_NAMES, _LONGEST = 512, 256, 8192
"""Limits: sets of names that are remembered, names in one set, and characters of all its names."""

Answer = TypeVar("Answer")


def by_names(answer: Callable[[tuple[str, ...]], Answer]) -> Callable[[tuple[str, ...]], Answer]:
    """The cached form of a function of names in their order."""
    return Remembered(answer).__getitem__


class Remembered(dict[tuple[str, ...], Answer]):
    """The remembered answers; when there are too many it starts anew."""

    def __init__(self, answer: Callable[[tuple[str, ...]], Answer]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, names: tuple[str, ...]) -> Answer:
        found = self._answer(names)
        if len(names) <= _MOST_NAMES and sum(map(len, names)) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[names] = found
        return found

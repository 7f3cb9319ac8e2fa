"""What depends on the keys of attributes alone is worked out once: the spans of one call site have the same ones for ever.

Keys come from clients. What is remembered is bounded in number and in size; anything beyond it is worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

_MOST, _MOST_KEYS, _LONGEST = 512, 256, 8192
"""Sets of keys that are remembered, and of one of them the keys and their characters altogether."""

Answer = TypeVar("Answer")


class ByKeys(Generic[Answer]):
    """A function of the keys, in their order, that remembers what it answered; with too much in mind it starts anew."""

    __slots__ = ("_answer", "_known")

    def __init__(self, answer: Callable[[tuple[str, ...]], Answer]) -> None:
        self._answer = answer
        self._known: dict[tuple[str, ...], Answer] = {}

    def __call__(self, attributes: Mapping[str, object]) -> Answer:
        """The answer for the keys of these attributes."""
        keys = tuple(attributes.keys())
        found = self._known.get(keys)
        if found is None:
            found = self._answer(keys)
            if len(keys) <= _MOST_KEYS and sum(map(len, keys)) <= _LONGEST:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[keys] = found
        return found

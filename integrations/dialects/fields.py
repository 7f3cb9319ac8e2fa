"""Which attributes hold which fields: declared once by a dialect, and read from a span only as far as it has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from .by_names import by_names
from .reading import SpanReading

Keys: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """How a field is read, and the keys that may hold it, the most trusted first; of usage, those of each count."""

    read: Callable[..., Any]
    keys: tuple[Keys, ...]


def text(*keys: str) -> Source:
    """A text with something in it."""
    return Source(SpanReading.text, (keys,))


def value(*keys: str) -> Source:
    """Whatever stands there."""
    return Source(SpanReading.value, (keys,))


def real(*keys: str) -> Source:
    """A finite number."""
    return Source(SpanReading.real, (keys,))


def tokens(prompt: Keys, completion: Keys, cached: Keys, reasoning: Keys) -> Source:
    """Counts of tokens; as in ``Usage``, the prompt's include those that were cached."""
    return Source(SpanReading.tokens, (prompt, completion, cached, reasoning))


class Fields:
    """Fields, in the order in which they are read and noted, and the attributes that hold each."""

    __slots__ = ("_fields", "_nothing", "_there")

    def __init__(self, **fields: Source) -> None:
        self._fields = fields
        self._nothing: dict[str, Any] = dict.fromkeys(fields)
        self._there = by_names(self._among)

    def read(self, reading: SpanReading) -> dict[str, Any]:
        """All of the fields, None where no attribute holds one."""
        found = self._nothing.copy()
        for field, read, keys in self._there(reading.names):
            found[field] = read(reading, field, *keys)
        return found

    def _among(self, names: Keys) -> tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...]:
        """The fields that attributes of these names may hold, with those of their keys that are there."""
        found = []
        for field, source in self._fields.items():
            keys = tuple(tuple(key for key in group if key in names) for group in source.keys)
            if any(keys):
                found.append((field, source.read, keys if len(keys) > 1 else keys[0]))
        return tuple(found)

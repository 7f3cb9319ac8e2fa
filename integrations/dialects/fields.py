"""Which attributes hold which fields: declared once by a dialect, and read from a span only as far as it has them.

Lists and maps may be flattened into attributes: ``prefix.0.role``, ``prefix.0.tool_calls.1.name``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from typing import Final, TypeAlias, TypeVar, cast

from sidejudge.integrations.raw import AttributeValue
from sidejudge.scoring.lexical.memory import by_names
from sidejudge.scoring.trace.span import Json

from . import unwrap
from .reading import SpanReading
from .span_fields import SpanFields

T = TypeVar("T")
Keys: TypeAlias = tuple[str, ...]

_DEEPEST: Final = 12
"""Most steps of a path."""
_REMEMBERED: Final = 128
"""The longest path, in characters, whose steps are kept: a few paths come again and again, but clients choose them."""


@dataclass(frozen=True, slots=True)
class Source:
    """How a field is read, and the keys that may hold it, the most trusted first; usage has keys for each count."""

    read: Callable[..., object]
    keys: tuple[Keys, ...]


def text(*keys: str) -> Source:
    """A text with something in it."""
    return Source(SpanReading.text, (keys,))


def value(*keys: str, read: Callable[[AttributeValue], object] | None = None) -> Source:
    """The value there, or the result of ``read`` on it."""
    if read is None:
        return Source(SpanReading.value, (keys,))
    further = read

    def made(reading: SpanReading, field: str, *there: str) -> object:
        held = reading.value(field, *there)
        return None if held is None else further(held)

    return Source(made, (keys,))


def real(*keys: str) -> Source:
    """A finite number."""
    return Source(SpanReading.real, (keys,))


def tokens(prompt: Keys, completion: Keys, cached: Keys, reasoning: Keys) -> Source:
    """Counts of tokens; as in ``Usage``, the prompt's include cached ones."""
    return Source(SpanReading.tokens, (prompt, completion, cached, reasoning))


class Fields:
    """Fields in reading order, each with the attributes that may hold it."""

    __slots__ = ("_fields", "_nothing", "_there")

    def __init__(self, **fields: Source) -> None:
        self._fields = fields
        self._nothing: dict[str, object] = dict.fromkeys(fields)
        self._there = by_names(self._among)

    def read(self, reading: SpanReading) -> SpanFields:
        """All of the fields, None where no attribute holds one."""
        found = self._nothing.copy()
        for field, read, keys in self._there(reading.names):
            found[field] = read(reading, field, *keys)
        return cast("SpanFields", found)  # each source reads what its field holds; no type states that

    def _among(self, names: Keys) -> tuple[tuple[str, Callable[..., object], tuple[str | Keys, ...]], ...]:
        """The fields that attributes of these names may hold, each with the keys that are present."""
        found = []
        for field, source in self._fields.items():
            keys = tuple(tuple(key for key in group if key in names) for group in source.keys)
            if any(keys):
                found.append((field, source.read, keys if len(keys) > 1 else keys[0]))
        return tuple(found)


def tree(reading: SpanReading, prefix: str) -> dict[str, Json]:
    """The keys under one of the few known prefixes, as nested maps; list indices remain keys."""
    tree: dict[str, Json] = {}
    for key in _under(prefix)(reading.names):
        path = key[len(prefix) :]
        above, last = _steps(path) if len(path) <= _REMEMBERED else _split(path)
        if (node := map_at(tree, above)) is not None:
            node[last] = unwrap.plain(reading.attributes[key])
    return tree


def map_at(root: dict[str, T], path: Iterable[str]) -> dict[str, T] | None:
    """The map at a path of keys, made where nothing stands; None where a value stands in the way."""
    for step in path:
        held: object = root.get(step)
        if not isinstance(held, dict):
            if step in root:
                return None
            held = {}
            root[step] = cast("T", held)
        root = held
    return root


@cache
def _under(prefix: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Which of the keys lie under the prefix."""
    return by_names(lambda keys: tuple(key for key in keys if key.startswith(prefix)))


def _split(path: str) -> tuple[tuple[str, ...], str]:
    """The steps of a path down to its last, and that."""
    *above, last = path.split(".")[:_DEEPEST]
    return tuple(above), last


_steps = lru_cache(maxsize=2048)(_split)


def numbered_maps(node: Json) -> list[dict[str, Json]]:
    """The entries of a map whose keys are numbers, in order of the numbers."""
    if not isinstance(node, dict):
        return []
    numbered = [(int(key), item) for key, item in node.items() if key.isdecimal() and len(key) < 10]
    return [item for _, item in sorted(numbered, key=itemgetter(0)) if isinstance(item, dict)]

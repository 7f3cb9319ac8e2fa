"""Lists and maps that were flattened into attributes: ``prefix.0.role``, ``prefix.0.tool_calls.1.name``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from sidejudge.scoring.trace.span import Json

from . import unwrap
from .by_names import by_names
from .reading import SpanReading

_DEEPEST: Final = 12
"""Steps of a path that are followed."""
_REMEMBERED: Final = 128
"""Characters of a path up to which its steps are kept: the same few paths come for ever, but clients choose them."""


def tree(reading: SpanReading, prefix: str) -> dict[str, Json]:
    """The keys under a prefix, which is one of a few, as nested maps, numbers still as keys."""
    tree: dict[str, Json] = {}
    for key in _under(prefix)(reading.names):
        path = key[len(prefix) :]
        above, last = _steps(path) if len(path) <= _REMEMBERED else _split(path)
        node = tree
        for step in above:
            below = node.setdefault(step, {})
            if not isinstance(below, dict):
                break
            node = below
        else:
            node[last] = unwrap.plain(reading.attributes[key])
    return tree


@cache
def _under(prefix: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Which of the keys lie under the prefix."""
    return by_names(lambda keys: tuple(key for key in keys if key.startswith(prefix)))


def _split(path: str) -> tuple[tuple[str, ...], str]:
    """The steps of a path down to its last, and that."""
    *above, last = path.split(".")[:_DEEPEST]
    return tuple(above), last


_steps = lru_cache(maxsize=2048)(_split)


def listed(node: Json) -> list[dict[str, Json]]:
    """The entries of a map whose keys are numbers, in order of the numbers."""
    if not isinstance(node, dict):
        return []
    numbered = [(int(key), item) for key, item in node.items() if key.isdecimal() and len(key) < 10]
    return [item for _, item in sorted(numbered, key=lambda pair: pair[0]) if isinstance(item, dict)]

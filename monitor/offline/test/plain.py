"""Plain: whether a value is one that JSON can hold, and hold as deeply as everybody can read again."""

from __future__ import annotations

import math

MAX_DEPTH = 100
"""Levels of lists and objects."""
MAX_VALUES = 1_000_000


def not_plain(value: object) -> str | None:
    """Why a value is not JSON, as the end of a sentence about it; ``None`` when it is. Tuples are taken for lists."""
    waiting = [(value, 0)]
    seen = 0
    while waiting:
        found, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return f"is nested more than {MAX_DEPTH} levels deep" if depth > MAX_DEPTH else "holds too many values"
        if isinstance(found, dict) and all(isinstance(key, str) for key in found):
            waiting.extend((each, depth + 1) for each in found.values())
        elif isinstance(found, list | tuple):
            waiting.extend((each, depth + 1) for each in found)
        elif isinstance(found, float) and not math.isfinite(found):
            return f"holds the number {found}, which JSON does not have"
        elif found is not None and not isinstance(found, str | bool | int | float):
            return f"holds a {type(found).__name__}, which JSON does not have"
    return None

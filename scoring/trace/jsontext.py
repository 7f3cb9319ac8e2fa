"""JSON text, decoded, and its kind: for contents that reach the core as text because they were sent as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from .span import Json

MAX_DEPTH = 60
"""Most levels of lists and objects; a deeper text stays text, so that decoded values can be written again."""


def decoded(value: Json) -> Json:
    """A text that is a JSON object, list or quoted text, decoded; everything else as it came.

    NaN and infinities are not JSON, integers beyond 64 bits are not read alike by all, and an escape for half a
    surrogate pair is not a character: a text with any of these stays text.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] not in {"{", "[", '"'}:
        return value
    try:
        found: Json = _DECODER.decode(text)
        if "\\ud" in text.lower():  # of a pair, of half a one, or behind a backslash
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return value
    return found if text.count("[") + text.count("{") <= MAX_DEPTH or _shallow(found, MAX_DEPTH) else value


def _whole(digits: str) -> int:
    """Readers of JSON agree on whole numbers of up to 64 bits only."""
    found = int(digits)
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError("a whole number of more than 64 bits")
    return found


def no_constant(constant: str) -> Json:
    """Refuse ``NaN`` and the infinities, which Python takes for JSON: the ``parse_constant`` of a strict reader."""
    raise ValueError(f"{constant} is not a JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=no_constant, parse_int=_whole)


def _shallow(value: Json, levels: int) -> bool:
    if isinstance(value, dict):
        return levels > 0 and all(_shallow(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_shallow(item, levels - 1) for item in value)
    return True


def mapping(value: object) -> Mapping[str, Json]:
    """A JSON object as it is; for everything else an empty one."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[Mapping[str, Json]]:
    """The objects in a JSON list; none for everything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def kind(value: object) -> str:
    """The JSON kind of a value; ``not JSON`` for NaN, infinities and everything else.

    >>> kind(True), kind(2.0), kind(float("nan"))
    ('boolean', 'number', 'not JSON')
    """
    found = _KINDS.get(type(value))
    return found if found is not None else _kind(value)


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null", bool: "boolean", int: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
"""Kinds decided by the type alone: a look-up takes a quarter of the time of the comparisons below."""


def _kind(value: object) -> str:
    if isinstance(value, float):
        return "number" if math.isfinite(value) else "not JSON"
    return next((name for of, name in _KINDS.items() if isinstance(value, of)), "not JSON")

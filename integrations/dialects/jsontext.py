"""Text from untrusted clients read as JSON, or as what Python prints; bounded, so that it can be written again."""

from __future__ import annotations

import json

import orjson

from scoring.span import Json

from . import pyrepr

MAX_DEPTH = 60
"""Levels kept of a decoded value."""

_HUGE = 1 << 63
"""From here on the fast reader rounds whole numbers."""


def loads(text: str, *, scalars: bool = False) -> Json:
    """A text's JSON (or printed Python) value, or None where it is neither."""
    stripped = text.strip()
    first = stripped[:1]
    if first not in {"{", "[", '"'} and not (scalars and stripped):
        return None
    try:
        found: Json = orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return _loads_untidy(stripped)
    if _brackets(stripped) > MAX_DEPTH:
        found = _bounded(found, MAX_DEPTH)
    return _loads_untidy(stripped) if _huge(found) else found


def _loads_untidy(text: str) -> Json:
    """What orjson refuses or rounds: NaN, huge numbers, lone surrogates (an emoji cut in half), Python's quotes."""
    try:
        loaded = json.loads(text, parse_constant=str, parse_int=pyrepr.whole, parse_float=pyrepr.real)
        whole = json.dumps(loaded, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        found: Json = json.loads(whole.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        try:
            return pyrepr.read(text) if text[0] in "{[" else None
        except (pyrepr.UnreadableError, RecursionError):
            return None
    return _bounded(found, MAX_DEPTH)


def _huge(value: Json) -> bool:
    """Whether it holds a number that may have been rounded."""
    if isinstance(value, int | float):
        return not -_HUGE < value < _HUGE
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:  # noqa: SIM110  # a generator would cost more than what it does
        if not isinstance(item, str) and _huge(item):
            return True
    return False


def _brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _bounded(value: Json, depth: int) -> Json:
    if isinstance(value, list):
        return [_bounded(item, depth - 1) for item in value] if depth else None
    if isinstance(value, dict):
        return {key: _bounded(item, depth - 1) for key, item in value.items()} if depth else None
    return value

"""Text from untrusted clients read as JSON, or as what Python prints; bounded, so that it can be written again."""

from __future__ import annotations

import json
import re

import orjson

from scoring.span import Json

from . import pyrepr

MAX_DEPTH = 60
"""Levels kept of a decoded value."""

_HUGE = re.compile(r"[0-9](?:[eE]\+?[0-9]{3}|[0-9]{18})")
"""Numbers that may be beyond 64 bits, which the fast reader would round, some of them to infinity.

It begins with one class of characters, for which texts are searched ten times as fast as for a choice of two.
"""


def loads(text: str, *, scalars: bool = False) -> Json:
    """A text's JSON (or printed Python) value, or None where it is neither."""
    stripped = text.strip()
    first = stripped[:1]
    if first not in {"{", "[", '"'} and not (scalars and stripped):
        return None
    if _HUGE.search(stripped):
        return _loads_untidy(stripped)
    try:
        found: Json = orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return _loads_untidy(stripped)
    return _bounded(found, MAX_DEPTH) if _brackets(stripped) > MAX_DEPTH else found


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


def _brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _bounded(value: Json, depth: int) -> Json:
    if isinstance(value, list):
        return [_bounded(item, depth - 1) for item in value] if depth else None
    if isinstance(value, dict):
        return {key: _bounded(item, depth - 1) for key, item in value.items()} if depth else None
    return value

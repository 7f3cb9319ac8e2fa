"""Reads untrusted text as JSON or as Python's printed values, with bounds on depth, so that it can be written again."""

from __future__ import annotations

import json
import re
from functools import lru_cache

import orjson

from sidejudge.scoring.trace.span import Json

from . import pyrepr

MAX_DEPTH = 60
"""Levels kept of a decoded value."""

_FOLDED = bytes.maketrans(b"123456789{", b"000000000[")
_LONG = "0" * 19
"""The form of whole numbers possibly beyond 64 bits, with all digits mapped to one: faster to find than by a pattern.

Bytes are folded, and texts searched: each is many times as fast as the other way round.
"""
_HUGE = re.compile(r"(?<![0-9])[0-9]{19,}+(?:[\s.,eE\]}]|\Z)")
"""Such numbers themselves, which the fast reader would round; those that it could not hold at all it refuses.

Digits at the end of an identifier, as in ``"run-1867"``, are none.
"""
_NO_JSON = re.compile(r"[\[{\s]*+[^\s\[\]{}\"\-0-9tfnNI]")
"""What opens lists and maps, and then a character that opens nothing in JSON: a text as Python prints it, or prose."""
_PRINTED = ("{'", "[{'", "['")
"""How most texts begin that Python printed, and none in JSON."""
_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})
_REMEMBERED = range(100, 65_536)
"""Lengths of texts whose decoded value is kept for a while: shorter ones are quick to read, longer ones take memory."""


def loads(text: str, *, scalars: bool = False) -> Json:
    """A text's JSON (or printed Python) value, or None where it is neither; shared, so copy it before a change."""
    stripped = text.strip()
    first = stripped[:1]
    if first not in {"{", "[", '"'} and (not scalars or not first or (first.isalpha() and stripped not in _WORDS)):
        return None
    return _loads_once(stripped) if len(stripped) in _REMEMBERED else _loads(stripped)


def _loads(text: str) -> Json:
    nested = False
    if text[0] != '"':  # a quoted text holds no numbers, and nothing is nested in it
        if text.startswith(_PRINTED):
            return _printed(text)
        if len(text) >= len(_LONG):
            folded = text.encode("utf-8", "surrogatepass").translate(_FOLDED).decode("latin-1")
            if _LONG in folded and _HUGE.search(text):
                return _loads_untidy(text)
            nested = len(text) > 2 * MAX_DEPTH and folded.count("[") > MAX_DEPTH
    try:
        found: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _loads_untidy(text)
    return _bounded(found, MAX_DEPTH) if nested else found


_loads_once = lru_cache(maxsize=8)(_loads)
"""One attribute is read several times in a row: as the request, as messages, as the state of a graph."""


def _loads_untidy(text: str) -> Json:
    """Reads what orjson refuses or rounds: NaN, huge numbers, lone surrogates (half an emoji), Python's quotes."""
    if _NO_JSON.match(text):
        return _printed(text)
    try:
        loaded = json.loads(text, parse_constant=str, parse_int=pyrepr.whole, parse_float=pyrepr.real)
        whole = json.dumps(loaded, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        found: Json = json.loads(whole.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        return _printed(text)
    return _bounded(found, MAX_DEPTH)


def _printed(text: str) -> Json:
    return pyrepr.printed(text) if text[0] in "{[" else None


def _bounded(value: Json, levels: int) -> Json:
    """The value itself, without what lies deeper: it was made here, and a copy would take its memory once more."""
    if isinstance(value, dict | list):
        for key, held in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(held, dict | list):
                value[key] = _bounded(held, levels - 1) if levels > 1 else None  # type: ignore[index]  # of a list its places, of a map its keys
    return value

"""Python reprs → plain data: texts from frameworks that print objects instead of serialising them.

A tolerant reader, not an evaluator: literals, containers, ``Name(key=value)`` calls (as a map with the class under
``CLASS``) and ``<Enum.NAME: 'value'>`` (as the value). Nothing is executed; depth and length are bounded.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import Json

CLASS = "__class__"
"""Key under which a printed object's class name stands."""

MAX_LENGTH = 2_000_000
MAX_DEPTH = 40

_SPACE = re.compile(r"\s*+")
_STRING = re.compile(r"""[bBrRuUfF]{0,2}(?:'([^'\\]*+(?:\\.[^'\\]*+)*+)'|"([^"\\]*+(?:\\.[^"\\]*+)*+)")""", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?")
_NAME = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+")
_PLAIN = r"(?:'([^'\\]*+)'|(None|True|False)|(-?[0-9]{1,18}))(?:,[ ]|(?=[})]))"
"""Nearly all values that hold no others, each with what parts it from the next."""
_ENTRY = re.compile(rf"\s*+'([^'\\]*+)':\s*+(?:{_PLAIN})?")
_ARGUMENT = re.compile(rf"\s*+({_NAME.pattern})=(?:{_PLAIN})?")
"""Nearly all entries of a map, and the named arguments of a call, with their value where that is a plain one."""
_TEXT, _WORD = 2, 3
"""Which group of these holds the value; the next one holds digits."""
_ENUM = re.compile(r"<[\w.]++:\s*+([^<>]*+)>")
_OPAQUE = re.compile(r"<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>")
"""``<object at 0x…>``, and ``<function outer.<locals>.inner at 0x…>``."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\n|.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_WORDS: dict[str, Json] = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_REMEMBERED = range(100, 16_384)
"""Lengths of texts whose value is kept for a while, as of texts in JSON."""
_STRING_STARTS = frozenset("'\"bBrRuUfF")
_LOOKS = re.compile(r"\s*+(?:[\[({]|[^\W\d][\w.]*+\()")


class UnreadableError(SidejudgeError, ValueError):
    """The text is not the repr of plain data."""


def read(text: str) -> Json:
    """The value that was printed. Raises ``UnreadableError`` for anything else, including a text cut short."""
    if len(text) > MAX_LENGTH or not _LOOKS.match(text):
        raise UnreadableError("does not look like a printed Python value")
    value, end = _value(text, 0, MAX_DEPTH)
    if _skip(text, end) != len(text):
        raise UnreadableError(f"text goes on at {end}")
    return value


def printed(text: str) -> Json:
    """The value that was printed, None for anything else; shared, so copy it before a change."""
    return _printed_once(text) if len(text) in _REMEMBERED else _printed(text)


def _printed(text: str) -> Json:
    try:
        return read(text)
    except (UnreadableError, RecursionError):
        return None


_printed_once = lru_cache(maxsize=16)(_printed)
"""The printed messages of one history are read several times in a row."""


def _skip(text: str, at: int) -> int:
    if not text[at : at + 1].isspace():
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Json, int]:
    if depth <= 0:
        raise UnreadableError("nested too deep")
    at = _skip(text, at)
    first = text[at : at + 1]
    if first in _STRING_STARTS and (string := _STRING.match(text, at)):
        return _unescape(string[1] if string[1] is not None else string[2]), string.end()
    if first == "{":
        return _map(text, at + 1, depth)
    if first in {"[", "("}:
        return _items(text, at + 1, _CLOSING[first], depth)
    if first == "<":
        return _angle(text, at, depth)
    if number := _NUMBER.match(text, at):
        return _number(number[0]), number.end()
    if name := _NAME.match(text, at):
        if text[name.end() : name.end() + 1] == "(":
            return _call(text, name.end() + 1, name[0], depth)
        if name[0] in _WORDS:
            return _WORDS[name[0]], name.end()
    raise UnreadableError(f"no value at {at}")


def _number(text: str) -> Json:
    try:
        return whole(text) if text.lstrip("+-").isdigit() else real(text)
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def whole(digits: str) -> int | str:
    """A whole number of up to 64 bits; a longer one as its digits, because JSON readers differ on those."""
    found = int(digits) if len(digits) < 40 else None
    return found if found is not None and -(1 << 63) <= found < 1 << 63 else digits


def real(digits: str) -> float | str:
    """A number, or its digits where it is beyond what a double can hold."""
    found = float(digits)
    return found if math.isfinite(found) else digits


def _angle(text: str, at: int, depth: int) -> tuple[Json, int]:
    """``<Role.USER: 'user'>`` is its value; ``<object at 0x…>`` is nothing that we could show."""
    if enum := _ENUM.match(text, at):
        try:
            return _value(enum[1], 0, depth - 1)[0], enum.end()
        except UnreadableError:
            return None, enum.end()
    if opaque := _OPAQUE.match(text, at):
        return None, opaque.end()
    raise UnreadableError(f"no value at {at}")


def _items(text: str, at: int, closing: str, depth: int) -> tuple[Json, int]:
    items: list[Json] = []
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == closing:
            return items, at + 1
        item, at = _value(text, at, depth - 1)
        items.append(item)
        at = _separator(text, at, closing)


def _map(text: str, at: int, depth: int) -> tuple[Json, int]:
    """A map, or a set as a list."""
    found: dict[str, Json] = {}
    members: list[Json] = []
    while True:
        if depth > 1 and (entry := _ENTRY.match(text, at)):
            at = _named(text, entry, found, "}", depth)
            continue
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return (members if members and not found else found), at + 1
        member, at = _value(text, at, depth - 1)
        at = _skip(text, at)
        if text[at : at + 1] == ":":
            found[str(member)], at = _value(text, at + 1, depth - 1)
        else:
            members.append(member)
        at = _separator(text, at, "}")


def _call(text: str, at: int, name: str, depth: int) -> tuple[Json, int]:
    found: dict[str, Json] = {CLASS: name.rpartition(".")[2]}
    position = 0
    while True:
        if depth > 1 and (argument := _ARGUMENT.match(text, at)):
            at = _named(text, argument, found, ")", depth)
            continue
        at = _skip(text, at)
        if text[at : at + 1] == ")":
            return found, at + 1
        found[str(position)], at = _value(text, at, depth - 1)
        position += 1
        at = _separator(text, at, ")")


def _named(text: str, entry: re.Match[str], found: dict[str, Json], closing: str, depth: int) -> int:
    """Put what an entry or an argument names into ``found``; returns where the next one begins."""
    group, at = entry.lastindex, entry.end()
    if group == 1:
        found[entry[1]], at = _value(text, at, depth - 1)
        return _separator(text, at, closing)
    held = entry[group or 0]
    found[entry[1]] = held if group == _TEXT else _WORDS[held] if group == _WORD else int(held)
    return at


def _separator(text: str, at: int, closing: str) -> int:
    if text.startswith(", ", at):
        return at + 2
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return at + 1
    if text[at : at + 1] == closing:
        return at
    raise UnreadableError(f"neither comma nor {closing} at {at}")


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_escaped, text) if "\\" in text else text


def _escaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits is None:
        return _ESCAPED.get(match[4], match[4])
    code = int(digits, 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else "�"

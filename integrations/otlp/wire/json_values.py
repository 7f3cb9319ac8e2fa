"""Read values of OTLP/JSON as plain data: ids in hex, integers as texts or numbers, unknown fields ignored.

A value that is written loosely is tolerated. One that cannot mean anything raises an exception of
``decode_json.UNREADABLE``, and its span or log record is rejected.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterator
from typing import Final

from sidejudge.integrations.raw import AttributeValue
from sidejudge.scoring.trace.span import Json

from .decode import NO_SPAN, NO_TRACE
from .values import MAX_DEPTH, number

_UINT64 = 1 << 64
_DIGITS = 32
"""Characters of an integer that is written as text; longer ones stay texts."""


def attributes(pairs: Json, depth: int = 0) -> dict[str, AttributeValue]:
    """Read a list of key-values as a dict; of two equal keys the last wins."""
    return {text(pair.get("key")): any_value(pair.get("value"), depth) for pair in objects(pairs)}


def any_value(value: Json, depth: int = 0) -> AttributeValue:
    """Read an AnyValue: an object with one known key; an empty one, or one with unknown keys, is None.

    A key with null is as good as absent (protobuf's rules for JSON), for clients write all of them.
    """
    if not isinstance(value, dict):
        return value if isinstance(value, str | bool | int) else None
    for key, read in _SCALARS.items():
        if (found := value.get(key)) is not None:
            return read(found)
    if depth >= MAX_DEPTH:
        return None
    if (array := value.get("arrayValue")) is not None:
        return [any_value(item, depth + 1) for item in _list(mapping(array).get("values"))]
    if (kvlist := value.get("kvlistValue")) is not None:
        return dict(attributes(mapping(kvlist).get("values"), depth + 1))
    return None


def identifier(value: Json, size: int) -> str | None:
    """Read an id in hex of the right length, in lower case; None for anything else, and for all zeros."""
    if not isinstance(value, str) or len(value) != 2 * size:
        return None
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        return None
    return None if len(raw) != size or raw in {NO_TRACE, NO_SPAN} else raw.hex()


def integer(value: Json) -> int:
    """Read a time: 64 bits, text or number; 0, as in protobuf, when it is absent or none. Raises for a truth value."""
    _no_truth(value)
    found = _int64(value)
    return found if isinstance(found, int) and 0 <= found < _UINT64 else 0


def _int64(value: Json) -> int | str | None:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, int) or value is None:
        return value
    digits = text(value)
    try:
        return int(digits) if len(digits) <= _DIGITS else digits
    except ValueError:
        return digits


def _no_truth(value: Json) -> None:
    if isinstance(value, bool):
        raise TypeError("a truth value where a number belongs")


def _double(value: Json) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, list | dict):
        return text(value)
    try:
        return number(float(value))
    except (ValueError, OverflowError):
        return text(value)


def _bytes(value: Json) -> AttributeValue:
    try:
        return base64.b64decode(text(value), validate=True)
    except binascii.Error:
        return text(value)  # ASCII, but no base64; what is not even ASCII raises


def enum(value: Json, names: dict[str, int]) -> int:
    """Read an enum by its number or, from untidy clients, its name; 0 when it is neither. Raises for a truth value."""
    _no_truth(value)
    found = names.get(value, value) if isinstance(value, str) else value
    found = _int64(found)
    return found if isinstance(found, int) and 0 <= found < 1 << 31 else 0


def text(value: Json) -> str:
    """Read a text, whatever type it was sent as; "" when it is absent."""
    if isinstance(value, str):
        return value if value.isascii() else scrub(value)
    return "" if value is None else str(value)


_SCALARS: Final[dict[str, Callable[[Json], AttributeValue]]] = {
    "stringValue": text,
    "boolValue": lambda value: str(value).lower() == "true",
    "intValue": _int64,
    "doubleValue": _double,
    "bytesValue": _bytes,
}


def mapping(value: Json) -> dict[str, Json]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """Return the objects in the value if it is a list; anything else in it is ignored."""
    return (item for item in _list(value) if isinstance(item, dict))


def scrub(text: str) -> str:
    """Replace halves of surrogate pairs, which UTF-8 cannot hold, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

"""Values of OTLP/JSON → plain data: hex ids, integers as texts or numbers, unknown fields ignored."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from typing import Any

from integrations.raw import AttributeValue

from .decode import NO_SPAN, NO_TRACE
from .values import MAX_DEPTH, number

_UINT64 = 1 << 64


def attributes(pairs: Any, depth: int = 0) -> dict[str, AttributeValue]:
    """A list of key-values as a dict; of two equal keys the last wins."""
    return {text(pair.get("key")): any_value(pair.get("value"), depth) for pair in objects(pairs)}


def any_value(value: Any, depth: int = 0) -> AttributeValue:
    """An AnyValue: an object with one known key; an empty one, or one with keys we do not know, is None."""
    if not isinstance(value, dict):
        return value if isinstance(value, str | bool | int) else None
    if "stringValue" in value:
        return text(value["stringValue"])
    if "boolValue" in value:
        return str(value["boolValue"]).lower() == "true"
    if "intValue" in value:
        return _int64(value["intValue"])
    if "doubleValue" in value:
        return _double(value["doubleValue"])
    if "bytesValue" in value:
        return _bytes(value["bytesValue"])
    if depth >= MAX_DEPTH:
        return None
    if "arrayValue" in value:
        return [any_value(item, depth + 1) for item in _list(mapping(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return dict(attributes(mapping(value["kvlistValue"]).get("values"), depth + 1))
    return None


def identifier(value: Any, size: int) -> str | None:
    """Hex of the right length in lower case, or None; all zeros are no id."""
    if not isinstance(value, str) or len(value) != 2 * size:
        return None
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        return None
    return None if len(raw) != size or raw in {NO_TRACE, NO_SPAN} else raw.hex()


def integer(value: Any) -> int:
    """A time: 64 bits, text or number; 0, as in protobuf, when it is absent or none."""
    found = _int64(value)
    return found if isinstance(found, int) and 0 <= found < _UINT64 else 0


def _int64(value: Any) -> int | str | None:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, int) or value is None:
        return value
    try:
        return int(str(value)[:32])
    except ValueError:
        return text(value)


def _double(value: Any) -> float | str | None:
    if value is None:
        return None
    try:
        return number(float(value))
    except (ValueError, TypeError, OverflowError):
        return text(value)


def _bytes(value: Any) -> AttributeValue:
    try:
        return base64.b64decode(text(value), validate=True)
    except binascii.Error:
        return text(value)


def enum(value: Any, names: dict[str, int]) -> int:
    """An enum by its number or, from untidy clients, its name; 0 when it is neither."""
    found = names.get(value, value) if isinstance(value, str) else value
    found = _int64(found)
    return found if isinstance(found, int) and 0 <= found < 1 << 31 else 0


def text(value: Any) -> str:
    """A text, whatever it was sent as; "" when it is absent."""
    if isinstance(value, str):
        return value if value.isascii() else scrub(value)
    return "" if value is None else str(value)


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in the value if it is a list; what else it holds is ignored."""
    return (item for item in _list(value) if isinstance(item, dict))


def scrub(text: str) -> str:
    """Halves of surrogate pairs, which UTF-8 cannot hold, become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

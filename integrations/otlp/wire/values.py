"""Convert ``AnyValue`` to plain data of any depth; all of it is valid in JSON, except bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import DecodeError

from sidejudge.integrations.raw import AttributeValue

from .schema import classes

MAX_DEPTH = 48
"""Levels of lists and maps inside one value; deeper ones become None."""


def text(raw: bytes) -> str:
    """Decode UTF-8; invalid bytes become the replacement character."""
    return raw.decode("utf-8", "replace")


def number(value: float) -> float | str:
    """Return a finite number; for others their names in OTLP/JSON, because JSON has no number for them."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def attributes(pairs: Iterable[Any], depth: int = 0) -> dict[str, AttributeValue]:
    """Convert key-values of the view ``whole`` to a dict; of two equal keys the last wins."""
    return {pair.key.decode("utf-8", "replace"): any_value(pair.value, depth) for pair in pairs}


def any_value(value: Any, depth: int = 0) -> AttributeValue:
    """Convert a value of the view ``whole``; None when it is empty or deeper than ``MAX_DEPTH``."""
    if string := value.string_value:  # most values are texts, and are found without a look at the kind
        decoded: str = string.decode("utf-8", "replace")
        return decoded
    kind = value.WhichOneof("value")
    read = _READ.get(kind)
    if read is not None:
        return read(value)
    if kind is None or depth >= MAX_DEPTH:
        return None
    if kind == "array_value":
        return [any_value(item, depth + 1) for item in value.array_value.values]
    return attributes(value.kvlist_value.values, depth + 1)


_READ: dict[str | None, Callable[[Any], AttributeValue]] = {
    "string_value": lambda _: "",
    "bool_value": lambda v: v.bool_value,
    "int_value": lambda v: v.int_value,
    "double_value": lambda v: number(v.double_value),
    "bytes_value": lambda v: v.bytes_value,
}


def opaque_attributes(pairs: Iterable[Any], depth: int = 0) -> dict[str, AttributeValue]:
    """Convert key-values of the view ``opaque``; a value that is damaged or nested too deep becomes None."""
    return {text(pair.key): opaque_value(pair.value, depth) for pair in pairs}


def opaque_value(raw: bytes, depth: int = 0) -> AttributeValue:
    """Convert a value from its bytes; None when it is damaged or deeper than ``MAX_DEPTH``."""
    opaque = classes("opaque")
    value: Any = opaque["AnyValue"]()
    try:
        value.ParseFromString(raw)
        kind = value.WhichOneof("value")
        if kind == "string_value":
            return text(value.string_value)
        if kind not in {"array_value", "kvlist_value"}:
            read = _READ.get(kind)
            return read(value) if read else None
        if depth >= MAX_DEPTH:
            return None
        inner: Any = opaque["ArrayValue" if kind == "array_value" else "KeyValueList"]()
        inner.ParseFromString(getattr(value, kind))
    except DecodeError:
        return None
    if kind == "array_value":
        return [opaque_value(item, depth + 1) for item in inner.values]
    return opaque_attributes(inner.values, depth + 1)

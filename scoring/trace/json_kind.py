"""JSON kind: which of JSON's six kinds a decoded value has."""

from __future__ import annotations

import math


def kind(value: object) -> str:
    """The JSON kind of a value; ``not JSON`` for NaN, infinities and everything else.

    >>> kind(True), kind(2.0), kind(float("nan"))
    ('boolean', 'number', 'not JSON')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "number"
        case float():
            return "number" if math.isfinite(value) else "not JSON"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "not JSON"

"""Contents of rows: JSON text where it was not text, read and written back without ever raising."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sidejudge.scoring.trace.span import Json


def read(value: Json) -> Json:
    """JSON objects and lists as they are; any other text is one, for an answer ``30`` is a text. Empty is absent."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            found: Json = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found
    return None if value == "" else value


def text(value: object) -> str:
    """The value as it is sent: text, or JSON; "" for what is too deep to write."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Those that are there, as text."""
    return {key: text(value) for key, value in values.items() if value is not None}

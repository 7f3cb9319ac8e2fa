"""Values of OTLP as a Langfuse reads them (`convertValueToPlainJavascript`), and the JSON text it makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sidejudge.integrations.raw import AttributeValue


def plained(attributes: Mapping[str, AttributeValue]) -> dict[str, Any]:
    return {key: plain(value) for key, value in attributes.items()}


def plain(value: AttributeValue) -> Any:
    """A value of OTLP as the server reads it: what is no scalar or list stays as OTLP writes it, as JSON text."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return text(_as_otlp(value)) if value is None or isinstance(value, dict | bytes) else value


def _as_otlp(value: AttributeValue) -> Any:
    if isinstance(value, dict):
        entries: Iterable[Any] = ({"key": key, "value": _as_otlp(each)} for key, each in value.items())
        return {"kvlistValue": {"values": list(entries)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_as_otlp(each) for each in value]}}
    for kind, name in ((bool, "boolValue"), (str, "stringValue"), (float, "doubleValue")):
        if isinstance(value, kind):
            return {name: value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {} if value is None else {"bytesValue": value.hex()}


def read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

"""The schema of ``config`` in a chart's values: the monitor's own, smaller, and with references to the environment.

A mistake in the configuration then fails at ``helm install``, not in a Pod. What the environment may bring is not
required. Where a number or a word of a list is wanted, a text with ``${NAME}`` in it will do.
"""

from __future__ import annotations

from typing import Any

from sidejudge.monitor.config.summary import json_schema

_LEFT_OUT = {"title", "description", "default", "required", "examples", "format", "writeOnly", "$schema", "$id"}
_PREFIX = "config."
REFERENCE = {"type": "string", "pattern": r"\$\{"}
NUMERIC = {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"}
"""How `helm --set` gives a number with a decimal point."""


def definitions() -> dict[str, Any]:
    """``$defs`` for a chart's schema; ``config`` is that of the whole configuration."""
    whole = json_schema()
    parts = whole.pop("$defs")
    named = {_PREFIX + name: _reduced(part) for name, part in parts.items()}
    return {"config": {**_reduced(whole), "type": "object"}, **named}


def secrets(schema: dict[str, Any] | None = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every key that holds a secret; ``*`` stands for any name, ``0`` for a place in a list."""
    whole = json_schema()
    found: list[tuple[str, ...]] = []

    def walk(part: Any, path: tuple[str, ...]) -> None:
        if "$ref" in part:
            walk(whole["$defs"][part["$ref"].rpartition("/")[2]], path)
        if part.get("writeOnly"):
            found.append(path)
        for choice in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
            walk(choice, path)
        for name, inner in part.get("properties", {}).items():
            walk(inner, (*path, name))
        if isinstance(part.get("additionalProperties"), dict):
            walk(part["additionalProperties"], (*path, "*"))
        if isinstance(part.get("items"), dict):
            walk(part["items"], (*path, "0"))

    walk(schema or whole, path)
    return sorted(set(found))


def _reduced(part: Any) -> Any:
    """A part of the schema without what only people read, and with references where they may stand."""
    if isinstance(part, list):
        return [_reduced(each) for each in part]
    if not isinstance(part, dict):
        return part
    made: dict[str, Any] = {}
    for key, value in part.items():
        if key in {"properties", "patternProperties", "$defs"}:
            made[key] = {name: _reduced(inner) for name, inner in value.items()}
        elif key == "$ref":
            made[key] = "#/$defs/" + _PREFIX + value.rpartition("/")[2]
        elif key not in _LEFT_OUT:
            made[key] = value if key in {"enum", "const"} else _reduced(value)
    if not _is_strict(made):
        return made
    return {"anyOf": [made, REFERENCE, *([NUMERIC] if _kinds(made) & {"integer", "number"} else [])]}


def _is_strict(part: dict[str, Any]) -> bool:
    """Whether a text with a reference in it would not do as it stands."""
    if "enum" in part or "const" in part:
        return True
    kinds = _kinds(part)
    if kinds & {"integer", "number", "boolean"} and "string" not in kinds:
        return True
    return "string" in kinds and bool(part.keys() & {"pattern", "minLength", "maxLength"})


def _kinds(part: dict[str, Any]) -> set[str]:
    kinds = part.get("type")
    return set(kinds if isinstance(kinds, list) else [kinds] if kinds else [])

"""What a chart's ``values.yaml`` says: its JSON Schema, and the table of its README.

The file is the one source. ``# -- text`` above a key is its description (further comment lines go on with it);
``# @schema {…}`` below that says what the default cannot: other types, the values of an enumeration. A ``type`` or a
``$ref`` there takes the place of what the default shows. A map with keys is closed, an empty one open.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.helm import config_schema

_KEY = re.compile(r"( *)([A-Za-z0-9_-]+):( |$)")
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
DEFINITIONS = {
    "auto": {"enum": ["auto", True, False, "true", "false"]},
    "size": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G)?$"},
    "secrets": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["existingSecret", "keys"],
            "additionalProperties": False,
            "properties": {
                "existingSecret": {"type": "string", "minLength": 1},
                "optional": {"type": "boolean"},
                "keys": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    },
}


@dataclass
class Key:
    """A key with its description and its hint."""

    path: tuple[str, ...]
    description: str = ""
    hint: dict[str, Any] = field(default_factory=dict)


def keys(text: str) -> dict[tuple[str, ...], Key]:
    """Every key that carries a comment, in the order of the file."""
    found: dict[tuple[str, ...], Key] = {}
    above: list[tuple[int, str]] = []
    description: list[str] = []
    hint: dict[str, Any] = {}
    for line in text.splitlines():
        stated = line.strip()
        if stated.startswith("# -- "):
            description, hint = [stated[5:]], {}
        elif stated.startswith("# @schema "):
            hint = json.loads(stated[10:])
        elif stated.startswith("# ") and description:
            description.append(stated[2:])
        elif match := _KEY.match(line):
            depth = len(match[1])
            above = [(at, name) for at, name in above if at < depth] + [(depth, match[2])]
            if description or hint:
                path = tuple(name for _, name in above)
                found[path] = Key(path, " ".join(description), hint)
            description, hint = [], {}
        else:
            description, hint = [], {}
    return found


def schema(text: str, *, admitted: tuple[str, ...] = ()) -> dict[str, Any]:
    """JSON Schema of the values; ``admitted`` are keys of subcharts, open."""
    root = _schema(yaml.safe_load(text), (), keys(text))
    for name in ("global", *admitted):
        root["properties"].setdefault(name, {"type": "object"})
    root["properties"].setdefault("enabled", {"type": "boolean"})
    used = json.dumps(root)
    definitions = {name: what for name, what in DEFINITIONS.items() if f"#/$defs/{name}" in used}
    definitions |= config_schema.definitions()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}


def _schema(value: Any, path: tuple[str, ...], known: dict[tuple[str, ...], Key]) -> dict[str, Any]:
    key = known.get(path, Key(path))
    made: dict[str, Any] = {"description": key.description} if key.description else {}
    if "type" in key.hint or "$ref" in key.hint or value is None:
        assert key.hint, f"{'.'.join(path)}: a default of null needs a # @schema with a type"
        return {**made, **key.hint}
    if "enum" not in key.hint:
        made["type"] = _NAMES[type(value)]
    if isinstance(value, dict) and value:
        made["additionalProperties"] = False
        made["properties"] = {name: _schema(inner, (*path, name), known) for name, inner in value.items()}
    return {**made, **key.hint}


def table(text: str) -> str:
    """The values as a Markdown table: every key that has a description."""
    values = yaml.safe_load(text)
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for path, key in keys(text).items():
        default = values
        for name in path:
            default = default[name]
        shown = (
            json.dumps(default, ensure_ascii=False) if default not in ("", None) else '""' if default == "" else "null"
        )
        choice = " · ".join(f"`{each}`" for each in key.hint.get("enum", ()) if each != "")
        meaning = key.description + (f" One of {choice}." if choice else "")
        lines.append(f"| `{'.'.join(path)}` | `{shown}` | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def with_table(readme: str, text: str) -> str:
    """The README with the table between its marks."""
    begin, end = "<!-- values: generated, do not edit -->", "<!-- end of values -->"
    head, _, rest = readme.partition(begin)
    assert rest, f"the README has no line {begin}"
    return f"{head}{begin}\n\n{table(text)}\n\n{end}{rest.partition(end)[2]}"


def read(chart: Path) -> str:
    return (chart / "values.yaml").read_text(encoding="utf-8")

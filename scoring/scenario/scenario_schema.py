"""JSON Schema of a scenario, for editors. ``parse_scenario`` decides; the schema refuses only wrong shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .scenario import FIELDS, MAX_LIMIT, PLACES, SIGNS

_NAMES: Final = {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}}
_TEXT: Final = {"type": ["string", "null"]}
_LIMIT: Final = {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": MAX_LIMIT}
_COUNT: Final = {"type": "integer", "minimum": 0}
_CALLS: Final = {"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}, {"type": "null"}]}
_OBJECTS: Final = {"type": ["object", "null"], "additionalProperties": {"type": "object"}}


def _groups(least: int, most: int | None) -> dict[str, object]:
    group = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": least}
    return {"type": ["array", "null"], "items": group if most is None else {**group, "maxItems": most}}


_SIDE: Final = {"type": ["boolean", "null"]}
_OF: Final[Mapping[str, Mapping[str, object]]] = {
    **dict.fromkeys(("name", "description", "expected_answer_criteria"), _TEXT),
    **dict.fromkeys(
        (
            "agents_should_include", "agents_should_exclude", "tools_should_include", "tools_should_exclude",
            "agents_may_include", "tools_may_include", "always_expected", "tools_in_order", "result_use",
        ),
        _NAMES,
    ),
    "closed": {
        "anyOf": [
            _SIDE,
            {"type": "object", "properties": {"agents": _SIDE, "tools": _SIDE}, "additionalProperties": False},
        ]
    },
    "any_of": _groups(1, None),
    **dict.fromkeys(("before", "after", "not_after", "not_both"), _groups(2, 2)),
    **dict.fromkeys(("min_calls", "max_calls"), _CALLS),
    **dict.fromkeys(("max_tokens", "max_seconds"), _LIMIT),
    "arguments": _OBJECTS,
    "arguments_schema": {"type": ["object", "null"], "additionalProperties": {"type": ["object", "boolean"]}},
    "values_from": {
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"enum": list(PLACES)}, "minItems": 1},
        },
    },
}  # fmt: skip


def _signs() -> dict[str, object]:
    properties = {name: dict(_OF[name]) for name in SIGNS}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def scenario_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of one scenario."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sidejudge scenario",
        "type": "object",
        "properties": {name: dict(_OF[name]) if name in _OF else _signs() for name in FIELDS},
        "additionalProperties": False,
    }

"""The part of JSON Schema that scenarios may use."""

from __future__ import annotations

import pytest

from scoring.scenario.json_schema import json_equal, parse_schema


def conforms(schema, value):
    problems = []
    parsed = parse_schema(schema, "schema", problems)
    assert problems == []
    return not list(parsed.violations(value))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, -3], [1.0, True, "1", None]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"type": ["string", "null"]}, ["", None], [0]),
        ({"enum": ["a", 2]}, ["a", 2], [2.0, True, "b"]),
        ({"const": True}, [True], [1]),
        ({"minimum": 1, "maximum": 3}, [1, 3, "x"], [0, 3.1]),
        ({"minLength": 2, "maxLength": 3}, ["ab", 7], ["a", "abcd"]),
        ({"pattern": "^O-[0-9]+$"}, ["O-1"], ["O-", "xO-1"]),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
            [{"a": "x", "b": 1}],
            [{}, {"a": 1}],
        ),
        ({"items": {"type": "integer"}}, [[], [1]], [[1, "x"]]),
        ({}, [None, 1, {}], []),
    ],
)
def test_values_conform_or_not(schema, good, bad):
    assert all(conforms(schema, value) for value in good)
    assert not any(conforms(schema, value) for value in bad)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"minLenght": 2}, "schema.minLenght: not supported; did you mean minLength?"),
        ({"oneOf": []}, "schema.oneOf: not supported"),
        ({"type": "int"}, "schema.type: must be one of"),
        ({"minimum": "1"}, "schema.minimum: must be a number"),
        ({"minLength": 1.5}, "schema.minLength: must be a whole number"),
        ({"required": "a"}, "schema.required: must be a list"),
        ({"pattern": "("}, "schema.pattern: "),
        ({"items": [1]}, "schema.items: a JSON Schema must be an object"),
        ({"properties": {"a": {"format": "x"}}}, "schema.properties.a.format: not supported"),
        (True, "schema: a JSON Schema must be an object"),
    ],
)
def test_what_is_not_supported_is_refused_when_read(schema, told):
    problems = []
    parse_schema(schema, "schema", problems)
    assert len(problems) == 1
    assert problems[0].startswith(told)


@pytest.mark.parametrize(
    ("found", "wanted", "equal"),
    [
        (2, 2.0, True),
        (2.0, 2, False),
        (True, 1, False),
        ([1, {"a": None}], [1, {"a": None}], True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_equality_is_strict(found, wanted, equal):
    assert json_equal(found, wanted) is equal

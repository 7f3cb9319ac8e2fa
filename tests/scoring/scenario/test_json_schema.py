"""The part of JSON Schema that scenarios may use."""

from __future__ import annotations

import socket

import pytest

from sidejudge.scoring.scenario.json_schema import json_equal, parse_schema


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
        ({"anyOf": [{"type": "integer"}, {"const": "all"}]}, [1, "all"], [1.0, "none"]),
        ({"additionalProperties": False, "properties": {"a": {}}}, [{"a": 1}], [{"b": 1}]),
        ({"exclusiveMinimum": 0, "multipleOf": 5}, [5, "x"], [0, 7]),
        ({"$ref": "#/$defs/id", "$defs": {"id": {"pattern": "^[a-z]+$"}}}, ["ab"], ["A"]),
        ({"properties": {"to": {"format": "email"}}}, [{"to": "a@b.example"}], [{"to": "a"}]),
        ({"enum": [1, [2]]}, [1, [2]], [1.0, [2.0]]),
    ],
)
def test_values_conform_or_not(schema, good, bad):
    assert all(conforms(schema, value) for value in good)
    assert not any(conforms(schema, value) for value in bad)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"minLenght": 2}, "schema.minLenght: not supported; did you mean minLength?"),
        ({"oneOf": []}, "schema.oneOf: "),
        ({"type": "int"}, "schema.type: "),
        ({"minimum": "1"}, "schema.minimum: "),
        ({"minLength": 1.5}, "schema.minLength: "),
        ({"required": "a"}, "schema.required: "),
        ({"pattern": "("}, "schema.pattern: "),
        ({"items": [1]}, "schema.items: "),
        ({"properties": {"a": {"format": "x"}}}, "schema"),
        ({"unevaluatedProperties": False}, "schema.unevaluatedProperties: not supported"),
        ({"patternProperties": {"(a+)+$": {}}}, "schema.patternProperties: not supported"),
        (True, "schema: a JSON Schema must be an object"),
        ({"$ref": "http://127.0.0.1:9/x"}, "schema.$ref: must be #/$defs/NAME"),
        ({"$ref": "#"}, "schema.$ref: must be #/$defs/NAME"),
        ({"enum": list(range(20_000))}, "schema: needs 20,002 steps"),
    ],
)
def test_what_is_not_supported_is_refused_when_read(schema, problem):
    problems = []
    parse_schema(schema, "schema", problems)
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_a_reference_is_never_fetched():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        problems = []
        remote = f"http://127.0.0.1:{port}/s"
        for schema in ({"$ref": remote}, {"items": {"$ref": remote}}, {"$schema": remote}, {"$id": remote}):
            parse_schema(schema, "schema", problems)
        with pytest.raises(TimeoutError):
            server.accept()
    assert len(problems) >= 4


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "refers to itself"),
        (
            {
                "$ref": "#/$defs/a0",
                "$defs": {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}},
            },
            "steps, at most",
        ),
    ],
)
def test_references_that_multiply_the_work_are_refused(schema, problem):
    problems = []
    parse_schema(schema, "schema", problems)
    assert any(problem in each for each in problems)


def test_a_breach_names_its_place_and_nothing_of_the_value():
    problems = []
    schema = parse_schema(
        {"properties": {"a": {"items": {"maximum": 3}}, "b": {"maxLength": 2}, "c": {"oneOf": [{"const": 1}]}},
         "required": ["d"]}, "schema", problems,
    )  # fmt: skip
    found = list(schema.violations({"a": [1, 7], "b": "secret", "c": "secret"}))
    assert sorted(found) == [
        "value.a[1] is above 3",
        "value.b has 6 characters",
        "value.c breaks oneOf",
        "value.d is missing",
    ]


def test_a_value_that_nests_too_deep_is_a_breach():
    deep = []
    for _ in range(5000):
        deep = [deep]
    schema = parse_schema({"items": {"items": {"type": "string"}}}, "schema", [])
    assert list(schema.violations([deep]))


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

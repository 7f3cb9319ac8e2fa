"""Reading a scenario: JSON comes in, a ``Scenario`` goes out, or every fault with its path.

A JSON Schema for editors refuses only wrong shapes; ``parse_scenario`` decides.
"""

from __future__ import annotations

import difflib
import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sidejudge.scoring.lexical.nearest import nearest
from sidejudge.scoring.trace.span import Json

from .expectation import MAX_DEPTH, Conforms, Exactly, Expectation, Matches, size
from .json_schema import parse_schema
from .pattern import PatternError, compile_pattern
from .scenario import (  # fmt: skip
    ALL_CALLS,
    DEFAULT_ALWAYS_EXPECTED,
    FIELDS,
    MAX_CHARACTERS,
    MAX_LIMIT,
    MAX_PATTERNS,
    MAX_VALUES,
    PAIRED,
    PLACES,
    SIGNS,
    Pairs,
    Relations,
    Scenario,
    ScenarioError,
    Side,
)

_OPERATORS = ("equals", "matches", "schema")


def parse_scenario(name: str, data: Json) -> Scenario:
    """Read a scenario; ``ScenarioError`` lists every problem at once, with its path and the nearest valid key."""
    if not isinstance(data, dict):
        raise ScenarioError(name, ["must be an object with expectations, such as tools_should_include"])
    values, characters = size(data)
    if values > MAX_VALUES or characters > MAX_CHARACTERS:
        raise ScenarioError(name, [_TOO_LARGE])
    problems: list[str] = []
    scenario = _read(name, data, FIELDS, problems)
    if problems:
        raise ScenarioError(name, problems)
    return scenario


def _read(name: str, data: Mapping[str, Json], fields: tuple[str, ...], problems: list[str]) -> Scenario:
    problems += [f"{key[:60]}: unknown key{nearest(key, fields)}" for key in data if key not in fields]
    read = _Reader(data, problems)
    return Scenario(
        name=read.text("name") or name,
        description=read.text("description"),
        agents=read.side("agents"),
        tools=read.side("tools"),
        tools_in_order=read.names("tools_in_order", repeats=True),
        relations=read.relations(),
        min_calls=read.calls("min_calls"),
        max_calls=read.calls("max_calls"),
        max_tokens=read.limit("max_tokens"),
        max_seconds=read.limit("max_seconds"),
        arguments_schema=read.arguments_schema(),
        values_from=read.values_from(),
        arguments=read.arguments(),
        result_use=read.names("result_use"),
        expected_answer_criteria=read.text("expected_answer_criteria"),
        signs=read.signs(name) if "signs" in fields else None,
    )


def parse_inline(data: Json) -> Scenario:
    """``parse_scenario`` for a scenario that came with a case; cached, because cases of one kind bring the same one."""
    try:
        written = marshal.dumps(data, _PLAIN)
    except ValueError:  # nested too deeply, or of values that no JSON has
        return parse_scenario("inline", data)
    return _parsed(written) if len(written) <= _REMEMBERED else parse_scenario("inline", data)


@lru_cache(maxsize=256)
def _parsed(written: bytes) -> Scenario:
    return parse_scenario("inline", marshal.loads(written))  # noqa: S302  # written by this process


_PLAIN: Final = 2
"""The format of ``marshal`` in which equal values have equal bytes, and others have others (1, 1.0 and True differ)."""
_REMEMBERED: Final = 8_192
"""Most bytes of a cached scenario: traces bring them, so that the cache must be bounded."""
_TOO_LARGE: Final = (
    f"the scenario has more than {MAX_VALUES:,} values or {MAX_CHARACTERS:,} characters, or nests deeper than "
    f"{MAX_DEPTH}; split it by task"
)


@dataclass(frozen=True, slots=True)
class _Reader:
    data: Mapping[str, Json]
    problems: list[str]

    def signs(self, name: str) -> Scenario | None:
        value = self.data.get("signs")
        if value is not None and not isinstance(value, dict):
            self.problems.append("signs: must be an object with expectations, such as max_calls")
        if not isinstance(value, dict):
            return None
        problems: list[str] = []
        signs = _read(name, value, SIGNS, problems)
        self.problems.extend(f"signs.{problem}" for problem in problems)
        return signs

    def text(self, key: str) -> str | None:
        value = self.data.get(key)
        if value is not None and not isinstance(value, str):
            self.problems.append(f"{key}: must be text")
        return value if isinstance(value, str) else None

    def names(self, key: str, *, repeats: bool = False) -> tuple[str, ...]:
        value = self.data.get(key)
        if value is None:
            return ()
        listed = value if isinstance(value, list) else []
        found = tuple(one for one in listed if isinstance(one, str) and one)
        if not isinstance(value, list) or len(found) != len(listed):
            self.problems.append(f"{key}: must be a list of names")
        return found if repeats else tuple(dict.fromkeys(found))

    def side(self, side: str) -> Side:
        include, exclude = self.names(f"{side}_should_include"), self.names(f"{side}_should_exclude")
        excluded = set(exclude)
        both = [name for name in include if name in excluded]
        if both:
            self.problems.append(f"{side}_should_exclude: {both[0]!r} also stands in {side}_should_include")
        always = DEFAULT_ALWAYS_EXPECTED
        if self.data.get("always_expected") is not None:
            # Both sides read it; only one reports its faults.
            always = (self if side == "tools" else _Reader(self.data, [])).names("always_expected")
            clash = [name for name in always if name in excluded]
            if clash:
                self.problems.append(f"{side}_should_exclude: {clash[0]!r} also stands in always_expected")
        # An explicit exclusion outweighs the default that nobody wrote.
        always = tuple(name for name in always if name not in excluded)
        may = self.names(f"{side}_may_include")
        closed = self.closed(side, default=bool(include or may))
        return Side(include=include, may=may, exclude=exclude, always=always, closed=closed)

    def closed(self, side: str, *, default: bool) -> bool:
        value = self.data.get("closed")
        if value is None or isinstance(value, bool):
            return default if value is None else value
        if not isinstance(value, dict):
            if side == "agents":
                self.problems.append("closed: must be true, false, or {agents: …, tools: …}")
            return default
        if side == "agents":
            unknown = [key for key in value if key not in ("agents", "tools")]
            self.problems.extend(
                f"closed.{key[:60]}: unknown key{nearest(key, ('agents', 'tools'))}" for key in unknown
            )
        chosen = value.get(side)
        if chosen is not None and not isinstance(chosen, bool):
            self.problems.append(f"closed.{side}: must be true or false")
        return chosen if isinstance(chosen, bool) else default

    def relations(self) -> Relations:
        paired = {key: self.pairs(key) for key in PAIRED}
        return Relations(any_of=tuple(self.groups("any_of", least=1)), **paired)

    def pairs(self, key: str) -> Pairs:
        return tuple((group[0], group[1]) for group in self.groups(key, least=2, most=2))

    def groups(self, key: str, *, least: int, most: int = MAX_VALUES) -> list[tuple[str, ...]]:
        value = self.data.get(key)
        found: list[tuple[str, ...]] = []
        for one in value if isinstance(value, list) else []:
            names = tuple(name for name in one if isinstance(name, str) and name) if isinstance(one, list) else ()
            if isinstance(one, list) and len(names) == len(one) and least <= len(names) <= most:
                found.append(names)
        if value is not None and (not isinstance(value, list) or len(found) != len(value)):
            self.problems.append(f"{key}: must be a list of " + ("pairs of names" if most == 2 else "lists of names"))
        return found

    def limit(self, key: str) -> float | None:
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_LIMIT:
            self.problems.append(f"{key}: must be a number above 0")
            return None
        return int(value) if value == int(value) else value

    def arguments_schema(self) -> dict[str, Conforms]:
        value = self.data.get("arguments_schema")
        if value is not None and not isinstance(value, dict):
            self.problems.append("arguments_schema: must be an object, tool → JSON Schema")
        schemas = value if isinstance(value, dict) else {}
        if len(schemas) > MAX_PATTERNS:
            self.problems.append(f"arguments_schema: {len(schemas)} schemas, at most {MAX_PATTERNS}")
            return {}
        return {
            tool: Conforms(parse_schema(schema, f"arguments_schema.{tool[:60]}", self.problems))
            for tool, schema in schemas.items()
        }

    def values_from(self) -> dict[str, dict[str, tuple[str, ...]]]:
        value = self.data.get("values_from")
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for tool, named in value.items() if isinstance(value, dict) else ():
            for argument, places in named.items() if isinstance(named, dict) else ():
                chosen = tuple(place for place in places if place in PLACES) if isinstance(places, list) else ()
                if not isinstance(places, list) or not chosen or len(chosen) != len(places):
                    self.problems.append(
                        f"values_from.{tool[:60]}.{argument[:60]}: must be a list of {' and '.join(PLACES)}"
                    )
                else:
                    found.setdefault(tool, {})[argument] = chosen
            if not isinstance(named, dict):
                self.problems.append(f"values_from.{tool[:60]}: must be an object, argument → places")
        if value is not None and not isinstance(value, dict):
            self.problems.append("values_from: must be an object, tool → argument → places")
        return found

    def calls(self, key: str) -> dict[str, int]:
        value = self.data.get(key)
        if value is None:
            return {}
        limits: Mapping[str, Json] = value if isinstance(value, dict) else {ALL_CALLS: value}
        found: dict[str, int] = {}
        for tool, limit in limits.items():
            if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
                found[tool] = limit
            else:
                path = f"{key}.{tool[:60]}" if isinstance(value, dict) else key
                self.problems.append(f"{path}: must be a whole number of at least 0")
        return found

    def arguments(self) -> dict[str, dict[str, Expectation]]:
        value = self.data.get("arguments")
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problems.append("arguments: must be an object, tool → argument → expectation")
            return {}
        found: dict[str, dict[str, Expectation]] = {}
        for tool, expected in value.items():
            if isinstance(expected, dict):
                path = f"arguments.{tool[:60]}"
                found[tool] = {name: self.expectation(one, f"{path}.{name[:60]}") for name, one in expected.items()}
            else:
                self.problems.append(f"arguments.{tool[:60]}: must be an object, argument → expectation")
        patterns = sum(not isinstance(one, Exactly) for expected in found.values() for one in expected.values())
        if patterns > MAX_PATTERNS:
            self.problems.append(
                f"arguments: {patterns} patterns and schemas, at most {MAX_PATTERNS}; join those of one argument"
            )
        return found

    def expectation(self, value: Json, path: str) -> Expectation:
        if not isinstance(value, dict) or len(value) != 1:
            return Exactly(value)
        ((operator, operand),) = value.items()
        if operator == "equals":
            return Exactly(operand)
        if operator == "schema":
            return Conforms(parse_schema(operand, f"{path}.schema", self.problems))
        if operator == "matches":
            return self.matches(operand, f"{path}.matches")
        if difflib.get_close_matches(operator, _OPERATORS, 1, 0.75):
            self.problems.append(
                f"{path}.{operator[:60]}: unknown key{nearest(operator, _OPERATORS)}"
                " (write {equals: …} if the object itself is the expected value)"
            )
        return Exactly(value)

    def matches(self, operand: Json, path: str) -> Expectation:
        if not isinstance(operand, str):
            self.problems.append(f"{path}: must be a pattern")
            return Exactly(operand)
        try:
            return Matches(compile_pattern(operand))
        except PatternError as error:
            self.problems.append(f"{path}: {error}")
            return Exactly(operand)


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

"""Scenario: which agents and tools a run should use, and how (seed 003 §1; rubrics §10).

agents_should_include: [research]        # must be called
agents_should_exclude: [clarification]   # must not be called
tools_should_include: [pdf_retrieval]
tools_should_exclude: [web_search]
always_expected: [orchestrator]          # never missing, never unexpected (default)
closed: {agents: true, tools: false}     # or one bool: may only what is named be called?
                                         # default, each side: true if it names something to include
tools_in_order: [pdf_retrieval, write]   # called in this order; others may stand between
max_calls: {pdf_retrieval: 2, "*": 5}    # per tool, and "*" for all calls together (or one number for "*")
arguments:                               # every call of the tool must meet all of them
  pdf_retrieval:
    language: en                         # exactly this value
    query: {matches: "(?i)sql"}          # a pattern (see scoring/scenario/pattern.py), searched in a string
    top_k: {schema: {type: integer, maximum: 20}}
    filter: {equals: {matches: x}}       # an exact value that would read as one of the above
result_use: [pdf_retrieval]              # tools whose result must show in the output
expected_answer_criteria: …              # text for the judge
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from scoring.lexical.nearest import nearest
from scoring.trace.span import Json

from .json_schema import Schema, json_equal, parse_schema
from .pattern import MAX_TEXT, Pattern, PatternError, compile_pattern

DEFAULT_ALWAYS_EXPECTED: tuple[str, ...] = ("orchestrator",)
ALL_CALLS = "*"
FIELDS = (
    "name", "description", "agents_should_include", "agents_should_exclude", "tools_should_include",
    "tools_should_exclude", "always_expected", "closed", "tools_in_order", "max_calls", "arguments", "result_use",
    "expected_answer_criteria",
)  # fmt: skip
_OPERATORS = ("equals", "matches", "schema")


class ScenarioError(ValueError):
    """A scenario that cannot be used; ``problems`` holds all of them, each ``field.path: what is wrong``."""

    def __init__(self, name: str, problems: list[str]) -> None:
        self.name = name
        self.problems = tuple(problems)
        super().__init__(f"scenario {name!r}: " + "; ".join(problems))


@dataclass(frozen=True, slots=True)
class Exactly:
    """The argument must equal this JSON value, types included."""

    value: Json

    def violation(self, found: Json) -> str | None:
        return None if json_equal(found, self.value) else "not the expected value"


@dataclass(frozen=True, slots=True)
class Matches:
    """The argument must be a string, of at most ``MAX_TEXT`` characters, in which the pattern is found."""

    pattern: Pattern

    def violation(self, found: Json) -> str | None:
        if not isinstance(found, str):
            return "not a string"
        if len(found) > MAX_TEXT:
            return f"longer than {MAX_TEXT} characters"
        return None if self.pattern.search(found) else f"does not match {self.pattern.source}"


@dataclass(frozen=True, slots=True)
class Conforms:
    """The argument must conform to a JSON Schema."""

    schema: Schema

    def violation(self, found: Json) -> str | None:
        return "; ".join(islice(self.schema.violations(found), 3)) or None


Expectation: TypeAlias = Exactly | Matches | Conforms


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is expected of the agents, or of the tools. ``closed``: nothing but what is named may be called."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    always: tuple[str, ...] = DEFAULT_ALWAYS_EXPECTED
    closed: bool = False

    @property
    def asks_nothing(self) -> bool:
        """Whether any calls, known or not, would satisfy it."""
        return not (self.include or self.exclude or self.closed)

    def missing(self, called: Collection[str]) -> list[str]:
        """Expected names that were not called."""
        return [name for name in self.include if name not in called and name not in self.always]

    def unexpected(self, called: Iterable[str]) -> list[str]:
        """Called names that are excluded or, on a closed side, not expected."""
        if not self.closed:
            return [name for name in called if name in self.exclude]
        allowed = {*self.include, *self.always}.difference(self.exclude)
        return [name for name in called if name not in allowed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario that was read without problems."""

    name: str
    agents: Side
    tools: Side
    tools_in_order: tuple[str, ...] = ()
    max_calls: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Expectation]] = field(default_factory=dict)
    result_use: tuple[str, ...] = ()
    expected_answer_criteria: str | None = None
    description: str | None = None


def parse_scenario(name: str, data: Json) -> Scenario:
    """Read a scenario; ``ScenarioError`` lists every problem at once, with its path and the nearest valid key."""
    if not isinstance(data, dict):
        raise ScenarioError(name, ["must be an object with expectations, such as tools_should_include"])
    problems = [f"{key[:60]}: unknown key{nearest(key, FIELDS)}" for key in data if key not in FIELDS]
    read = _Reader(data, problems)
    scenario = Scenario(
        name=read.text("name") or name,
        description=read.text("description"),
        agents=read.side("agents"),
        tools=read.side("tools"),
        tools_in_order=read.names("tools_in_order", repeats=True),
        max_calls=read.max_calls(),
        arguments=read.arguments(),
        result_use=read.names("result_use"),
        expected_answer_criteria=read.text("expected_answer_criteria"),
    )
    if problems:
        raise ScenarioError(name, problems)
    return scenario


@dataclass(frozen=True, slots=True)
class _Reader:
    data: Mapping[str, Json]
    problems: list[str]

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
        both = [name for name in include if name in exclude]
        if both:
            self.problems.append(f"{side}_should_exclude: {both[0]!r} also stands in {side}_should_include")
        always = DEFAULT_ALWAYS_EXPECTED
        if self.data.get("always_expected") is not None:
            # Both sides read it; only one reports its faults.
            always = (self if side == "tools" else _Reader(self.data, [])).names("always_expected")
            clash = [name for name in always if name in exclude]
            if clash:
                self.problems.append(f"{side}_should_exclude: {clash[0]!r} also stands in always_expected")
        # An explicit exclusion outweighs the default that nobody wrote.
        always = tuple(name for name in always if name not in exclude)
        return Side(include=include, exclude=exclude, always=always, closed=self.closed(side, default=bool(include)))

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

    def max_calls(self) -> dict[str, int]:
        value = self.data.get("max_calls")
        if value is None:
            return {}
        limits: Mapping[str, Json] = value if isinstance(value, dict) else {ALL_CALLS: value}
        found: dict[str, int] = {}
        for tool, limit in limits.items():
            if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
                found[tool] = limit
            else:
                path = f"max_calls.{tool[:60]}" if isinstance(value, dict) else "max_calls"
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

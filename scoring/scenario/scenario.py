"""Scenario: the agents and tools that a run should use, and how (seed 003 §1; rubrics §10).

agents_should_include: [research]        # must be called
agents_should_exclude: [clarification]   # must not be called
tools_should_include: [pdf_retrieval]
tools_should_exclude: [web_search]
always_expected: [orchestrator]          # never missing, never unexpected (default)
closed: {agents: true, tools: false}     # or one bool: may only what is named be called?
                                         # default, each side: true if it names something to include
tools_may_include: [cite]                # may be called; names the rest of a closed side (agents_may_include likewise)
tools_in_order: [pdf_retrieval, write]   # called in this order; others may stand between
any_of: [[search, browse]]               # of each group at least one is called
before: [[verify, refund]]               # refund only after verify was called
after: [[refund, notify]]                # each refund is followed by notify
not_after: [[refund, search]]            # no search after a refund
not_both: [[approve, reject]]            # not both in one run
min_calls: {verify: 1}
max_calls: {pdf_retrieval: 2, "*": 5}    # per tool, and "*" for all calls together (or one number for "*")
max_tokens: 20000                        # input and output of the whole run
max_seconds: 60
arguments:                               # every call of the tool must meet all of them
  pdf_retrieval:
    language: en                         # exactly this value
    query: {matches: "(?i)sql"}          # a pattern in RE2's syntax (scoring/scenario/pattern.py), searched in a string
    top_k: {schema: {type: integer, maximum: 20}}
    filter: {equals: {matches: x}}       # an exact value that would read as one of the above
arguments_schema:                        # JSON Schema of all arguments of each call together
  refund: {type: object, required: [order_id], additionalProperties: false}
values_from:                             # arguments whose value has to stand in what came before
  refund: {order_id: [input, results]}   # the input of the run, or the result of an earlier call
result_use: [pdf_retrieval]              # tools whose result must show in the output
signs: {max_calls: {write: 3}}           # what most runs keep to, with the keys above; who departs fails nothing
expected_answer_criteria: …              # text for the judge

A scenario may come with a trace. So it is bounded by ``MAX_VALUES`` values, ``MAX_CHARACTERS`` characters and
``MAX_PATTERNS`` patterns, and the work of comparing a case's calls with it by ``MAX_WORK``.
"""

from __future__ import annotations

import difflib
import marshal
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.nearest import nearest
from sidejudge.scoring.result.reason import Reason, part, together
from sidejudge.scoring.trace.span import Json

from .json_schema import Schema, json_equal, parse_schema
from .pattern import MAX_TEXT, Pattern, PatternError, compile_pattern
from .relations import NO_RELATIONS, PAIRED, Pairs, Relations

DEFAULT_ALWAYS_EXPECTED: tuple[str, ...] = ("orchestrator",)
ALL_CALLS = "*"
FIELDS = (
    "name", "description", "agents_should_include", "agents_should_exclude", "tools_should_include",
    "tools_should_exclude", "agents_may_include", "tools_may_include", "always_expected", "closed", "tools_in_order",
    "any_of", "before", "after", "not_after", "not_both", "min_calls", "max_calls", "max_tokens", "max_seconds",
    "arguments", "arguments_schema", "values_from", "result_use", "expected_answer_criteria", "signs",
)  # fmt: skip
SIGNS: Final = tuple(
    name for name in FIELDS if name not in ("name", "description", "result_use", "expected_answer_criteria", "signs")
)
"""Keys of signs, which most runs keep to. A run that departs from one does not fail."""
_OPERATORS = ("equals", "matches", "schema")
MAX_VALUES: Final = 5_000
"""Most values in a scenario: names, numbers, texts, lists and objects."""
MAX_CHARACTERS: Final = 200_000
"""Most characters of all its texts and keys together."""
MAX_PATTERNS: Final = 200
"""Most patterns and schemas in a scenario."""
MAX_WORK: Final = 25_000_000
"""Most steps for checking the arguments of all calls of a case: some 0.15 s at worst. A pattern of 20 characters takes
some 3,000 on a text of 100.
"""
MAX_LIMIT: Final = 10**12
PLACES: Final = ("input", "results")
"""Where the value of an argument may come from: the input of the run, the results of earlier calls."""
_MAX_DEPTH: Final = 100
_STEPS_OF_A_VALUE: Final = 60
"""The time to compare two values, in steps of a pattern."""


class ScenarioError(SidejudgeError, ValueError):
    """The scenario is invalid; ``problems`` lists every fault as ``field.path: what is wrong``."""

    def __init__(self, name: str, problems: list[str]) -> None:
        self.name = name
        self.problems = tuple(problems)
        super().__init__(f"scenario {name!r}: " + "; ".join(problems))


@dataclass(frozen=True, slots=True)
class Exactly:
    """The argument must equal this JSON value, types included."""

    value: Json

    def work(self, found: Json) -> int:  # noqa: ARG002  # as the others; a comparison ends with the shorter side
        return 1

    def violation(self, found: Json) -> Reason | None:
        return None if json_equal(found, self.value) else Reason("not the expected value")


@dataclass(frozen=True, slots=True)
class Matches:
    """The argument must be a string of at most ``MAX_TEXT`` characters that the pattern matches somewhere."""

    pattern: Pattern

    def work(self, found: Json) -> int:
        """The most steps that ``violation`` takes."""
        return self.pattern.steps * 4 * len(found) if isinstance(found, str) and len(found) <= MAX_TEXT else 1

    def violation(self, found: Json) -> Reason | None:
        if not isinstance(found, str):
            return Reason("not a string")
        if len(found) > MAX_TEXT:
            return Reason("longer than {most} characters", most=MAX_TEXT)
        if self.pattern.search(found):
            return None
        return Reason("does not match {pattern}", pattern=part(self.pattern.source))


@dataclass(frozen=True, slots=True)
class Conforms:
    """The argument must conform to a JSON Schema."""

    schema: Schema

    def work(self, found: Json) -> int:
        """The most steps that ``violation`` takes."""
        values, characters = _size(found)
        return self.schema.steps * (_STEPS_OF_A_VALUE * values + 4 * characters)

    def violation(self, found: Json) -> Reason | None:
        return together(islice(self.schema.violations(found), 3)) or None


Expectation: TypeAlias = Exactly | Matches | Conforms


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The expected agents, or tools. ``may`` names those that are allowed and not expected.

    ``closed``: only named ones may be called.
    """

    include: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    always: tuple[str, ...] = DEFAULT_ALWAYS_EXPECTED
    closed: bool = False

    @property
    def asks_nothing(self) -> bool:
        """Whether any calls, known or not, would satisfy it."""
        return not (self.include or self.exclude or self.closed)

    def missing(self, called: Collection[str]) -> list[str]:
        """Expected names that were not called."""
        always = set(self.always)
        return [name for name in self.include if name not in called and name not in always]

    def unexpected(self, called: Iterable[str]) -> list[str]:
        """Called names that are excluded or, on a closed side, not expected."""
        if not self.closed:
            excluded = set(self.exclude)
            return [name for name in called if name in excluded]
        allowed = {*self.include, *self.may, *self.always}.difference(self.exclude)
        return [name for name in called if name not in allowed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A valid scenario."""

    name: str
    agents: Side
    tools: Side
    tools_in_order: tuple[str, ...] = ()
    relations: Relations = NO_RELATIONS
    min_calls: Mapping[str, int] = field(default_factory=dict)
    max_tokens: int | None = None
    max_seconds: float | None = None
    arguments_schema: Mapping[str, Conforms] = field(default_factory=dict)
    values_from: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    max_calls: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Expectation]] = field(default_factory=dict)
    result_use: tuple[str, ...] = ()
    expected_answer_criteria: str | None = None
    description: str | None = None
    signs: Scenario | None = None


def parse_scenario(name: str, data: Json) -> Scenario:
    """Read a scenario; ``ScenarioError`` lists every problem at once, with its path and the nearest valid key."""
    if not isinstance(data, dict):
        raise ScenarioError(name, ["must be an object with expectations, such as tools_should_include"])
    values, characters = _size(data)
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
    f"{_MAX_DEPTH}; split it by task"
)


def _size(value: Json) -> tuple[int, int]:
    """Values in ``value``, itself included, and the characters of its texts and keys; beyond bounds when too deep."""
    values = characters = depth = 0
    level = [value]
    while level:
        depth += 1
        values += len(level)
        characters += sum(len(one) for one in level if isinstance(one, str))
        characters += sum(len(key) for one in level if isinstance(one, dict) for key in one)
        below = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [inner for one in below for inner in one]
        if depth > _MAX_DEPTH:
            return MAX_WORK, MAX_WORK
    return values, characters


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

    def limit(self, key: str) -> int | None:
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_LIMIT:
            self.problems.append(f"{key}: must be a number above 0")
            return None
        return int(value)

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

"""Expectations of an argument of a tool call: an exact value, a pattern, or a JSON Schema; with the work of a check."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from sidejudge.scoring.result.reason import Reason, part, together
from sidejudge.scoring.trace.span import Json

from .json_schema import Schema, json_equal
from .pattern import MAX_TEXT, Pattern

MAX_WORK: Final = 25_000_000
"""Most steps for checking the arguments of all calls of a case: some 0.15 s at worst. A pattern of 20 characters takes
some 3,000 on a text of 100.
"""
MAX_DEPTH: Final = 100
"""Most levels of a scenario."""
_STEPS_OF_A_VALUE: Final = 60
"""The time to compare two values, in steps of a pattern."""


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
        values, characters = size(found)
        return self.schema.steps * (_STEPS_OF_A_VALUE * values + 4 * characters)

    def violation(self, found: Json) -> Reason | None:
        return together(islice(self.schema.violations(found), 3)) or None


Expectation: TypeAlias = Exactly | Matches | Conforms


def size(value: Json) -> tuple[int, int]:
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
        if depth > MAX_DEPTH:
            return MAX_WORK, MAX_WORK
    return values, characters

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
``MAX_PATTERNS`` patterns, and the work of comparing a case's calls with it by ``MAX_WORK`` of ``expectation``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sidejudge.scoring.errors import SidejudgeError

from .expectation import Conforms, Expectation
from .relations import NO_RELATIONS, Relations

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
MAX_VALUES: Final = 5_000
"""Most values in a scenario: names, numbers, texts, lists and objects."""
MAX_CHARACTERS: Final = 200_000
"""Most characters of all its texts and keys together."""
MAX_PATTERNS: Final = 200
"""Most patterns and schemas in a scenario."""
MAX_LIMIT: Final = 10**12
PLACES: Final = ("input", "results")
"""Where the value of an argument may come from: the input of the run, the results of earlier calls."""


class ScenarioError(SidejudgeError, ValueError):
    """The scenario is invalid; ``problems`` lists every fault as ``field.path: what is wrong``."""

    def __init__(self, name: str, problems: list[str]) -> None:
        self.name = name
        self.problems = tuple(problems)
        super().__init__(f"scenario {name!r}: " + "; ".join(problems))


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
    max_tokens: float | None = None
    max_seconds: float | None = None
    arguments_schema: Mapping[str, Conforms] = field(default_factory=dict)
    values_from: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    max_calls: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Expectation]] = field(default_factory=dict)
    result_use: tuple[str, ...] = ()
    expected_answer_criteria: str | None = None
    description: str | None = None
    signs: Scenario | None = None

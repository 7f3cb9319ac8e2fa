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

The relations between calls are templates of DECLARE (Pesic, van der Aalst 2006): precedence, response, not succession,
exclusive choice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, part, together

from .expectation import Conforms, Expectation

Pairs: TypeAlias = tuple[tuple[str, str], ...]
PAIRED: Final = ("before", "after", "not_after", "not_both")
"""Keys of a scenario that hold pairs of tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The relations between calls that a scenario requires.

    ``any_of``: of each group at least one is called. ``before``: in ``(a, b)``, a is called before the first call of b.
    ``after``: after the last a, b is called. ``not_after``: b is not called after a. ``not_both``: not both.
    """

    any_of: tuple[tuple[str, ...], ...] = ()
    before: Pairs = ()
    after: Pairs = ()
    not_after: Pairs = ()
    not_both: Pairs = ()

    def __bool__(self) -> bool:
        return bool(self.any_of or self.before or self.after or self.not_after or self.not_both)

    @property
    def named(self) -> set[str]:
        """Every tool that a relation names."""
        return self.paired.union(*self.any_of)

    @property
    def paired(self) -> set[str]:
        """Every tool of which another call may break a relation."""
        return {name for pair in (*self.before, *self.after, *self.not_after, *self.not_both) for name in pair}

    def broken(self, called: Sequence[str]) -> Iterator[Reason]:
        """The relations that these calls break, in words.

        >>> list(Relations(before=(("verify", "refund"),)).broken(["refund", "verify"]))
        ['refund was called without verify before it']
        """
        return (why for why, _ in self.breaches(called))

    def breaches(self, called: Sequence[str]) -> Iterator[tuple[Reason, tuple[str, ...]]]:
        """The reasons of ``broken``, each with the tools whose next call may mend it, if any."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for index, name in enumerate(called):
            first.setdefault(name, index)
            last[name] = index
        for group in self.any_of:
            if first.keys().isdisjoint(group):
                tools = together((part(label(each)) for each in group), ", ")
                yield Reason("none of {tools} was called", tools=tools), group
        for key in PAIRED:
            for a, b in getattr(self, key):
                if _BREAKS[key](first, last, a, b):
                    lacking = {"before": (a,), "after": (b,)}.get(key, ())
                    yield _BROKEN[key](part(label(a)), part(label(b))), lacking


_Places: TypeAlias = Mapping[str, int]
_BREAKS: Final[Mapping[str, Callable[[_Places, _Places, str, str], bool]]] = {
    "before": lambda first, _, a, b: b in first and not (a in first and first[a] < first[b]),
    "after": lambda _, last, a, b: a in last and last.get(b, -1) <= last[a],
    "not_after": lambda first, last, a, b: a in first and last.get(b, -1) > first[a],
    "not_both": lambda first, _, a, b: a in first and b in first,
}
"""Whether a pair is broken, given where each tool was called first and last."""
_BROKEN: Final[Mapping[str, Callable[[ReasonPart, ReasonPart], Reason]]] = {
    "before": lambda a, b: Reason("{b} was called without {a} before it", a=a, b=b),
    "after": lambda a, b: Reason("{b} did not follow {a}", a=a, b=b),
    "not_after": lambda a, b: Reason("{b} was called after {a}", a=a, b=b),
    "not_both": lambda a, b: Reason("{a} and {b} were both called", a=a, b=b),
}
NO_RELATIONS: Final = Relations()


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
"""Keys of signs: habits of most runs. A run that departs from one does not fail."""
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
    """The expected agents, or tools. ``may`` names ones that are allowed but not expected.

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


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def asks_nothing(self) -> bool:
        """Whether it states only criteria of the answer."""
        bare = Scenario(
            name=self.name, agents=self.agents, tools=self.tools, signs=self.signs,
            expected_answer_criteria=self.expected_answer_criteria, description=self.description,
        )  # fmt: skip
        return self.agents.asks_nothing and self.tools.asks_nothing and self == bare

    @cached_property
    def asks_of_calls(self) -> bool:
        """Whether it states more than criteria of the answer, tokens and time: what agents and tools have to show."""
        return not replace(self, max_tokens=None, max_seconds=None).asks_nothing

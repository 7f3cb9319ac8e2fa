"""Tool efficiency computed: expected tools and a call budget against the actual calls (seed 004).

The seed describes five levels by two criteria, *selection* and *call count*. Either leads to a bad level ("wrong tools
**or** excessive call counts"), so that the value is the worse of the two.

======  ===========================================  ==========================================================
value   selection                                    call count
======  ===========================================  ==========================================================
1.0     every expected tool, no wrong one            within the budget, no call made twice
0.8     –                                            within the budget, a call made again with equal arguments
0.6     –                                            over it by one call, or by up to half of it
0.3     an expected tool not called, or a wrong one  over it by two calls, or by up to as much again
0.0     no expected tool called, or more than half   over it by more
        of all calls to wrong tools
======  ===========================================  ==========================================================

*Wrong* are tools that the scenario excludes, those outside a closed scenario, and those with a budget of 0. Each
``max_calls`` entry is a budget of its own; the worst counts. A call after one that failed is a retry, and a call
without arguments may be a poll: neither is *made twice*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sidejudge.scoring.result.reason import Reason, ReasonPart, own, part, together
from sidejudge.scoring.scenario.scenario import ALL_CALLS, Scenario
from sidejudge.scoring.trace.span import ToolCall
from sidejudge.scoring.trace.tool_spans import canonical

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Efficiency:
    """A level's value in {1.0, 0.8, 0.6, 0.3, 0.0}, and the faults that prevent a better one."""

    value: float
    faults: tuple[Reason, ...] = ()


def states_budget(scenario: Scenario) -> bool:
    """Whether the scenario states the expected tools and a number of calls."""
    return bool(scenario.tools.include and scenario.max_calls)


def efficiency(scenario: Scenario, calls: Sequence[ToolCall]) -> Efficiency:
    """The worse of selection and call count.

    >>> from sidejudge.scoring.scenario.reading import parse_scenario
    >>> scenario = parse_scenario("s", {"tools_should_include": ["search"], "max_calls": {"search": 2}})
    >>> efficiency(scenario, [ToolCall(name="search")] * 3)
    Efficiency(value=0.6, faults=('search: 3 calls, at most 2',))
    """
    selection, count = _selection(scenario, calls), _count(scenario, calls)
    return Efficiency(min(selection.value, count.value), (*selection.faults, *count.faults))


def _selection(scenario: Scenario, calls: Sequence[ToolCall]) -> Efficiency:
    made = Counter(call.name for call in calls)
    missing = scenario.tools.missing(made)
    forbidden = [name for name in made if name != ALL_CALLS and scenario.max_calls.get(name) == 0]
    wrong = list(dict.fromkeys((*scenario.tools.unexpected(made), *forbidden)))
    if not missing and not wrong:
        return Efficiency(1.0)
    found = ((Reason("not called: "), missing), (Reason("wrong: "), wrong))
    faults = [what + together((part(name[:60]) for name in names[:_SHOWN]), ", ") for what, names in found if names]
    none_expected = not any(name in made for name in scenario.tools.include)
    mostly_wrong = 2 * sum(made[name] for name in wrong) > len(calls)
    return Efficiency(0.0 if none_expected or mostly_wrong else 0.3, tuple(faults))


def _count(scenario: Scenario, calls: Sequence[ToolCall]) -> Efficiency:
    made = Counter(call.name for call in calls)
    made[ALL_CALLS] = len(calls)
    over = {tool: limit for tool, limit in scenario.max_calls.items() if limit and made[tool] > limit}
    if over:
        faults = (
            Reason("{tool}: {n} calls, at most {most}", tool=named_tool(tool), n=made[tool], most=limit)
            for tool, limit in over.items()
        )
        return Efficiency(min(_level_over(made[tool], limit) for tool, limit in over.items()), tuple(faults))
    again = _made_twice(calls)
    if again:
        equal = (Reason("{tool}: called again with equal arguments", tool=part(name[:60])) for name in again[:_SHOWN])
        return Efficiency(0.8, tuple(equal))
    return Efficiency(1.0)


def named_tool(tool: str) -> ReasonPart:
    """A key of ``max_calls`` as a part of a reason."""
    return own("all tools") if tool == ALL_CALLS else part(tool[:60])


def _level_over(made: int, limit: int) -> float:
    excess = made - limit
    if excess <= max(1, limit / 2):
        return 0.6
    return 0.3 if excess <= max(2, limit) else 0.0


def _made_twice(calls: Sequence[ToolCall]) -> list[str]:
    """Names of tools that were called again with arguments that they had already answered."""
    answered: set[tuple[str, str]] = set()
    found: dict[str, None] = {}
    for call in calls:
        if call.name in found or call.arguments in (None, "", {}, []):
            continue
        key = call.name, canonical(call.arguments)
        if key in answered:
            found[call.name] = None
        elif call.error is None:
            answered.add(key)
    return list(found)

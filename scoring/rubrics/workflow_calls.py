"""Whether a run's calls keep to a scenario: order, number, arguments, and the use of their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import called_tools
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.result_use import MOST_SEARCHED, unfounded_values, unused_results
from sidejudge.scoring.result.reason import Reason, decided_number, own, part, together
from sidejudge.scoring.result.result import (
    Failed,
    Method,
    NotApplicable,
    Result,
    Scored,
    Unavailable,
)
from sidejudge.scoring.scenario.expectation import MAX_WORK
from sidejudge.scoring.scenario.scenario import ALL_CALLS, Scenario
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, ToolCall

from .workflow_sides import MOST, NAMED, UNNAMED, count_nameless, names_of, shown_names, tools_not_understood

_FAULT = 200
"""Most characters of the fault of one argument."""
_SHOWN = 20
"""Most faults of arguments that are looked for."""
_UNKNOWN_TOOLS = Unavailable(Reason("tools_used is not known"))
_NO_ORDER = NotApplicable(Reason("the scenario asks for no order"))
_NO_BUDGET = NotApplicable(Reason("the scenario sets no call budget"))
_NO_ARGUMENTS = NotApplicable(Reason("the scenario expects no arguments"))
_NO_RESULT_USE = NotApplicable(Reason("the scenario asks for no result to be used"))


def hold_order(case: Case, scenario: Scenario) -> Result:
    """Whether tools were called in their order, and as the relations between them ask."""
    if not scenario.tools_in_order and not scenario.relations:
        return _NO_ORDER
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    called = [call.name for call in calls]
    remaining = iter(called)
    # ``in`` consumes the iterator up to the match: each tool is looked for after the one before it.
    misplaced = next((name for name in scenario.tools_in_order if name not in remaining), None)
    broken = list(scenario.relations.breaches(called))
    if misplaced is not None:
        broken.insert(0, (Reason("{tool} was not called in its place", tool=part(label(misplaced))), (misplaced,)))
    doubts = [tools_not_understood(case, (name for name in lacking if name not in called)) for _, lacking in broken]
    proven = [why for (why, _), doubt in zip(broken, doubts, strict=True) if doubt is None]
    if not broken:
        doubts = [_hidden(case, called, scenario.relations.paired)]
    doubt = None if proven else next((doubt for doubt in doubts if doubt is not None), None)
    return doubt or _ordered(scenario, called, proven)


def _hidden(case: Case, called: Sequence[str], names: Collection[str]) -> Unavailable | None:
    """Why one of these tools may have been called once more, or at all, although no call shows it."""
    if names and count_nameless(case, called, names):
        return UNNAMED
    return tools_not_understood(case, sorted(set(names).difference(called)))


def _ordered(scenario: Scenario, called: Sequence[str], broken: Sequence[Reason]) -> Scored:
    return Scored(
        value=float(not broken),
        reason=together(broken[:NAMED]),
        details={"expected": shown_names(scenario.tools_in_order), "called": shown_names(called)},
    )


def hold_call_budget(case: Case, scenario: Scenario) -> Result:
    """Whether calls, tokens and time keep to their limits. One that is passed decides, whatever else is unknown."""
    limited = scenario.max_tokens is not None or scenario.max_seconds is not None
    if not scenario.max_calls and not scenario.min_calls and not limited:
        return _NO_BUDGET
    over, few = dict[str, int](), dict[str, int]()
    gap, calls = _unknown_spending(case, scenario), called_tools(case, scenario)
    if calls is not None:
        over, few = _too_many(scenario, calls), _too_few(scenario, calls)
    elif scenario.max_calls or scenario.min_calls:
        gap = _UNKNOWN_TOOLS
    faults = [*_excesses(scenario, over), *_overspent(case, scenario)]
    doubt = tools_not_understood(case, few)
    gap = gap or _may_exceed(case, scenario, calls or ())
    if not faults and (unknown := doubt or gap) is not None:
        return unknown
    if doubt is None:
        faults += [
            Reason("{tool}: {n} calls, at least {least}", tool=part(label(tool)), n=n, least=scenario.min_calls[tool])
            for tool, n in few.items()
        ]
    return _counted(over, faults)


def _too_many(scenario: Scenario, calls: Sequence[ToolCall]) -> dict[str, int]:
    made = Counter(call.name for call in calls)
    made[ALL_CALLS] = len(calls)
    return {tool: made[tool] for tool, limit in scenario.max_calls.items() if made[tool] > limit}


def _too_few(scenario: Scenario, calls: Sequence[ToolCall]) -> dict[str, int]:
    made = Counter(call.name for call in calls)
    return {tool: made[tool] for tool, least in scenario.min_calls.items() if made[tool] < least}


def _may_exceed(case: Case, scenario: Scenario, calls: Sequence[ToolCall]) -> Unavailable | None:
    """Why a tool may have been called too often although the calls that show it are few enough."""
    made = Counter(call.name for call in calls)
    limits = {tool: most for tool, most in scenario.max_calls.items() if tool != ALL_CALLS}
    nameless = count_nameless(case, made.elements(), limits)
    if any(made[tool] + nameless > most for tool, most in limits.items()):
        return UNNAMED
    return tools_not_understood(case, [tool for tool, most in limits.items() if not most])


def _excesses(scenario: Scenario, over: Mapping[str, int]) -> list[Reason]:
    return [
        Reason(
            "{tool}: {n} calls, at most {most}",
            tool=own("all tools") if tool == ALL_CALLS else part(label(tool)),
            n=number,
            most=scenario.max_calls[tool],
        )
        for tool, number in islice(over.items(), NAMED)
    ]


def _counted(over: Mapping[str, int], faults: Sequence[Reason]) -> Scored:
    return Scored(
        value=float(not faults),
        reason=together(faults[:NAMED]),
        details={"over": {label(tool): number for tool, number in islice(over.items(), MOST)}},
    )


def _unknown_spending(case: Case, scenario: Scenario) -> Unavailable | None:
    if scenario.max_tokens is not None and (case.input_tokens is None or case.output_tokens is None):
        return Unavailable(Reason("the tokens of the run are not known"))
    if scenario.max_seconds is not None and case.latency_e2e_ms is None:
        return Unavailable(Reason("the duration of the run is not known"))
    return None


def _overspent(case: Case, scenario: Scenario) -> Iterator[Reason]:
    used = (case.input_tokens or 0) + (case.output_tokens or 0)
    if scenario.max_tokens is not None and used > scenario.max_tokens:
        yield Reason("{n} tokens, at most {most}", n=used, most=scenario.max_tokens)
    seconds = (case.latency_e2e_ms or 0.0) / 1000
    if (most := scenario.max_seconds) is not None and seconds > most:
        yield Reason("{n} s, at most {most}", n=decided_number(seconds, lambda each: each <= most, 1), most=most)


def hold_arguments(case: Case, scenario: Scenario) -> Result:
    """Whether every call of a tool has the arguments that are expected of it."""
    if not scenario.arguments and not scenario.arguments_schema and not scenario.values_from:
        return _NO_ARGUMENTS
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    stated = (scenario.arguments, scenario.arguments_schema, scenario.values_from)
    concerned = [call for call in calls if any(named.get(call.name) for named in stated)]
    hidden = _hidden(case, [call.name for call in calls], {*chain(*stated)})
    if not concerned:
        return hidden or NotApplicable(Reason("no tool with expected arguments was called"))
    work = sum(_work(call, scenario) for call in concerned)
    if work > MAX_WORK:
        return Failed(
            Reason(
                "checking the arguments may take {n:,} steps, at most {most:,}; write smaller patterns",
                n=work,
                most=MAX_WORK,
            )
        )
    broken = _first(_breaches(call, scenario) for call in concerned)
    unfounded, all_sought = unfounded_values(case, calls, scenario.values_from)
    broken += unfounded
    if not broken and not all_sought:
        why = "looking for the arguments' values may take {most:,} characters of text and more"
        return Failed(Reason(why, most=MOST_SEARCHED))
    unknown = None if broken else next(filter(None, map(_unknown_arguments, concerned)), hidden)
    return unknown or _argued(broken)


def _unknown_arguments(call: ToolCall) -> Unavailable | None:
    if call.arguments is None:
        return Unavailable(Reason("the arguments of a call are not known"))
    if _given(call) is None:
        why = "the arguments of {tool} are not known by name: they are no JSON object, or were cut"
        return Unavailable(Reason(why, tool=part(label(call.name))))
    return None


def _argued(broken: Sequence[Reason]) -> Scored:
    return Scored(value=float(not broken), reason=together(broken[:3]), details={"violations": broken[:_SHOWN]})


def _first(breaches: Iterable[Iterable[Reason]]) -> list[Reason]:
    return list(islice(chain.from_iterable(breaches), _SHOWN))


def _given(call: ToolCall) -> Mapping[str, Json] | None:
    """A call's arguments by name; some clients record them as the JSON text that the model wrote.

    None for what has no names: a text that was cut, or an only argument that a client sends bare.
    """
    arguments = decoded(call.arguments)
    return arguments if isinstance(arguments, dict) else None


def _work(call: ToolCall, scenario: Scenario) -> int:
    given = _given(call) or {}
    expected = scenario.arguments.get(call.name, {})
    whole = scenario.arguments_schema.get(call.name)
    own = sum(expected[name].work(given[name]) for name in expected.keys() & given.keys())
    return own + (0 if whole is None else whole.work(dict(given)))


def _breaches(call: ToolCall, scenario: Scenario) -> Iterator[Reason]:
    given = _given(call)
    if given is None:
        return
    for name, expected in scenario.arguments.get(call.name, {}).items():
        fault = expected.violation(given[name]) if name in given else Reason("missing")
        if fault is not None:
            where = Reason("{tool}.{argument}: ", tool=part(label(call.name)), argument=part(label(name)))
            yield where + fault.cut(_FAULT)
    whole = scenario.arguments_schema.get(call.name)
    if whole is not None and (fault := whole.violation(dict(given))) is not None:
        yield Reason("{tool}: {fault}", tool=part(label(call.name)), fault=fault.cut(_FAULT))


def hold_result_use(case: Case, scenario: Scenario) -> Result:
    """Whether the output uses a part of each listed tool's results."""
    if not scenario.result_use:
        return _NO_RESULT_USE
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    concerned = [call for call in calls if call.name in scenario.result_use and call.error is None]
    hidden = _hidden(case, [call.name for call in calls], scenario.result_use)
    if not concerned:
        return hidden or NotApplicable(Reason("no such tool was called with success"))
    if any(call.result is None for call in concerned):
        return Unavailable(Reason("the result of a call is not known"))
    if case.model_output is None:
        return Unavailable(Reason("the output is not known"))
    unused, unknown = unused_results(case, concerned)
    if unknown and not unused:
        return Unavailable(Reason("nothing distinctive to look for in what {tools} returned", tools=names_of(unknown)))
    if hidden and not unused:
        return hidden
    return Scored(
        value=float(not unused),
        method=Method.LEXICAL,
        reason=Reason("the output bears out nothing of {tools}", tools=names_of(unused)) if unused else "",
        details={"unused": shown_names(unused)},
    )


def order_in_part(case: Case, scenario: Scenario) -> Scored | None:
    """The relations that the calls of part of a trace break, whatever others there were; None for none."""
    called = [call.name for call in called_tools(case, scenario) or ()]
    broken = [why for why, lacking in scenario.relations.breaches(called) if not lacking]
    return _ordered(scenario, called, broken) if broken else None


def call_budget_in_part(case: Case, scenario: Scenario) -> Scored | None:
    """The tools that were called too often already in part of a trace."""
    over = _too_many(scenario, called_tools(case, scenario) or ())
    over.pop(ALL_CALLS, None)  # which calls hand the work over, the rest of the trace may show
    return _counted(over, _excesses(scenario, over)) if over else None


def arguments_in_part(case: Case, scenario: Scenario) -> Scored | None:
    """The arguments of calls in part of a trace that are not as expected."""
    calls = called_tools(case, scenario) or ()
    if sum(_work(call, scenario) for call in calls) > MAX_WORK:
        return None
    broken = _first(_breaches(call, scenario) for call in calls)
    return _argued(broken) if broken else None

"""workflow: whether the right agents and tools were called, and called rightly (seed 003 §1; rubrics §10)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import called_tools, incomplete, stated_scenario
from sidejudge.scoring.lexical.shown_text import label, labels
from sidejudge.scoring.metrics.metric import Metric, pass_or_fail
from sidejudge.scoring.metrics.result_use import unfounded_values, unused_results
from sidejudge.scoring.metrics.run_ending import LONE_CALL, no_run
from sidejudge.scoring.metrics.run_steps import run_steps, signs
from sidejudge.scoring.result.reason import Reason, own, part, together
from sidejudge.scoring.result.result import Failed, Method, NotApplicable, Result, Scored, Unavailable, at_least
from sidejudge.scoring.scenario.scenario import ALL_CALLS, DEFAULT_ALWAYS_EXPECTED, MAX_WORK, Scenario, Side
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, SpanKind, ToolCall
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

SOURCE = "seed 003 §1"
_MOST = 100
"""Names that one list of the result object shows."""
_NAMED = 10
_FAULT = 200
"""Characters of what is wrong with one argument."""
_NOT_UNDERSTOOD = frozenset({SpanKind.OTHER, SpanKind.CHAIN})
_NO_WORD = re.compile(r"[\W_]+")
_DEFAULT_ALWAYS = frozenset(DEFAULT_ALWAYS_EXPECTED)
_NO_SCENARIO = Unavailable(Reason("no scenario"))
_UNKNOWN_TOOLS = Unavailable(Reason("tools_used is not known"))
_NO_ORDER = NotApplicable(Reason("the scenario asks for no order"))
_NO_BUDGET = NotApplicable(Reason("the scenario sets no call budget"))
_NO_ARGUMENTS = NotApplicable(Reason("the scenario expects no arguments"))
_NO_SIGNS = NotApplicable(Reason("the scenario has no signs"))
_NO_RESULT_USE = NotApplicable(Reason("the scenario asks for no result to be used"))


def read_scenario(case: Case) -> Scenario | Unavailable:
    """The case's scenario; unavailable without one, for a trace that was cut short, and for one call of a tool alone.

    In part of a trace *was not called* cannot be distinguished from *was not seen*.
    """
    if not case.complete:
        return incomplete(case)
    stated = stated_scenario(case)
    if stated is None:
        return _NO_SCENARIO
    return Unavailable(LONE_CALL.reason) if case.once(run_steps).lone_call else stated


def _not_understood(case: Case, names: Iterable[str]) -> Unavailable | None:
    """Why it is not known that these were not called; None where it is.

    No agent, model or tool was recognised at all, or a step that no dialect understood bears one of their names, or a
    model's answer was not understood, which may call.
    """
    names = list(names)
    if case.trace is None or not names:
        return None
    if (nothing := no_run(case)) is not None:
        return Unavailable(Reason("nothing to hold it against: {why}", why=nothing.reason))
    for unread in (unread for span in case.trace.models for unread in span.unread if unread.field != "input"):
        why = "{name} may have been called: what a model answered in {source} was not understood"
        return Unavailable(Reason(why, name=part(label(names[0])), source=part(label(unread.source))))
    steps = [f" {_words(span.name)} " for span in case.trace.spans if span.kind in _NOT_UNDERSTOOD]
    for name in names:
        if (words := _words(name)) and any(f" {words} " in step for step in steps):
            why = "{name} may have been called: a step of this name is neither known as an agent nor as a tool"
            return Unavailable(Reason(why, name=part(label(name))))
    return None


def _words(name: str) -> str:
    return " ".join(_NO_WORD.sub(" ", name).casefold().split())


def validate(side: Side, called: Sequence[str]) -> dict[str, object]:
    """One side's result in the seed's shape. ``called`` may hold names more than once.

    >>> validate(Side(include=("research",), exclude=("web",), closed=True), ["orchestrator", "research"])
    {'pass': True, 'included': ['research'], 'excluded': ['web'], 'missing': [], 'unexpected': []}
    """
    names = dict.fromkeys(called)
    missing, unexpected = side.missing(names), side.unexpected(names)
    return {
        "pass": not missing and not unexpected,
        "included": _shown([name for name in side.include if name in names]),
        "excluded": _shown([name for name in side.exclude if name not in names]),
        "missing": _shown(missing),
        "unexpected": _shown(unexpected),
    }


def _shown(names: Sequence[str]) -> list[str]:
    """Names of a trace may be many and long; a verdict holds the first of them, cut."""
    return labels(names, _MOST) if names else []


_NOTHING_ASKED = Scored(value=1.0, details=validate(Side(), ()))


_NO_WORKFLOW = NotApplicable(Reason("the scenario asks nothing of agents or tools"))


def _asks_nothing(scenario: Scenario) -> bool:
    """Whether the scenario states criteria of the answer alone."""
    if not (scenario.agents.asks_nothing and scenario.tools.asks_nothing):
        return False
    bare = Scenario(
        name=scenario.name,
        agents=scenario.agents,
        tools=scenario.tools,
        expected_answer_criteria=scenario.expected_answer_criteria,
        description=scenario.description,
        signs=scenario.signs,
    )
    return scenario == bare


def _root_agent(case: Case) -> str | None:
    """The agent whose run encloses the runs of all others; None where the trace shows no such agent."""
    named = [span for span in case.trace.spans if span.agent] if case.trace is not None else []
    if not named:
        return None
    first = min(named, key=lambda span: span.start_ns)
    return first.agent if all(span.start_ns <= first.end_ns for span in named) else None


def _with_orchestrator(side: Side, root: str | None) -> Side:
    """The root agent is the orchestrator, whatever it is called, unless the scenario names it."""
    if root is None or root in side.always or root in side.exclude or not _DEFAULT_ALWAYS.issubset(side.always):
        return side
    return replace(side, always=(*side.always, root))


def _validated(case: Case, side: Side, called: Sequence[str] | None, field: str) -> Result:
    if side.asks_nothing:
        return _NOTHING_ASKED
    if called is None:
        return Unavailable(Reason("{field} is not known", field=own(field)))
    found = validate(side, called)
    if found["pass"]:
        return Scored(value=1.0, details=found)
    if not found["unexpected"] and (doubt := _not_understood(case, side.missing(dict.fromkeys(called)))) is not None:
        return doubt
    reported = [
        Reason("{kind}: {names}", kind=own(kind), names=together(map(part, names), ", "))
        for kind in ("missing", "unexpected")
        if (names := _names(found, kind))
    ]
    return Scored(value=0.0, reason=together(reported), details=found)


def _names(found: Mapping[str, object], kind: str) -> list[str]:
    names = found[kind]
    return labels(map(str, names), _NAMED) if isinstance(names, list) else []


def _agents(case: Case, scenario: Scenario) -> Result:
    if _asks_nothing(scenario):
        return _NO_WORKFLOW
    side = _with_orchestrator(scenario.agents, _root_agent(case))
    return _validated(case, side, case.agents_called, "agents_called")


def _tools(case: Case, scenario: Scenario) -> Result:
    if _asks_nothing(scenario):
        return _NO_WORKFLOW
    if scenario.tools.asks_nothing:
        return _NOTHING_ASKED
    calls = called_tools(case, scenario)
    return _validated(case, scenario.tools, None if calls is None else [call.name for call in calls], "tools_used")


def _order(case: Case, scenario: Scenario) -> Result:
    if not scenario.tools_in_order and not scenario.relations:
        return _NO_ORDER
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    called = [call.name for call in calls]
    remaining = iter(called)
    # ``in`` consumes the iterator up to the match: each tool is looked for after the one before it.
    misplaced = next((name for name in scenario.tools_in_order if name not in remaining), None)
    broken = [] if misplaced is None else [Reason("{tool} was not called in its place", tool=part(label(misplaced)))]
    broken += scenario.relations.broken(called)
    absent = [name for name in (*scenario.tools_in_order, *sorted(scenario.relations.named)) if name not in called]
    if broken and (doubt := _not_understood(case, absent)) is not None:
        return doubt
    return Scored(
        value=float(not broken),
        reason=together(broken[:_NAMED]),
        details={"expected": _shown(scenario.tools_in_order), "called": _shown(called)},
    )


def _call_budget(case: Case, scenario: Scenario) -> Result:
    limited = scenario.max_tokens is not None or scenario.max_seconds is not None
    if not scenario.max_calls and not scenario.min_calls and not limited:
        return _NO_BUDGET
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    if (gap := _unknown_spending(case, scenario)) is not None:
        return gap
    made = Counter(call.name for call in calls)
    made[ALL_CALLS] = len(calls)
    over = {tool: made[tool] for tool, limit in scenario.max_calls.items() if made[tool] > limit}
    faults = [
        Reason(
            "{tool}: {n} calls, at most {most}",
            tool=own("all tools") if tool == ALL_CALLS else part(label(tool)),
            n=number,
            most=scenario.max_calls[tool],
        )
        for tool, number in islice(over.items(), _NAMED)
    ]
    few = {tool: least for tool, least in scenario.min_calls.items() if made[tool] < least}
    if not faults and (doubt := _not_understood(case, few)) is not None:
        return doubt
    faults += [
        Reason("{tool}: {n} calls, at least {least}", tool=part(label(tool)), n=made[tool], least=least)
        for tool, least in few.items()
    ]
    faults += _overspent(case, scenario)
    return Scored(
        value=float(not faults),
        reason=together(faults[:_NAMED]),
        details={"over": {label(tool): number for tool, number in islice(over.items(), _MOST)}},
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
    if scenario.max_seconds is not None and seconds > scenario.max_seconds:
        yield Reason("{n:.1f} s, at most {most}", n=seconds, most=scenario.max_seconds)


def _arguments(case: Case, scenario: Scenario) -> Result:
    if not scenario.arguments and not scenario.arguments_schema and not scenario.values_from:
        return _NO_ARGUMENTS
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    stated = (scenario.arguments, scenario.arguments_schema, scenario.values_from)
    concerned = [call for call in calls if any(named.get(call.name) for named in stated)]
    if not concerned:
        return NotApplicable(Reason("no tool with expected arguments was called"))
    work = sum(_work(call, scenario) for call in concerned)
    if work > MAX_WORK:
        return Failed(
            Reason(
                "checking the arguments may take {n:,} steps, at most {most:,}; write smaller patterns",
                n=work,
                most=MAX_WORK,
            )
        )
    broken = [breach for call in concerned for breach in _breaches(call, scenario)]
    broken += unfounded_values(case, calls, scenario.values_from)
    if not broken and any(call.arguments is None for call in concerned):
        return Unavailable(Reason("the arguments of a call are not known"))
    return Scored(value=float(not broken), reason=together(broken[:3]), details={"violations": broken[:20]})


def _given(call: ToolCall) -> Mapping[str, Json]:
    """A call's arguments by name; some clients record them as the JSON text that the model wrote."""
    arguments = decoded(call.arguments)
    return arguments if isinstance(arguments, dict) else {}


def _work(call: ToolCall, scenario: Scenario) -> int:
    given = _given(call)
    expected = scenario.arguments.get(call.name, {})
    whole = scenario.arguments_schema.get(call.name)
    own = sum(one.work(given[name]) for name, one in expected.items() if name in given)
    return own + (0 if whole is None else whole.work(dict(given)))


def _breaches(call: ToolCall, scenario: Scenario) -> list[Reason]:
    if call.arguments is None:
        return []
    given = _given(call)
    found = []
    for name, expected in scenario.arguments.get(call.name, {}).items():
        fault = expected.violation(given[name]) if name in given else Reason("missing")
        if fault is not None:
            where = Reason("{tool}.{argument}: ", tool=part(label(call.name)), argument=part(label(name)))
            found.append(where + fault.cut(_FAULT))
    whole = scenario.arguments_schema.get(call.name)
    if whole is not None and (fault := whole.violation(dict(given))) is not None:
        found.append(Reason("{tool}: {fault}", tool=part(label(call.name)), fault=fault.cut(_FAULT)))
    return found


def _result_use(case: Case, scenario: Scenario) -> Result:
    if not scenario.result_use:
        return _NO_RESULT_USE
    calls = called_tools(case, scenario)
    if calls is None:
        return _UNKNOWN_TOOLS
    concerned = [call for call in calls if call.name in scenario.result_use and call.error is None]
    if not concerned:
        return NotApplicable(Reason("no such tool was called with success"))
    if any(call.result is None for call in concerned):
        return Unavailable(Reason("the result of a call is not known"))
    if case.model_output is None:
        return Unavailable(Reason("the output is not known"))
    unused, untold = unused_results(case, concerned)
    if untold and not unused:
        return Unavailable(Reason("nothing distinctive to look for in what {tools} returned", tools=_listed(untold)))
    return Scored(
        value=float(not unused),
        method=Method.LEXICAL,
        reason=Reason("the output bears out nothing of {tools}", tools=_listed(unused)) if unused else "",
        details={"unused": _shown(unused)},
    )


def _habits(case: Case, scenario: Scenario) -> Result:
    """Whether the run keeps to what most do. What is unknown of some of it hides no departure from the rest."""
    usual = scenario.signs
    if usual is None:
        return _NO_SIGNS
    results = [measure(case, usual) for measure in (_agents, _tools, _order, _call_budget, _arguments)]
    departures = [result.reason for result in results if isinstance(result, Scored) and result.value != 1.0]
    if not departures:
        return next((result for result in results if isinstance(result, Unavailable | Failed)), Scored(value=1.0))
    found = signs([(case.root_span_id, departure) for departure in departures])
    return Scored(value=0.0, reason=together(departures), details=found)


def _listed(tools: Sequence[str]) -> Reason:
    return together(map(part, labels(tools, _NAMED)), ", ")


def _measured(measure: Callable[[Case, Scenario], Result]) -> Callable[[Case], Result]:
    def measured(case: Case) -> Result:
        scenario = case.once(read_scenario)
        return scenario if isinstance(scenario, Unavailable) else measure(case, scenario)

    return measured


_UNDEFINED = "there is no scenario, the trace is incomplete, or "

agents = pass_or_fail(
    id="agents",
    title="Agents",
    meaning="Whether the expected agents were called and no other; 1 or 0.",
    formula="1 if missing and unexpected are empty, else 0",
    source=f"{SOURCE}; rubrics §10",
    measure=_measured(_agents),
    undefined=_UNDEFINED + "agents_called is absent while the scenario expects something of agents",
    details_name_parts=True,
)
tools = pass_or_fail(
    id="tools",
    title="Tools",
    meaning="Whether the expected tools were called and no other; 1 or 0.",
    formula="1 if missing and unexpected are empty, else 0",
    source=f"{SOURCE}; rubrics §10",
    measure=_measured(_tools),
    undefined=_UNDEFINED + "tools_used is absent while the scenario expects something of tools",
    details_name_parts=True,
)
order = pass_or_fail(
    id="order",
    title="Tool order",
    meaning="Whether tools_in_order were called in that order, others between them allowed; 1 or 0.",
    formula="1 if tools_in_order is a subsequence of the calls, else 0",
    source="rubrics §10",
    measure=_measured(_order),
    undefined=_UNDEFINED + "tools_used is absent; not applicable unless the scenario asks",
    details_name_parts=True,
)
call_budget = pass_or_fail(
    id="call_budget",
    title="Call budget",
    meaning="Whether no tool, and not all together, was called more often than max_calls allows; 1 or 0.",
    formula="1 if calls <= max_calls for every tool listed and for '*' (all), else 0",
    source="rubrics §10",
    measure=_measured(_call_budget),
    undefined=_UNDEFINED + "tools_used is absent; not applicable unless the scenario asks",
)
arguments = pass_or_fail(
    id="arguments",
    title="Tool arguments",
    meaning="Whether every call of a listed tool had arguments as the scenario expects them; 1 or 0.",
    formula="1 if every expected argument of every such call is present and as expected, else 0",
    source="rubrics §10",
    measure=_measured(_arguments),
    undefined=_UNDEFINED + "arguments were not captured; not applicable unless the scenario asks",
)
result_use = pass_or_fail(
    id="result_use",
    title="Result use",
    meaning="Whether the output bears out something of what each listed tool returned; 1 or 0.",
    formula="1 if the output has, for every such call, a number, a name or a word that only its result brought in",
    source="rubrics §10",
    measure=_measured(_result_use),
    methods=(Method.LEXICAL,),
    undefined=_UNDEFINED
    + "results were not captured or hold nothing distinctive; not applicable unless the scenario asks",
)

habits = Metric(
    id="habits",
    title="Habits",
    meaning="Whether the run keeps to the scenario's signs, which say what most good runs do; 1 or 0. A sign, which "
    "neither weighs nor decides.",
    formula="1 if agents, tools, order, call_budget and arguments of the scenario's signs would be 1, else 0",
    source="rubrics §10",
    measure=_measured(_habits),
    bands=at_least(good=1.0, acceptable=0.0),
    undefined=_UNDEFINED + "of what the signs ask something is not known; not applicable unless the scenario has signs",
)

_EXTENSIONS = (order, call_budget, arguments, result_use)


def _passes(_: float, results: Mapping[str, Result]) -> bool | None:
    """All checks that apply are 1. One that fails decides; one that is unknown leaves the rest undecided."""
    known = True
    for name, result in results.items():
        if name == habits.id:
            continue
        if isinstance(result, Scored):
            if result.value != 1.0:
                return False
        elif not isinstance(result, NotApplicable):
            known = False
    return True if known else None


def _detail(_case: Case, _composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """The seed's result object under ``workflow``; absent when a side, or the pass, is not known."""
    called, used = results[agents.id], results[tools.id]
    passed = _passes(1.0, results)
    if passed is None or not isinstance(called, Scored) or not isinstance(used, Scored):
        return {}
    return {"workflow": {"pass": passed, agents.id: dict(called.details), tools.id: dict(used.details)}}


SIDES = (agents.id, tools.id)
DEPARTURES = ("missing", "unexpected")
CHECKS = tuple(metric.id for metric in _EXTENSIONS)
KINDS = (*(f"{side}_{departure}" for side in SIDES for departure in DEPARTURES), *CHECKS)
"""Every kind of violation, a closed list: missing and unexpected agents and tools, and each check beyond them."""


def violations(results: Mapping[str, Result]) -> tuple[str, ...]:
    """The kinds of violation that the results show, each at most once."""
    broken = {name: found for name, found in results.items() if isinstance(found, Scored) and found.value != 1.0}
    sides = [
        f"{side}_{what}" for side in SIDES if side in broken for what in DEPARTURES if broken[side].details.get(what)
    ]
    return (*sides, *(name for name in CHECKS if name in broken))


RUBRIC = Rubric(
    id="workflow",
    title="Workflow Validation",
    source="seed 003 §1; rubrics §10",
    formula="0.5 × agents + 0.5 × tools; passes if both are 1, and order, call_budget, arguments and result_use "
    "where the scenario asks for them",
    criteria=(
        Criterion(metric=agents, weight=0.5),
        Criterion(metric=tools, weight=0.5),
        *(Criterion(metric=metric) for metric in _EXTENSIONS),
        Criterion(metric=habits),
    ),
    pass_mark=None,
    passes=_passes,
    detail=_detail,
    violations=violations,
)

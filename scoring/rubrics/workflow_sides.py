"""Whether the agents and tools that a scenario names were called, and no others; and whether a trace shows it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import called_tools, incomplete, stated_scenario
from sidejudge.scoring.lexical.shown_text import label, labels
from sidejudge.scoring.metrics.run_ending import LONE_CALL, attributes_left_out, no_run
from sidejudge.scoring.metrics.run_steps import is_lone_call
from sidejudge.scoring.result.reason import Reason, own, part, together
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.scenario.scenario import DEFAULT_ALWAYS_EXPECTED, Scenario, Side
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.tool_calls import is_nameless
from sidejudge.scoring.trace.trace import Trace, from_above

MOST = 100
"""Most names that one list of the result object shows."""
NAMED = 10
_NOT_UNDERSTOOD = frozenset({SpanKind.OTHER, SpanKind.CHAIN})
_RUNNING = frozenset({"agent", "call", "execute", "invoke", "run", "start", "step"})
_NO_WORD = re.compile(r"[\W_]+")
_DEFAULT_ALWAYS = frozenset(DEFAULT_ALWAYS_EXPECTED)
_NO_SCENARIO = Unavailable(Reason("no scenario"))
_LONE_CALL = Unavailable(LONE_CALL.reason)
_UNNAMED_AGENT = Unavailable(
    Reason("an agent ran, and the trace does not show its name, so that it may be another one")
)
UNNAMED = Unavailable(Reason("a tool ran, and the trace does not show its name, so that it may be another one"))


def read_scenario(case: Case) -> Scenario | Unavailable:
    """The case's scenario; unavailable without one, for a trace that was cut short, and for one that shows no run.

    In part of a trace *not called* cannot be distinguished from *not seen*. One in which no agent, model or
    tool was recognised, or one call of a tool alone, keeps to nothing and departs from nothing.
    """
    if not case.complete:
        return incomplete(case)
    stated = stated_scenario(case)
    if stated is None:
        return _NO_SCENARIO
    if case.once(is_lone_call):
        return _LONE_CALL
    if case.trace is not None and isinstance(stated, Scenario) and stated.asks_of_calls:
        return _no_run(case) or stated
    return stated


def _no_run(case: Case) -> Unavailable | None:
    nothing = case.once(no_run)
    return None if nothing is None else Unavailable(Reason("nothing to hold it against: {why}", why=nothing.reason))


def not_understood(case: Case, names: Iterable[str]) -> Unavailable | None:
    """Why it is unknown whether these were called; None where it is known.

    The reasons: no agent, model or tool was recognised at all; a step that no dialect understood has one of their
    names; a model's answer, which may hold calls, was not understood; or contents were cut off, or attributes left out,
    of a run in which no tool, or no agent, has a span.
    """
    names = list(names)
    if case.trace is None or not names:
        return None
    if (nothing := _no_run(case)) is not None:
        return nothing
    for unread in (unread for span in case.trace.models for unread in span.unread if unread.field != "input"):
        why = "{name} may have been called: what a model answered in {source} was not understood"
        return Unavailable(Reason(why, name=part(label(names[0])), source=part(label(unread.source))))
    if not case.agents_called or not any(span.kind is SpanKind.TOOL for span in case.trace.spans):
        for unread in (unread for unread in case.unread if unread.cut):
            why = "{name} may have been called: {source} was cut off"
            return Unavailable(Reason(why, name=part(label(names[0])), source=part(label(unread.source))))
        if (left_out := attributes_left_out(case)) > 0:
            why = "{name} may have been called: the SDK left out {n} attributes"
            return Unavailable(Reason(why, name=part(label(names[0])), n=left_out))
    steps = [f" {_words(span.name)} " for span in case.trace.spans if span.kind in _NOT_UNDERSTOOD]
    for name in names:
        if (words := _words(name)) and any(f" {words} " in step for step in steps):
            why = "{name} may have been called: a step of this name is neither known as an agent nor as a tool"
            return Unavailable(Reason(why, name=part(label(name))))
    return None


def tools_not_understood(case: Case, names: Iterable[str]) -> Unavailable | None:
    """Why it is unknown whether these tools were called; also that one ran whose name the trace does not show."""
    names = list(names)
    called = [call.name for call in case.tools_used or ()]
    if (doubt := not_understood(case, names)) is not None or not names or not count_nameless(case, called):
        return doubt
    why = "{name} may have been called: a tool ran, and the trace does not show its name"
    return Unavailable(Reason(why, name=part(label(names[0]))))


def count_nameless(case: Case, called: Iterable[str], stated: Container[str] = ()) -> int:
    """How many of a trace's calls show without the tool's name: some spans name an operation or a class alone.

    ``stated``: names that a scenario has, which are names whatever they are.
    """
    return 0 if case.trace is None else sum(name not in stated and is_nameless(name) for name in called)


def _agents_not_understood(case: Case, names: Iterable[str]) -> Unavailable | None:
    """Why it is unknown whether these agents ran; also that one ran whose name the trace does not show."""
    names = list(names)
    if (doubt := not_understood(case, names)) is not None or case.trace is None or not names:
        return doubt
    if any(not span.agent and _is_some_agent(span) for span in case.trace.spans):
        why = "{name} may have been called: an agent ran, and the trace does not show its name"
        return Unavailable(Reason(why, name=part(label(names[0]))))
    return None


def _is_some_agent(span: Span) -> bool:
    """Whether a span that names no agent is one's run, or a step that was not understood and may be: ``Agent.run``."""
    if span.kind is SpanKind.AGENT:
        return True
    said = _words(span.name).split() if span.kind in _NOT_UNDERSTOOD else []
    return "agent" in said and _RUNNING.issuperset(said)


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
        "included": shown_names([name for name in side.include if name in names]),
        "excluded": shown_names([name for name in side.exclude if name not in names]),
        "missing": shown_names(missing),
        "unexpected": shown_names(unexpected),
    }


def shown_names(names: Sequence[str]) -> list[str]:
    """The first names, cut, because names of a trace may be many and long."""
    return labels(names, MOST) if names else []


_NOTHING_ASKED = Scored(value=1.0, details=validate(Side(), ()))


_NO_WORKFLOW = NotApplicable(Reason("the scenario asks nothing of agents or tools"))


def _root_agent(case: Case) -> str | None:
    """The agent whose run encloses the runs of all others; None where the trace shows no such agent."""
    named = [span for span in case.trace.spans if span.agent] if case.trace is not None else []
    if case.trace is None or not named:
        return None
    first = named[0]
    if len(case.agents_called or ()) == 1:
        return first.agent  # the only run may show as steps, one after the other
    if any(span.start_ns > first.end_ns for span in named):
        return None
    # What begins as it ends is another's, unless it stands below: clocks of milliseconds show both at one time.
    at_its_end = [span for span in named if span is not first and span.start_ns == first.end_ns]
    below = _below(case.trace, first) if at_its_end else ()
    return first.agent if all(span.span_id in below for span in at_its_end) else None


def _below(trace: Trace, top: Span) -> set[str]:
    """The ids of all spans below one."""
    found, level = set[str](), [top]
    while level:
        level = [span for above in level for span in trace.children.get(above.span_id, ()) if span.span_id not in found]
        found.update(span.span_id for span in level)
    return found


def _with_orchestrator(side: Side, root: str | None) -> Side:
    """Count the root agent as the orchestrator, whatever its name, unless the scenario names it."""
    if root is None or root in side.always or root in side.exclude or not _DEFAULT_ALWAYS.issubset(side.always):
        return side
    return replace(side, always=(*side.always, root))


def _validated(case: Case, side: Side, called: Sequence[str] | None, field: str) -> Result:
    if side.asks_nothing:
        return _NOTHING_ASKED
    if called is None:
        return Unavailable(Reason("{field} is not known", field=own(field)))
    found = validate(side, called)
    doubted = _agents_not_understood if field == "agents_called" else tools_not_understood
    if found["pass"]:
        other = not_understood(case, ("another",)) if side.closed else None
        return doubted(case, side.exclude) or other or Scored(value=1.0, details=found)
    if not found["unexpected"] and (doubt := doubted(case, side.missing(dict.fromkeys(called)))) is not None:
        return doubt
    reported = [
        Reason("{kind}: {names}", kind=own(kind), names=together(map(part, names), ", "))
        for kind in ("missing", "unexpected")
        if (names := _names(found, kind))
    ]
    return Scored(value=0.0, reason=together(reported), details=found)


def _names(found: Mapping[str, object], kind: str) -> list[str]:
    names = found[kind]
    return labels(map(str, names), NAMED) if isinstance(names, list) else []


def hold_agents(case: Case, scenario: Scenario) -> Result:
    """Whether the agents that a scenario names ran, and no others."""
    if scenario.asks_nothing:
        return _NO_WORKFLOW
    side = _with_orchestrator(scenario.agents, _root_agent(case))
    found = _validated(case, side, case.agents_called, "agents_called")
    return _UNNAMED_AGENT if _passed(found) and side.closed and _has_nameless_agent(case) else found


def _passed(found: Result) -> bool:
    return isinstance(found, Scored) and found.value == 1.0


def _has_nameless_agent(case: Case) -> bool:
    """Whether an agent ran within the run of another, and its name does not show."""
    if case.trace is None:
        return False
    within = from_above(case.trace, False, lambda span, upper: upper or span.kind is SpanKind.AGENT)
    return any(span.kind is SpanKind.AGENT and not span.agent and within[span.span_id] for span in case.trace.spans)


def hold_tools(case: Case, scenario: Scenario) -> Result:
    """Whether the tools that a scenario names were called, and no others."""
    if scenario.asks_nothing:
        return _NO_WORKFLOW
    if scenario.tools.asks_nothing:
        return _NOTHING_ASKED
    calls = called_tools(case, scenario)
    if calls is None:
        return _validated(case, scenario.tools, None, "tools_used")
    side, called = scenario.tools, [call.name for call in calls]
    stated = {*side.include, *side.may, *side.exclude, *side.always}
    named = [name for name in called if not count_nameless(case, [name], stated)]
    found = _validated(case, side, named, "tools_used")
    return UNNAMED if _passed(found) and side.closed and len(named) < len(called) else found


def names_of(tools: Sequence[str]) -> Reason:
    """The first of many names, each cut."""
    return together(map(part, labels(tools, NAMED)), ", ")


def _called_in_part(side: Side, called: Iterable[str]) -> Scored | None:
    """That something excluded was called. What else a closed side allows, part of a trace may not show."""
    names = dict.fromkeys(called)
    forbidden = [name for name in names if name in side.exclude]
    if not forbidden:
        return None
    found = {**validate(replace(side, include=(), closed=False), forbidden), "excluded": []}
    return Scored(value=0.0, reason=Reason("unexpected: {names}", names=names_of(forbidden)), details=found)


def agents_in_part(case: Case, scenario: Scenario) -> Scored | None:
    """The excluded agents that part of a trace shows; None for none."""
    return _called_in_part(scenario.agents, case.agents_called or ())


def tools_in_part(case: Case, scenario: Scenario) -> Scored | None:
    """The excluded tools that part of a trace shows; None for none."""
    return _called_in_part(scenario.tools, [call.name for call in called_tools(case, scenario) or ()])

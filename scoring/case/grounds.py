"""Grounds: the sources, ground truth and criteria for judging an answer, and the scenario that states them.

Metrics look here for something to judge by, and a judge's prompt shows the same.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, own, part, quoted, together
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.scenario.reading import parse_inline
from sidejudge.scoring.scenario.scenario import Scenario, ScenarioError
from sidejudge.scoring.trace.span import Json, ToolCall

from .case import Case

_OF_A_SERVER: Final = "mcp__"
"""How the name of a tool begins that stands behind its server's: ``mcp__weather__forecast``."""
_SHORTEST_LIMIT: Final = 64
"""Characters of the shortest limit that is looked for."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The expected contents of an answer; ``field`` is the field of the case that states them."""

    text: str
    field: str


def stated_scenario(case: Case) -> Scenario | Unavailable | None:
    """The case's scenario; None when it states none, unavailable when it cannot be used."""
    if case.scenario is None or isinstance(case.scenario, Scenario):
        return case.scenario
    if isinstance(case.scenario, str):
        return Unavailable(Reason("scenario {name} is not in the scenario file", name=part(repr(label(case.scenario)))))
    try:
        return parse_inline(case.scenario)
    except ScenarioError as error:
        problems = (quoted(label(problem, 200)) for problem in error.problems[:3])
        return Unavailable(together((Reason("the scenario cannot be used"), *problems)))


def headless(case: Case) -> bool:
    """Whether the top of the trace never came; then it is unknown which step speaks for the trace.

    A case that is left of a trace names the root where it came.
    """
    if case.complete or case.completion in (None, "pseudo_root"):
        return False
    return case.root_span_id is None if case.trace is None else case.trace.root is None


def incomplete(case: Case) -> Unavailable:
    """The words for a trace that may lack a part."""
    return _incomplete(case.completion or "cut short")


@lru_cache(maxsize=16)
def _incomplete(how: str) -> Unavailable:
    """One object for all cases, so that their outcome is known (``OutcomeMemo``)."""
    return Unavailable(Reason("the trace is incomplete ({how})", how=own(how)))


def called_tools(case: Case, scenario: Scenario | None) -> tuple[ToolCall, ...] | None:
    """Tool calls in order, by the names that the scenario has for them.

    A pseudo-tool that hands the work to another agent counts only if the scenario names it.
    """
    if case.tools_used is None:
        return None
    named = set() if scenario is None else _named(scenario)
    calls = (_as_named(call, named) for call in case.tools_used)
    return tuple(call for call in calls if not call.handoff or call.name in named)


def _as_named(call: ToolCall, named: Container[str]) -> ToolCall:
    """The call of a server's tool by the tool's own name, where the scenario has that alone.

    Claude's agents, and others after them, call it ``mcp__SERVER__TOOL``; other clients of the same server ``TOOL``.
    """
    if call.name in named or not call.name.startswith(_OF_A_SERVER):
        return call
    parts = call.name.split("__")
    own_names = ("__".join(parts[at:]) for at in range(2, len(parts)))
    return next((replace(call, name=name) for name in own_names if name in named), call)


def _named(scenario: Scenario) -> set[str]:
    return {
        *scenario.tools.include,
        *scenario.tools.exclude,
        *scenario.tools_in_order,
        *scenario.tools.may,
        *scenario.relations.named,
        *scenario.min_calls,
        *scenario.max_calls,
        *scenario.arguments,
        *scenario.arguments_schema,
        *scenario.values_from,
        *scenario.result_use,
    }


def sources(case: Case) -> tuple[str, ...] | Unavailable:
    """Retrieved documents and tool results as texts (rubrics §8); empty when there were certainly none.

    Unavailable when they are unknown: in part of a trace *no source* cannot be distinguished from *not seen*.
    """
    if not case.complete:
        return incomplete(case)
    stated = stated_scenario(case)
    calls = called_tools(case, None if isinstance(stated, Unavailable) else stated)
    if case.context is None and calls is None:
        return Unavailable(Reason("neither context nor tools_used is known"))
    results = [call.result for call in calls or () if call.result is not None]
    if not case.context and calls and not results and all(call.error is None for call in calls):
        return Unavailable(Reason("no context, and the results of the tools are not known"))
    return (*(case.context or ()), *map(text_or_json, results))


def has_no_sources(case: Case) -> bool:
    """Whether an answer certainly rests on no retrieved document and no tool result: a plain answer.

    Citations do not apply to a plain answer. A whole trace shows it, and a case without a trace states it (``context:
    []``); a case without the key ``context`` may merely not report it. An incomplete trace cannot show it.
    """
    if case.trace is None and case.context is None:
        return False
    found = sources(case)
    return not isinstance(found, Unavailable) and not found


def ground_truth(case: Case) -> tuple[str, ...] | Unavailable:
    """The texts that claims are verified against: the expected outcome, and the sources as far as they are known."""
    found = sources(case)
    if case.expected_outcome is not None:
        return (text_or_json(case.expected_outcome), *(() if isinstance(found, Unavailable) else found))
    return (
        Unavailable(Reason("no expected_outcome, and {why}", why=found.reason))
        if isinstance(found, Unavailable)
        else found
    )


def criteria(case: Case) -> Criteria | Unavailable:
    """What the answer should contain, from the scenario, else from the expected outcome, else from the input."""
    scenario = stated_scenario(case)
    if isinstance(scenario, Unavailable):
        return scenario
    if scenario is not None and scenario.expected_answer_criteria:
        return Criteria(scenario.expected_answer_criteria, "expected_answer_criteria")
    for field, value in (("expected_outcome", case.expected_outcome), ("input", case.input)):
        if value is not None and value not in ("", [], {}):
            return Criteria(text_or_json(value), field)
    if case.transcript_text:
        return Criteria(case.transcript_text, "transcript")
    return Unavailable(Reason("neither expected_answer_criteria, expected_outcome nor input says what was wanted"))


def text_or_json(value: Json) -> str:
    """A JSON value as text: texts as they are, all else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"


def cut_at(case: Case) -> int | None:
    """How many characters the client leaves of a text, as far as a trace shows; None: nothing is known to be cut off.

    SDKs cut attributes off at a configured length without a mark. If the longest text has such a length, other texts
    may have been cut there too. Ask by ``case.once(cut_at)``.
    """
    longest = max((len(text) for text in _texts(case)), default=0)
    if longest < _SHORTEST_LIMIT:
        return None
    if longest & (longest - 1) == 0 or longest % 1_000 == 0:
        return longest
    alike = {text for text in _texts(case) if len(text) == longest} if longest % 100 == 0 else ()
    return longest if len(alike) > 1 else None


def _texts(case: Case) -> Iterator[str]:
    """The texts of a trace that a single attribute may hold unchanged."""
    for span in () if case.trace is None else case.trace.spans:
        called = (span.tool.arguments, span.tool.result) if span.tool is not None else ()
        yield from (text for text in (span.system_prompt, span.input, span.output, *called) if isinstance(text, str))
        yield from span.documents
        yield from (message.text for message in (*span.input_messages, *span.output_messages))

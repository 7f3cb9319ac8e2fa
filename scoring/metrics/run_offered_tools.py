"""Whether a model's calls fit the tools that it was offered, and whether it used any of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import incomplete
from sidejudge.scoring.lexical.memory import by_text
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, part, together
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable, at_least, must_be_one
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Json, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.tool_calls import NAMESPACE, gives_answer, plain
from sidejudge.scoring.trace.tool_spans import canonical
from sidejudge.scoring.trace.trace import Trace

from .run_ending import NO_CALLS, UNKNOWN_CALLS, of_trace, run_metric
from .run_steps import CallStep, run_steps, share_without, signs

if TYPE_CHECKING:
    import jsonschema_rs

_MOST_TEXTS: Final = 32
"""Most distinct texts of definitions of one run that are read."""
_LONGEST_TEXT: Final = 1 << 17
REMEMBERED: Final = 2 * _LONGEST_TEXT
"""Most cached characters of definitions, and of schemas: an application sends the same with every call."""
_NONE_OFFERED: Final = NotApplicable(Reason("which tools the models were offered is not in the trace"))
_NO_AGENT: Final = NotApplicable(Reason("no agent ran: a model alone may answer a turn without a tool"))
_ALL_FAILED: Final = NotApplicable(Reason("every run that was offered tools ended in an error before it answered"))
_ACTS: Final = (SpanKind.TOOL, SpanKind.RETRIEVER)
_GRAPH: Final = "langgraph"
_LONG_NUMBER: Final = re.compile(r"-?[1-9][0-9]{18,}")


@record(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool that a model was offered. ``schema`` declares its parameters, as JSON text; None if undeclared."""

    name: str
    schema: str | None


def offered_tools(case: Case) -> Mapping[str, OfferedTool]:
    """All tools that the models of a run were offered, by a name without punctuation. Ask by ``case.once``."""
    found: dict[str, OfferedTool] = {}
    for text in _definitions(case)[:_MOST_TEXTS]:
        if len(text) <= _LONGEST_TEXT:
            found |= _read(text)
    return found


def _definitions(case: Case) -> list[str]:
    spans = () if case.trace is None else case.trace.spans
    return list(dict.fromkeys(text for span in spans if span.tool_definitions for text in span.tool_definitions))


def _all_known(case: Case) -> bool:
    """Whether each tool that was offered is known: no definition is too long, one too many, or cut off."""
    texts = _definitions(case)
    return len(texts) <= _MOST_TEXTS and all(
        len(text) <= _LONGEST_TEXT and (_read(text) or not isinstance(decoded(text), str)) for text in texts
    )


def _read(text: str) -> Mapping[str, OfferedTool]:
    """The tools of one text. Of a whole request only the tools are cached: its messages never recur."""
    if text.startswith("{") and '"messages"' in text:
        request = decoded(text)
        tools = request.get("tools") if isinstance(request, dict) else None
        return _known(canonical(tools)) if tools else {}
    return _known(text)


def _read_definitions(text: str) -> Mapping[str, OfferedTool]:
    found = {plain(tool.name): tool for tool in _tools_in(decoded(text))}
    for tool in list(found.values()):
        # A framework that offers ``orders-lookup`` calls its tool ``lookup``.
        found.setdefault(plain(NAMESPACE.split(tool.name)[-1]), tool)
    return found


_known: Final = by_text(_read_definitions, _LONGEST_TEXT)


def _tools_in(value: Json) -> Iterator[OfferedTool]:
    if isinstance(value, list):
        for item in value:
            yield from _tools_in(decoded(item))
    elif isinstance(value, dict):
        if isinstance(held := decoded(value.get("tools") or value.get("function_declarations")), list):
            yield from _tools_in(held)
        elif isinstance(function := value.get("function"), dict):
            yield from _tools_in(function)
        elif isinstance(name := value.get("name"), str) and name:
            declared = next((value[key] for key in _PARAMETERS if value.get(key) is not None), None)
            yield OfferedTool(name=name, schema=_schema(decoded(declared)))


_PARAMETERS: Final = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "args_schema")


def _schema(declared: Json) -> str | None:
    """The schema of parameters, without the wrapping of some clients."""
    if not isinstance(declared, dict):
        return None
    inner = declared.get("parameters") or declared.get("jsonSchema") or declared.get("json")
    return canonical(inner if isinstance(inner, dict) and "properties" not in declared else declared)


def _compiled(schema: str) -> jsonschema_rs.Validator | None:
    """The schema's validator; None for an invalid schema. Patterns run in linear time, and nothing is fetched."""
    import jsonschema_rs  # noqa: PLC0415  # 4.5 MB, for those who have schemas

    try:
        return jsonschema_rs.validator_for(
            canonical(_with_null(json.loads(schema))), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):
        return None


_validator: Final = by_text(_compiled, _LONGEST_TEXT)


def _with_null(schema: Json) -> Json:
    """The schema with ``nullable: true`` of OpenAPI stated in JSON Schema, which has no such word.

    The word allows null beside ``type``, and equally beside ``$ref`` or ``anyOf``.
    """
    if isinstance(schema, list):
        return [_with_null(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _with_null(value) for key, value in schema.items()}
    if found.get("nullable") not in (True, "true"):  # of a map of names to schemas it may be one of the names
        return found
    del found["nullable"]
    return {"anyOf": [{"type": "null"}, found]}


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


@run_metric(
    title="Valid calls",
    formula="1 − misfits / calls; a misfit did not fail, and breaks its schema or, though a model chose it, was not "
    "offered",
    bands=at_least(good=1.0, acceptable=0.8),
    undefined="contents were not captured; not applicable where no tool was called or the offer is not in the trace",
)
def calls_valid(case: Case) -> Result:
    """The share of tool calls that name a tool that was offered, with arguments that fit its declaration.

    A call that failed counts in tool_success alone.
    """
    calls = case.once(run_steps).calls
    if calls is None:
        return UNKNOWN_CALLS
    if not calls:
        return NO_CALLS
    offered = case.once(offered_tools)
    if not offered:
        return _NONE_OFFERED
    chosen = case.once(_chosen) if _all_known(case) else frozenset()
    found = [(step.span_id, fault) for step in calls if (fault := _fault(step, offered, chosen)) is not None]
    stated = together((fault for _, fault in found[:3]), ", ")
    return share_without(found, len(calls), "calls do not fit", stated=stated, calls=len(calls), offered=len(offered))


def _chosen(case: Case) -> frozenset[str]:
    """The names that models called where their own request listed the tools.

    What was answered in the same breath a provider ran, which lists neither a server's tools nor always its own.
    """
    models = () if case.trace is None else [span for span in case.trace.models if span.tool_definitions]
    return frozenset(plain(call.name) for span in models for call in _left_to_the_program(span))


def _left_to_the_program(span: Span) -> Iterator[ToolCall]:
    ran = {message.tool_call_id for message in span.output_messages if message.role == "tool"} - {None}
    return (call for message in span.output_messages for call in message.tool_calls if call.call_id not in ran)


def _fault(step: CallStep, offered: Mapping[str, OfferedTool], chosen: frozenset[str]) -> Reason | None:
    """The misfit of a call that did not fail; a failed call counts once, as a failure of the tool."""
    if step.failure is not None:
        return None
    name = part(label(step.call.name))
    own = plain(step.call.name)
    tool = offered.get(own) or next((held for key, held in offered.items() if own.endswith(key)), None)
    if tool is None and (server := offered.get(plain(NAMESPACE.split(step.call.name)[0]))) is not None:
        tool = server if server.schema is None else None  # a server's own tools are not listed where it is offered
    if tool is None:
        # Frameworks run steps of their own as tools; a name that no model called is no model's invention, and the tool
        # by which a model answers is often not listed among the others.
        unknown = own in chosen and not gives_answer(step.call.name)
        return Reason("{tool}: no such tool was offered", tool=name) if unknown else None
    arguments = decoded(step.call.arguments)
    check = None if tool.schema is None else _validator(tool.schema)
    if arguments is None or check is None:
        return None
    if isinstance(arguments, str):
        return Reason("{tool}: the arguments are not JSON", tool=name) if step.call.arguments else None
    error = next((each for each in check.iter_errors(arguments) if not _long_number(each)), None)
    return None if error is None else Reason("{tool}: {fault}", tool=name, fault=_words(error))


def _long_number(error: jsonschema_rs.ValidationError) -> bool:
    """Whether a type differs only because a whole number of more than 64 bits is read as text."""
    value = error.instance
    of_type = bool(error.schema_path) and error.schema_path[-1] in {"type", "anyOf", "oneOf"}
    return of_type and isinstance(value, str) and _LONG_NUMBER.fullmatch(value) is not None


def _words(error: jsonschema_rs.ValidationError) -> Reason:
    """A misfit's place and rule, without the value: that is contents."""
    path = part(label(".".join(str(each) for each in error.instance_path)))
    rule = part(label(str(error.schema_path[-1]) if error.schema_path else "schema"))
    if path.text:
        return Reason("argument {path} breaks {rule}", path=path, rule=rule)
    return Reason("the arguments break {rule}", rule=rule)


@run_metric(
    formula="1 − runs without any call / runs that were offered tools",
    bands=must_be_one(),
    undefined="contents were not captured; not applicable where no agent ran, the offer is not in the trace, or every "
    "such run failed unanswered",
)
@of_trace
def tools_tried(case: Case, trace: Trace) -> Result:
    """The share of agents' runs that called a tool or another agent, among those that were offered tools.

    One by which the answer is given (final_answer, submit, finish, done) is no such tool.
    """
    if not any(span.kind is SpanKind.AGENT or _is_graph(span) for span in trace.spans):
        return _NO_AGENT
    known = [run for run in _runs(trace) if run.offered]
    if not known:
        return _NONE_OFFERED
    offered = [run for run in known if run.acted or run.speaker.error is None]
    if not offered:
        return _ALL_FAILED
    idle = [run for run in offered if not run.acted]
    if idle and not case.complete:
        return incomplete(case)  # the call may be in what never came
    if idle and case.tools_used is None:
        return UNKNOWN_CALLS
    if idle and not case.content_captured:
        return Unavailable(Reason("the telemetry carries no contents"))  # with little else known it would decide alone
    if idle and (unread := next((each for each in case.unread if each.cut), None)) is not None:
        why = "a call may stand in {source}, which was cut off"
        return Unavailable(Reason(why, source=part(label(unread.source))))
    found = [(run.speaker.span_id, f"{label(run.top.agent or run.top.name)}: answered without a tool") for run in idle]
    why = "{n} of {all} runs answered without any of the tools they were offered"
    return Scored(
        value=1.0 - len(idle) / len(offered),
        reason=Reason(why, n=len(idle), all=len(offered)) if idle else "",
        details=signs(found),
    )


def _is_graph(span: Span) -> bool:
    """Whether a chain is the run of a LangGraph graph, an agent in all but name."""
    return span.kind is SpanKind.CHAIN and span.name.lower().startswith(_GRAPH)


@dataclass(slots=True)
class _AgentRun:
    """One agent's run. ``speaker`` is its last model call, or the run's own span without one."""

    top: Span
    speaker: Span
    offered: bool = False
    acted: bool = False


def _runs(trace: Trace) -> list[_AgentRun]:
    """The runs of agents, and one for the spans above all of them; each span belongs to the nearest run above."""
    found: dict[str | None, _AgentRun] = {}
    owner: dict[str, str | None] = {}
    for span in trace.from_top:  # parents come before their children
        above = owner.get(span.parent_id) if span.parent_id is not None else None
        if span.kind is SpanKind.AGENT or (above is None and None not in found):
            own = span.span_id if span.kind is SpanKind.AGENT else None
            found[own] = _AgentRun(span, span)
            if own is not None and above in found:
                found[above].acted = True  # it passed work on
            above = own
        owner[span.span_id] = above
        if (run := found.get(above)) is None:
            continue
        run.offered = run.offered or _offers_work(span)
        if _acts(span) or _holds_result(span):
            run.acted = True
        if span.kind is SpanKind.LLM and (run.speaker is run.top or span.end_ns >= run.speaker.end_ns):
            run.speaker = span
    return list(found.values())


def _offers_work(span: Span) -> bool:
    """Whether a model was offered a tool that does something; an unreadable definition counts as one."""
    for text in span.tool_definitions:
        tools = _read(text) if len(text) <= _LONGEST_TEXT else {}
        if not tools or any(not gives_answer(tool.name) for tool in tools.values()):
            return True
    return False


def _acts(span: Span) -> bool:
    """Whether a step does something, or requests it, other than giving the answer."""
    if span.kind in _ACTS:
        return span.tool is None or not gives_answer(span.tool.name)
    return any(not gives_answer(call.name) for message in span.output_messages for call in message.tool_calls)


def _holds_result(span: Span) -> bool:
    """Whether a model was shown the result of a call in this turn: the call itself may stand in another trace."""
    for message in reversed(span.input_messages):
        if message.role == "user":
            return False
        if message.role == "tool" or message.tool_calls:
            return True
    return False

"""Pydantic AI: the GenAI conventions since format 2; before, old-style events as JSON in an attribute.

An agent's span has all messages of its run under an attribute of its own, and its result under another. A result that
is an object is given to a pseudo-tool, which is no tool of the agent.
"""

from __future__ import annotations

import json

from msgspec.structs import replace

from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.trace.span import Message, Span, SpanKind

from . import genai, messages, unwrap
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "pydantic_ai"
SWITCH = "InstrumentationSettings(include_content=True)"

_ALL = "pydantic_ai.all_messages"
_REQUEST, _RESULT = "model_request_parameters", "final_result"
_CALL_EVENTS, _RUN_EVENTS = "events", "all_messages_events"


def speaks(raw: RawSpan) -> bool:
    """Whether Pydantic AI made the span."""
    return raw.scope_name == "pydantic-ai" or _ALL in raw.attributes


def normalise(raw: RawSpan) -> Span:
    """A Pydantic AI span in normal form."""
    return genai.normalise(raw, name=NAME, switch=SWITCH, adapt=adapt)


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """What Pydantic AI, and Logfire like it, put beside the conventions."""
    if "gen_ai.operation.name" not in reading.attributes and kind is not SpanKind.TOOL:
        kind = _old_kind(reading, kind, fields)
    if kind is SpanKind.TOOL and "tool" in fields:
        genai.complete_tool(reading, fields, "tool_arguments", "tool_response")
        return kind
    if not fields["input_messages"] and not fields["output_messages"]:
        contents = genai.read_events(reading, *_events(reading))
        requested, answered = contents.requested, contents.answered
        if kind is SpanKind.AGENT and (found := messages.read(unwrap.decoded(reading.value("input", _ALL)))):
            requested, answered = _run(found)
        fields |= {"input_messages": requested, "output_messages": answered}
        fields |= {"input": messages.last_text(requested, "user"), "output": messages.last_text(answered, "assistant")}
        fields["system_prompt"] = fields["system_prompt"] or messages.system_text(requested)
    if kind is SpanKind.LLM:
        fields["output_messages"] = _without_results(reading, fields["output_messages"])
        fields["output"] = messages.last_text(fields["output_messages"], "assistant")
    if kind is SpanKind.AGENT:
        fields["output"] = reading.text("output", "final_result") or fields["output"]
    return kind


def _without_results(reading: SpanReading, stated: tuple[Message, ...]) -> tuple[Message, ...]:
    """The input of a pseudo-tool for results is the answer; the request shows which tools are such."""
    if not any(message.tool_calls for message in stated):
        return stated
    request = unwrap.decoded(reading.attributes.get(_REQUEST))
    listed = request.get("output_tools") if isinstance(request, dict) else None
    tools = listed if isinstance(listed, list) else [{"name": _RESULT}]
    names = {str(item.get("name")) for item in tools if isinstance(item, dict)}
    found = []
    for message in stated:
        given = [call.arguments for call in message.tool_calls if call.name in names]
        calls = tuple(call for call in message.tool_calls if call.name not in names)
        text = message.text or (json.dumps(given[0], ensure_ascii=False) if given else "")
        found.append(replace(message, tool_calls=calls, text=text) if given else message)
    return tuple(found)


def _old_kind(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """In format 1 only model calls name their operation."""
    if "agent_name" in reading.attributes and kind is SpanKind.OTHER:
        fields["agent"] = reading.text("agent", "agent_name")
        reading.note("kind", "agent_name")
        return SpanKind.AGENT
    return kind


def _events(reading: SpanReading) -> tuple[tuple[RawEvent, ...], str]:
    key = _CALL_EVENTS if _CALL_EVENTS in reading.attributes else _RUN_EVENTS
    return genai.events_in(reading.attributes.get(key)), f"{key}:"


def _run(found: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The messages up to the user's last one, and those after it."""
    last = max((i for i, message in enumerate(found) if message.role == "user" and message.text), default=-1)
    return found[: last + 1], found[last + 1 :]


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

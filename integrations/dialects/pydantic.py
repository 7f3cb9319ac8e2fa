"""Pydantic AI, and Logfire, which reports what Pydantic AI does in the same way.

An agent's span has all messages of its run under an attribute of its own, and its result under another. A result that
is an object is given to a pseudo-tool, which is no tool of the agent.
"""

from __future__ import annotations

import json

from msgspec.structs import replace

from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall

from . import genai, messages, unwrap
from .model_call import from_details
from .reading import Dialect, SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

_ALL, _BEGIN = "pydantic_ai.all_messages", "pydantic_ai.new_message_index"
_REQUEST, _RESULT = "model_request_parameters", "final_result"
_CALL_EVENTS, _RUN_EVENTS = "events", "all_messages_events"


def _by_pydantic_ai(raw: RawSpan) -> bool:
    return raw.scope_name == "pydantic-ai" or _ALL in raw.attributes


def _pydantic_ai(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Additions of Pydantic AI and Logfire to the conventions."""
    if "gen_ai.operation.name" not in reading.attributes and kind is not SpanKind.TOOL:
        kind = _old_kind(reading, kind, fields)
    if kind is SpanKind.TOOL and "tool" in fields:
        genai.complete_tool(reading, fields, "tool_arguments", "tool_response")
        return kind
    if not fields["input_messages"] and not fields["output_messages"]:
        contents = genai.read_events(reading, *_events(reading))
        requested, answered = contents.requested, contents.answered
        if kind is SpanKind.AGENT and isinstance(stated := unwrap.decoded(reading.value("input", _ALL)), list):
            begin = reading.attributes.get(_BEGIN)
            begin = begin if isinstance(begin, int) else 0
            requested, answered = _run(messages.read(stated[begin:]))
            requested = (*messages.read(stated[:begin]), *requested)
        instructions = fields["system_prompt"]
        fields |= messages.asked(requested) | messages.answered(answered)
        fields["system_prompt"] = instructions or fields["system_prompt"]
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
    listed = unwrap.entries(reading.attributes.get(_REQUEST)).get("output_tools")
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


def _says(message: Message) -> bool:
    return bool(message.text) or message.withheld


def _run(found: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The messages up to the user's last one, and those after it."""
    last = max((i for i, message in enumerate(found) if message.role == "user" and _says(message)), default=-1)
    return found[: last + 1], found[last + 1 :]


PYDANTIC_AI = genai.dialect(
    "pydantic_ai",
    _by_pydantic_ai,
    _pydantic_ai,
    switch="InstrumentationSettings(include_content=True)",
    reads="Pydantic AI: the GenAI conventions since format 2; before, old-style events as JSON in an attribute.",
)


_LOGFIRE = "logfire"
_LOGFIRE_SWITCH = "logfire.configure(scrubbing=False), or a scrubbing callback that keeps contents"

_STREAMING = frozenset({"logfire.openai", "logfire.anthropic"})
_TEMPLATE, _OWN_TAG = "logfire.msg_template", "LLM"


def _by_logfire(raw: RawSpan) -> bool:
    return raw.scope_name.partition(".")[0] == "logfire" or "logfire.span_type" in raw.attributes


def _normalise(raw: RawSpan) -> Span:
    """A Logfire span in normal form. A pending span is sent again when it has ended, so nothing is read from it."""
    if raw.attributes.get("logfire.span_type") == "pending_span":
        return SpanReading(raw).bare(_LOGFIRE)
    scrubbed = "logfire.scrubbed" in raw.attributes
    return genai.normalise(raw, name=_LOGFIRE, switch=_LOGFIRE_SWITCH if scrubbed else None, adapt=_logfire)


def _logfire(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Logfire adds the same attributes as Pydantic AI, and on other spans a template as the span's name.

    Its scrubber takes out values whose key or text looks like a secret, and ``session`` does. Under its instrumentation
    of the OpenAI Agents SDK only the template distinguishes an agent's run, a function and a hand-off.
    """
    if isinstance(tags := reading.attributes.get("logfire.tags"), list) and _OWN_TAG in tags:
        fields["tags"] = tuple(str(tag) for tag in tags if tag != _OWN_TAG)
    template = reading.text("template", _TEMPLATE) or reading.raw.name
    reading.provenance.pop("template", None)
    if reading.raw.scope_name == "logfire.openai_agents":
        if reading.attributes.get("group_id") != "null":  # which Logfire writes where there is none
            fields["session_id"] = reading.text("session_id", "group_id")
        kind = _agents_sdk(reading, template, kind, fields)
    if kind is SpanKind.LLM:
        _client(reading, fields)
        kind = _asked_for_stream(reading, kind, fields)
    kind = _pydantic_ai(reading, kind, fields)
    if kind is SpanKind.TOOL and reading.raw.scope_name == "logfire.claude_agent_sdk":
        fields["tool"], named = messages.delegated(fields["tool"])
        if named is not None:
            fields["agent"] = named
            reading.note("agent", "gen_ai.tool.call.arguments: subagent_type")
    if kind is SpanKind.AGENT:
        fields["input"] = fields["input"] or unwrap.task(reading.value("input", "input"))
    return kind


def _client(reading: SpanReading, fields: SpanFields) -> None:
    """The request and the response: of the Agents SDK, and of all calls in earlier versions."""
    for key in ("raw_input", "input", "request_data"):
        requested = () if fields["input_messages"] else messages.read(unwrap.decoded(reading.attributes.get(key)))
        if requested:
            fields |= {"input_messages": requested, "input": messages.last_text(requested, "user")}
            fields["system_prompt"] = fields["system_prompt"] or messages.system_text(requested)
            reading.note("input", key)
    for key in ("response", "output", "response_data"):
        answered = () if fields["output_messages"] else messages.read(unwrap.decoded(reading.attributes.get(key)))
        if answered:
            fields["output_messages"] = answered
            reading.note("output", key)
    if isinstance(response := unwrap.decoded(reading.attributes.get("response")), dict):
        fields["system_prompt"] = fields["system_prompt"] or as_text(response.get("instructions"))
    if isinstance(response := unwrap.decoded(reading.attributes.get("response_data")), dict):
        if "combined_chunk_content" in response and not fields["output_messages"]:
            # Of a stream it is the text alone: where there is none, the model may have called tools.
            text = as_text(response["combined_chunk_content"]) or ""
            fields["output_messages"] = (Message(role="assistant", text=text, withheld=not text),)
            reading.note("output", "response_data")
        if fields["usage"] is None and (used := from_details(response.get("usage"))) is not None:
            fields["usage"] = used
            reading.note("usage", "response_data")


def _asked_for_stream(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A client's request for a stream has a span of its own, without an answer: the record beside it is the call."""
    raw = reading.raw
    silent = fields["usage"] is None and fields["output"] is None and not fields["output_messages"]
    if not silent or raw.status_code == 2 or raw.scope_name not in _STREAMING or "logfire.scrubbed" in raw.attributes:
        return kind
    reading.note("kind", "no answer")
    return SpanKind.CHAIN


def _agents_sdk(reading: SpanReading, template: str, kind: SpanKind, fields: SpanFields) -> SpanKind:
    name = reading.text("agent" if template.startswith("Agent") else "tool.name", "name")
    if template.startswith(("Agent run", "Function", "Handoff")):
        reading.note("kind", _TEMPLATE)
    if template.startswith("Agent run"):
        fields["agent"] = name
        return SpanKind.AGENT
    if template.startswith("Function"):
        returned, given = reading.value("tool.result", "output"), reading.value("tool.arguments", "input")
        fields |= reading.tool_run(name or reading.raw.name, given, returned)
        return SpanKind.TOOL
    if template.startswith("Handoff"):
        target = reading.text("output", "to_agent") or ""
        called = messages.handoff_tool(target) if target else reading.raw.name
        fields |= {"tool": ToolCall(name=called, handoff=True), "output": target or None}
        reading.note("tool.name", "to_agent")
        fields["input"] = reading.text("input", "from_agent")
        return SpanKind.TOOL
    if kind is SpanKind.OTHER:
        reading.note("kind", _TEMPLATE)
        return SpanKind.CHAIN
    return kind


LOGFIRE = Dialect(
    name=_LOGFIRE,
    speaks=_by_logfire,
    by_names=True,
    normalise=_normalise,
    switch=_LOGFIRE_SWITCH,
    reads="Logfire: the GenAI conventions on model calls; elsewhere a template as the span's name, "
    "and plain attributes.",
)

"""Monocle: what a span is stands in ``span.type``, its parts in numbered entities, contents and tokens in events.

A model's messages are JSON texts of one entry each, the role with the text or the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json, Span, SpanKind

from . import messages, unwrap
from .model_call import usage, whole
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "monocle"

_TYPE, _SCOPE = "span.type", "monocle_apptrace"
_KINDS: Final = {
    "agentic.invocation": SpanKind.AGENT, "agentic.tool.invocation": SpanKind.TOOL,
    "agentic.mcp.invocation": SpanKind.TOOL, "inference": SpanKind.LLM, "inference.framework": SpanKind.LLM,
    "retrieval": SpanKind.RETRIEVER, "embedding": SpanKind.EMBEDDING,
}  # fmt: skip
"""By ``span.type``; those that are not listed (``workflow``, ``agentic.turn``, ``inference.modelapi``) are steps."""
_AGENT, _CALLER = "entity.1.name", "entity.1.from_agent"
_MODEL: Final = re.compile(r"(entity\.\d{1,3}\.)type")
_STREAMED: Final = frozenset({"langgraph_node"})
"""In LangGraph's metadata of a streamed chunk, which stand where the answer of a stream would."""
_IN, _OUT, _COUNTS = "data.input", "data.output", "metadata"


def speaks(raw: RawSpan) -> bool:
    """Whether Monocle made the span."""
    return raw.scope_name == _SCOPE and _TYPE in raw.attributes


def normalise(raw: RawSpan) -> Span:
    """A span of Monocle's in normal form. Of what failed the output is the error once more."""
    reading = SpanReading(raw)
    kind = _KINDS.get(str(reading.value("kind", _TYPE)), SpanKind.CHAIN)
    given = _held(reading, "input", _IN, "input")
    returned = None if raw.status_code == 2 else _held(reading, "output", _OUT, "response")
    fields: SpanFields = {}
    if kind is SpanKind.LLM:
        fields = _call(reading, given, returned)
    elif kind is SpanKind.TOOL:
        fields = reading.tool_run(reading.text("tool.name", _AGENT) or raw.name, given, returned)
    else:
        fields["input"] = messages.last_content(unwrap.task(_lone(given)), "user")
        fields["output"] = None if unwrap.entries(returned).keys() & _STREAMED else unwrap.plain(returned)
    if kind is SpanKind.AGENT:
        fields["agent"] = reading.text("agent", _AGENT)
        if fields["agent"] is not None and fields["agent"] == raw.attributes.get(_CALLER):
            kind = SpanKind.CHAIN  # a further turn of the same run
    return reading.span(NAME, kind, **fields)


def _held(reading: SpanReading, field: str, event: str, key: str) -> AttributeValue:
    """The value of an event's attribute; None where it is not there."""
    for each in reading.raw.events:
        if each.name == event and each.attributes.get(key) not in (None, ""):
            reading.note(field, f"event {event}: {key}")
            return each.attributes[key]
    return None


def _lone(value: AttributeValue) -> Json:
    """What an agent was asked stands in a list, which may be JSON."""
    held = unwrap.decoded(value)
    return held[0] if isinstance(held, list) and len(held) == 1 else held


def _call(reading: SpanReading, given: AttributeValue, returned: AttributeValue) -> SpanFields:
    requested = messages.read(list(_messages(given, "user")))
    fields = messages.asked(requested) | messages.answered(messages.read(list(_messages(returned, "assistant"))))
    for key, value in reading.attributes.items():
        if (numbered := _MODEL.fullmatch(key)) is not None and isinstance(value, str) and value.startswith("model."):
            fields["requested_model"] = reading.text("requested_model", f"{numbered[1]}name")
            break
    for event in reading.raw.events:
        if event.name == _COUNTS:
            counts = event.attributes
            fields["usage"] = usage(
                whole(counts.get("prompt_tokens")), whole(counts.get("completion_tokens")),
                whole(counts.get("cache_read_input_tokens")), None,
            )  # fmt: skip
            reading.note("usage", f"event {_COUNTS}: prompt_tokens")
    return fields


def _messages(value: AttributeValue, role: str) -> Iterator[Json]:
    """A message of each text: ``{"user": "…"}``, ``{"tools": […]}``, the output of a call; others are ``role``'s."""
    for each in map(unwrap.plain, value if isinstance(value, list) else [value]):
        held = unwrap.decoded(each)
        speaker = next(iter(held), "") if isinstance(held, dict) and len(held) == 1 else ""
        if not isinstance(held, dict):
            yield {"role": role, "content": each}
        elif isinstance(calls := held.get("tools"), list):
            yield {"role": "assistant", "content": None, "tool_calls": [_called(call) for call in calls]}
        elif "tool_function" in held:
            yield {"role": "assistant", "content": None, "tool_calls": [_called(held)]}
        elif "call_id" in held:
            yield {"role": "tool", "content": held.get("output"), "tool_call_id": held["call_id"]}
        elif isinstance(stated := held.get(speaker), dict) and "args" in stated:
            yield {"role": "assistant", "content": None, "tool_calls": [_called(stated)]}
        elif speaker not in messages.ROLES:
            yield {"role": role, "content": each}
        elif stated:
            yield {"role": speaker, "content": stated}


def _called(call: Json) -> Json:
    """A call of a tool in OpenAI's words."""
    held = call if isinstance(call, dict) else {}
    name = held.get("tool_name", held.get("tool_function", held.get("name")))
    given = held.get("tool_arguments", held.get("args"))
    return {
        "id": held.get("tool_id", held.get("call_id", held.get("id"))),
        "function": {"name": name, "arguments": given},
    }


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise)

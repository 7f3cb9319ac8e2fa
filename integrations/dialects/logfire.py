"""Logfire: the GenAI conventions on model calls; elsewhere a template as the span's name, and plain attributes.

Logfire's scrubber takes out values whose key or text looks like a secret, and ``session`` does. Under its
instrumentation of the OpenAI Agents SDK only the template distinguishes an agent's run, a function and a hand-off.
"""

from __future__ import annotations

import re

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall

from . import genai, messages, pydantic_ai, unwrap
from .model_call import from_details
from .reading import Dialect, SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

NAME = "logfire"
SWITCH = "logfire.configure(scrubbing=False), or a scrubbing callback that keeps contents"

_TEMPLATE, _OWN_TAG = "logfire.msg_template", "LLM"


def speaks(raw: RawSpan) -> bool:
    """Whether Logfire made the span."""
    return raw.scope_name.partition(".")[0] == "logfire" or "logfire.span_type" in raw.attributes


def normalise(raw: RawSpan) -> Span:
    """A Logfire span in normal form; of a pending one, which is sent again when it has ended, nothing is read."""
    if raw.attributes.get("logfire.span_type") == "pending_span":
        return SpanReading(raw).bare(NAME)
    scrubbed = "logfire.scrubbed" in raw.attributes
    return genai.normalise(raw, name=NAME, switch=SWITCH if scrubbed else None, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
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
    kind = pydantic_ai.adapt(reading, kind, fields)
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
            fields |= {"output_messages": answered, "output": messages.last_text(answered, "assistant")}
            reading.note("output", key)
    if isinstance(response := unwrap.decoded(reading.attributes.get("response")), dict):
        fields["system_prompt"] = fields["system_prompt"] or as_text(response.get("instructions"))
    if isinstance(response := unwrap.decoded(reading.attributes.get("response_data")), dict):
        if fields["output"] is None and isinstance(text := response.get("combined_chunk_content"), str):
            fields["output"] = text
            reading.note("output", "response_data")
        if fields["usage"] is None and (used := from_details(response.get("usage"))) is not None:
            fields["usage"] = used
            reading.note("usage", "response_data")


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
        # The SDK offers the hand-off to the model under this name, so that is what the messages call it.
        called = f"transfer_to_{re.sub(r'[^a-z0-9_]', '_', target.lower())}" if target else reading.raw.name
        fields |= {"tool": ToolCall(name=called, handoff=True), "output": target or None}
        reading.note("tool.name", "to_agent")
        fields["input"] = reading.text("input", "from_agent")
        return SpanKind.TOOL
    if kind is SpanKind.OTHER:
        reading.note("kind", _TEMPLATE)
        return SpanKind.CHAIN
    return kind


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

"""OpenTelemetry's GenAI conventions, in their current form and in the older one (to 1.36).

Contents are off by default. Where they are on, messages stand on the span (JSON text or structured), on a span
event, or in log records, which are joined to their spans as events before any dialect sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Span, SpanKind, ToolCall

from . import genai_events, messages, unwrap
from .fields import Fields, real, text, tokens
from .reading import Dialect, OwnMetadata, SpanReading, failure
from .span_fields import CONTENTS, SpanFields

NAME = "genai"
SWITCH = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only "
    "with OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
)

_KINDS = {
    "chat": SpanKind.LLM, "generate_content": SpanKind.LLM, "text_completion": SpanKind.LLM,
    "embeddings": SpanKind.EMBEDDING, "invoke_agent": SpanKind.AGENT, "execute_tool": SpanKind.TOOL,
    "retrieval": SpanKind.RETRIEVER, "search_memory": SpanKind.RETRIEVER, "create_agent": SpanKind.OTHER,
}  # fmt: skip
"""By ``gen_ai.operation.name``; operations that the conventions do not list are steps (CHAIN)."""
_KEYS = (
    ("gen_ai.tool.name", SpanKind.TOOL),
    ("gen_ai.request.model", SpanKind.LLM),
    ("gen_ai.response.model", SpanKind.LLM),
)
"""Other attributes by which the kind of a span is known, where it does not name its operation."""

_FIELDS = Fields(
    agent=text("gen_ai.agent.name"),
    model=text("gen_ai.response.model"),
    requested_model=text("gen_ai.request.model"),
    response_id=text("gen_ai.response.id"),
    usage=tokens(
        prompt=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        completion=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        cached=("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        reasoning=("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
    ),
    cost_usd=real("operation.cost", "gen_ai.usage.cost", "gen_ai.cost.total_cost"),
)
"""Input tokens include cached ones, as the conventions define."""

_NO_RUNS = ("create_agent", "invoke_workflow")
"""Operations whose spans may name an agent that they do not run: to make one, and what runs several."""
_NO_ROLE = (None, "", "unknown")


def speaks(raw: RawSpan) -> bool:
    """Whether the span carries any attribute or event of the conventions."""
    return any(key.startswith("gen_ai.") and key != "gen_ai.conversation.id" for key in raw.attributes) or any(
        event.name.startswith("gen_ai.") for event in raw.events
    )


Adapt: TypeAlias = Callable[[SpanReading, SpanKind, SpanFields], SpanKind]
"""Corrects, in place, the fields that were read of a span, and returns the span's true kind."""


def normalise(
    raw: RawSpan,
    *,
    name: str = NAME,
    switch: str | None = SWITCH,
    adapt: Adapt | None = None,
    own_metadata: OwnMetadata | None = None,
) -> Span:
    """A GenAI span in normal form; ``adapt`` is how a dialect that builds on the conventions departs from them."""
    reading = SpanReading(raw, own_metadata)
    operation = reading.text("kind", "gen_ai.operation.name")
    kind = _kind(reading, operation)
    contents = genai_events.EventContents() if kind is SpanKind.TOOL and _own_events(raw) else _read(reading)
    requested, answered = contents.requested, contents.answered
    fields = _FIELDS.read(reading)
    if operation in _NO_RUNS:
        fields["agent"] = None
        reading.provenance.pop("agent", None)
    fields |= {
        "input_messages": requested,
        "output_messages": answered,
        "input": messages.last_text(requested, "user"),
        "output": messages.last_text(answered, "assistant"),
        "system_prompt": _system(contents.instructions) or messages.system_text(requested),
    }
    if kind is SpanKind.AGENT and fields["agent"] is None and (named := raw.name.removeprefix("invoke_agent").strip()):
        fields["agent"] = named
        reading.note("agent", "span name")
    if kind is SpanKind.CHAIN:  # a workflow's state stands in its messages as JSON
        fields["input"] = messages.stated_in(unwrap.task(fields["input"]), "user")
    if kind is SpanKind.TOOL:
        fields |= _tool(reading)
    if kind is SpanKind.RETRIEVER:
        fields |= _retrieval(reading)
    if adapt is not None:
        kind = adapt(reading, kind, fields)
    if kind in {SpanKind.LLM, SpanKind.TOOL} and _is_silent(fields):
        fields["capture_switch"] = switch
    return reading.span(name, kind, **fields)


def _is_silent(fields: SpanFields) -> bool:
    for field in CONTENTS:  # noqa: SIM110 - a generator would cost more than the search
        if fields.get(field) not in (None, ()):
            return False
    return True


def _kind(reading: SpanReading, operation: str | None) -> SpanKind:
    if operation is not None:
        return _KINDS.get(operation, SpanKind.CHAIN)
    for key, kind in _KEYS:
        if key in reading.attributes:
            reading.note("kind", key)
            return kind
    reading.note("kind", "no operation")
    return SpanKind.OTHER


def _read(reading: SpanReading) -> genai_events.EventContents:
    """Messages from the span, else from its events; instructions from wherever they are."""
    requested = messages.read(unwrap.decoded(reading.value("input", genai_events.MESSAGES_IN)))
    answered = messages.read(_spoken(unwrap.decoded(reading.value("output", genai_events.MESSAGES_OUT))))
    contents = genai_events.EventContents(requested=requested, answered=answered)
    if not requested and not answered and reading.raw.events:
        contents = genai_events.read(reading, reading.raw.events)
    instructions = unwrap.decoded(reading.value("system_prompt", genai_events.INSTRUCTIONS))
    return replace(contents, instructions=instructions) if instructions else contents


def _spoken(stated: Json) -> Json:
    """A message without a role in a model's output is the assistant's."""
    if not isinstance(stated, list):
        return stated
    return [
        {**item, "role": "assistant"}
        if isinstance(item, dict) and item.get("role") in _NO_ROLE and "message" not in item  # of a choice of OpenAI's
        else item
        for item in stated
    ]


def _system(instructions: Json) -> str | None:
    """``gen_ai.system_instructions``: a list of parts, or text."""
    if isinstance(instructions, str):
        return instructions
    parts = messages.read({"role": "system", "parts": instructions}) if isinstance(instructions, list) else ()
    return messages.system_text(tuple(parts))


def _tool(reading: SpanReading) -> SpanFields:
    given = reading.value("tool.arguments", "gen_ai.tool.call.arguments")
    returned = reading.value("tool.result", "gen_ai.tool.call.result")
    error = failure(reading.raw)
    for event in reading.raw.events:
        if given is None and event.name == genai_events.TOOL:
            given = event.attributes.get("content")
            reading.note("tool.arguments", f"event {event.name}")
        elif (
            returned is None and error is None and event.name == genai_events.CHOICE
        ):  # of a failure it is the error again
            returned = event.attributes.get("message")
            reading.note("tool.result", f"event {event.name}")
    outcome = unwrap.result(returned)
    name = reading.text("tool.name", "gen_ai.tool.name")
    tool = ToolCall(
        name=name or reading.raw.name.removeprefix("execute_tool").strip() or reading.raw.name,
        arguments=unwrap.arguments(given),
        result=outcome.result,
        error=error or outcome.error,
        call_id=reading.text("tool.call_id", "gen_ai.tool.call.id") or outcome.call_id,
    )
    return {"tool": tool, "input": tool.arguments, "output": tool.result}


def complete_tool(reading: SpanReading, fields: SpanFields, given: str, returned: str) -> None:
    """Fill in what the conventions' attributes left open of a tool, from those that a dialect has for it."""
    tool: ToolCall = fields["tool"]
    if tool.arguments is None:
        tool = replace(tool, arguments=unwrap.arguments(reading.value("tool.arguments", given)))
    if tool.result is None and tool.error is None:
        outcome = unwrap.result(reading.value("tool.result", returned))
        tool = replace(tool, result=outcome.result, error=outcome.error, call_id=tool.call_id or outcome.call_id)
    fields |= {"tool": tool, "input": tool.arguments, "output": tool.result}


def _own_events(raw: RawSpan) -> bool:
    """Whether a tool's own span reports its run by the older form's events.

    There they are no conversation: the tool's message is what went in, the choice is what came out.
    """
    return any(event.name in (genai_events.TOOL, genai_events.CHOICE) for event in raw.events)


def _retrieval(reading: SpanReading) -> SpanFields:
    held = reading.value("documents", "gen_ai.retrieval.documents")
    return {
        "input": reading.text("input", "gen_ai.retrieval.query.text"),
        "documents": unwrap.documents(held) if held is not None else (),
    }


DIALECT = Dialect(name=NAME, speaks=speaks, normalise=normalise, switch=SWITCH)

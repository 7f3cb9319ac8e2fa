"""OpenTelemetry's GenAI conventions: the current form, and what the older one holds on spans.

Contents are off by default. Where they are on, messages stand on the span (JSON text or structured) or on a span
event; contents that travel in log records are not joined yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from integrations.raw import AttributeValue, RawSpan
from scoring.span import Json, Message, Span, SpanKind, ToolCall, Usage

from . import messages, unwrap
from .reading import Dialect, Reading, failure
from .usage import usage

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

_MESSAGES_IN, _MESSAGES_OUT = "gen_ai.input.messages", "gen_ai.output.messages"
_EVENT_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip
_TOOL_GIVEN, _TOOL_RETURNED = "gen_ai.tool.message", "gen_ai.choice"
"""Events by which Strands tells, on a tool's own span, what it was given and what it returned."""


def speaks(raw: RawSpan) -> bool:
    """Whether the span carries any attribute of the conventions."""
    return any(key.startswith("gen_ai.") and key != "gen_ai.conversation.id" for key in raw.attributes)


def lift(raw: RawSpan) -> Span:
    """A GenAI span in normal form."""
    reading = Reading(raw)
    kind = _kind(reading)
    asked, answered = ((), ()) if kind is SpanKind.TOOL and _own_events(raw) else _messages(reading)
    system = _system(reading) or messages.system_text(asked)
    fields: dict[str, object] = {
        "agent": reading.text("agent", "gen_ai.agent.name"),
        "model": reading.text("model", "gen_ai.response.model"),
        "requested_model": reading.text("requested_model", "gen_ai.request.model"),
        "response_id": reading.text("response_id", "gen_ai.response.id"),
        "usage": _usage(reading),
        "cost_usd": reading.real("cost_usd", "operation.cost", "gen_ai.usage.cost", "gen_ai.cost.total_cost"),
        "input_messages": asked,
        "output_messages": answered,
        "input": messages.last_text(asked, "user"),
        "output": messages.last_text(answered, "assistant"),
        "system_prompt": system,
    }
    if kind is SpanKind.AGENT and fields["agent"] is None:
        named = raw.name.removeprefix("invoke_agent").strip()
        fields["agent"] = named or raw.name
        reading.note("agent", "span name")
    if kind is SpanKind.TOOL:
        fields |= _tool(reading)
    if kind is SpanKind.RETRIEVER:
        fields |= _retrieval(reading)
    if kind in {SpanKind.LLM, SpanKind.TOOL} and not asked and not answered and fields.get("input") is None:
        fields["capture_switch"] = SWITCH
    if not asked and not answered and fields.get("input") is None and fields.get("output") is None:
        fields["unread"] = reading.unread()
    return reading.span(NAME, kind, **fields)


def _kind(reading: Reading) -> SpanKind:
    operation = reading.text("kind", "gen_ai.operation.name")
    if operation is not None:
        return _KINDS.get(operation, SpanKind.CHAIN)
    if "gen_ai.tool.name" in reading.attributes:
        return SpanKind.TOOL
    if "gen_ai.request.model" in reading.attributes or "gen_ai.response.model" in reading.attributes:
        return SpanKind.LLM
    return SpanKind.OTHER


def _messages(reading: Reading) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Messages in and out, from the span, else from its events (both forms of the conventions used events)."""
    asked = messages.read(unwrap.decoded(reading.value("input", _MESSAGES_IN)))
    answered = messages.read(unwrap.decoded(reading.value("output", _MESSAGES_OUT)))
    if asked or answered:
        return asked, answered
    old_in: list[Message] = []
    old_out: list[Message] = []
    for event in reading.raw.events:
        if event.name == "gen_ai.client.inference.operation.details":
            # One event may tell both, or one the question and another the answer.
            asked = messages.read(unwrap.decoded(event.attributes.get(_MESSAGES_IN))) or asked
            answered = messages.read(unwrap.decoded(event.attributes.get(_MESSAGES_OUT))) or answered
        elif (role := _EVENT_ROLES.get(event.name)) is not None:
            old_in += messages.read(_old_message(event.attributes, role))
        elif event.name == "gen_ai.choice":
            held = unwrap.decoded(event.attributes.get("message"))
            inner = held if isinstance(held, dict) else {"content": held}
            old_out += messages.read({"role": "assistant", **inner})
        else:
            continue
        reading.note("input", f"event {event.name}")
        reading.note("output", f"event {event.name}")
    return asked or tuple(old_in), answered or tuple(old_out)


def _old_message(attributes: Mapping[str, AttributeValue], role: str) -> Json:
    """An event of the older form: its attributes are the message, apart from the role, which is in its name."""
    body = {key: unwrap.decoded(value) for key, value in attributes.items()}
    if role == "tool":
        return {"role": role, "content": body.get("content"), "tool_call_id": body.get("id")}
    return {**body, "role": role}


def _system(reading: Reading) -> str | None:
    """``gen_ai.system_instructions``: a list of parts, or text."""
    found = unwrap.decoded(reading.value("system_prompt", "gen_ai.system_instructions"))
    if isinstance(found, str):
        return found
    parts = messages.read({"role": "system", "parts": found}) if isinstance(found, list) else ()
    return messages.system_text(tuple(parts))


def _tool(reading: Reading) -> dict[str, object]:
    given = reading.value("tool.arguments", "gen_ai.tool.call.arguments")
    returned = reading.value("tool.result", "gen_ai.tool.call.result")
    error = failure(reading.raw)
    for event in reading.raw.events:
        if given is None and event.name == _TOOL_GIVEN:
            given = event.attributes.get("content")
            reading.note("tool.arguments", f"event {event.name}")
        elif returned is None and error is None and event.name == _TOOL_RETURNED:  # of a failure it is the error again
            returned = event.attributes.get("message")
            reading.note("tool.result", f"event {event.name}")
    outcome = unwrap.result(returned)
    name = reading.text("tool.name", "gen_ai.tool.name")
    tool = ToolCall(
        name=name or reading.raw.name.removeprefix("execute_tool").strip() or reading.raw.name,
        arguments=unwrap.arguments(given),
        result=_only_text(outcome.result),
        error=error or outcome.error,
        call_id=reading.text("tool.call_id", "gen_ai.tool.call.id") or outcome.call_id,
    )
    return {"tool": tool, "input": tool.arguments, "output": tool.result}


def _own_events(raw: RawSpan) -> bool:
    """Whether a tool's own span tells of its run by the older form's events.

    There they are no conversation: the tool's message is what went in, the choice is what came out.
    """
    return any(event.name in (_TOOL_GIVEN, _TOOL_RETURNED) for event in raw.events)


def _only_text(result: Json) -> Json:
    """Strands wraps what a tool returns in parts, ``[{"text": …}]``; of a lone text the wrapper comes off."""
    match result:
        case [{"text": str(text), **others}] if not others:
            return text
    return result


def _retrieval(reading: Reading) -> dict[str, object]:
    held = reading.value("documents", "gen_ai.retrieval.documents")
    return {
        "input": reading.text("input", "gen_ai.retrieval.query.text"),
        "documents": unwrap.documents(held) if held is not None else (),
    }


def _usage(reading: Reading) -> Usage | None:
    """Input tokens include cached ones, as the conventions say."""
    return usage(
        reading.whole("usage", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        reading.whole("usage", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        reading.whole(
            "usage.cached_input", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"
        ),
        reading.whole(
            "usage.reasoning_output", "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"
        ),
    )


DIALECT = Dialect(name=NAME, speaks=speaks, lift=lift)

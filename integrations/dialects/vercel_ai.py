"""Vercel AI SDK: versions up to 6 in words of their own (``ai.*``), from 7 on in the GenAI conventions.

The SDK knows no agents: ``functionId`` names a call of ``generateText`` and the like, and from version 7 on every such
call claims to be an agent's run. It is taken for one where the model was offered tools: from 7 on the spans below the
one that has the name list what was offered.
"""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.below import IF_OFFERED
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Usage

from . import genai, messages, unwrap
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "vercel_ai"
SWITCH = "recordInputs: true and recordOutputs: true in the call's telemetry settings"

_OPERATION = "ai.operationId"
_SCOPES = frozenset({"ai", "gen_ai"})
"""The SDK's own scope, and, from version 7, the conventions' scope."""
_ANSWER = ("ai.response.text", "ai.response.object")
_RESULTS = ("ai.toolCall.result", "gen_ai.tool.call.result")
_BY_OPENINFERENCE = "openinference.span.kind"
"""What OpenInference's processor adds to a span of the SDK's."""


def speaks(raw: RawSpan) -> bool:
    """Whether the AI SDK made the span."""
    return _OPERATION in raw.attributes or raw.scope_name in _SCOPES


def normalise(raw: RawSpan) -> Span:
    """An AI SDK span in normal form."""
    if _OPERATION not in raw.attributes:
        return genai.normalise(raw, name=NAME, switch=SWITCH, adapt=_adapt)
    reading = SpanReading(with_own_status(raw))
    operation = reading.text("kind", _OPERATION) or ""
    if operation == "ai.toolCall":
        return reading.span(NAME, SpanKind.TOOL, **_tool(reading))
    if operation.endswith((".doGenerate", ".doStream")):
        return reading.span(NAME, SpanKind.LLM, **_call(reading))
    if operation.startswith(("ai.embed", "ai.rerank")):
        return reading.span(NAME, SpanKind.EMBEDDING, usage=_usage(reading))
    return reading.span(NAME, SpanKind.CHAIN, **_whole(reading))


def with_own_status(raw: RawSpan) -> RawSpan:
    """The span without the error of another: OpenInference's processor gives the first one to all that end after it.

    What failed by itself has recorded what was raised, or has no outcome. A step (``agent_step``) never has one.
    """
    held = raw.attributes
    if raw.status_code != 2 or raw.scope_name not in _SCOPES or _BY_OPENINFERENCE not in held:
        return raw
    reasons = held.get("ai.response.finishReason") or held.get("gen_ai.response.finish_reasons")
    ended = isinstance(reasons, str | list | tuple) and bool(reasons) and "error" not in reasons
    went_well = ended or not held.keys().isdisjoint(_RESULTS) or held.get("gen_ai.operation.name") == "agent_step"
    if not went_well or any(event.name == "exception" for event in raw.events):
        return raw
    return replace(raw, status_code=1, status_message="")


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Version 7."""
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        returned = unwrap.from_json(reading.attributes.get("gen_ai.tool.call.result"))
        if isinstance(returned, str) and tool.error is None:
            fields |= {"tool": replace(tool, result=returned), "output": returned}
    if kind is SpanKind.AGENT:
        reading.note("kind", IF_OFFERED)
    return kind


def _whole(reading: SpanReading) -> SpanFields:
    """``generateText`` and its like around their calls; the usage there is the last call's, and is left out."""
    prompt = unwrap.decoded(reading.value("input", "ai.prompt"))
    requested: Json = prompt
    system: Json = None
    if isinstance(prompt, dict):
        system = prompt.get("system")
        requested = prompt.get("prompt") or messages.last_content(prompt.get("messages"), "user")
        requested = messages.last_content(requested, "user")
    answer = reading.text("output", *_ANSWER)
    called = reading.text("finish_reason", "ai.response.finishReason") == "tool-calls"
    return {
        "input": requested,
        "output": answer,
        "finish_reason": "tool_calls" if called else None,  # any other is the last call's
        "system_prompt": system if isinstance(system, str) else _moved_system(reading),
        "capture_switch": SWITCH if prompt is None and answer is None else None,
    }


def _call(reading: SpanReading) -> SpanFields:
    requested = messages.read(unwrap.decoded(reading.value("input", "ai.prompt.messages")))
    asked = messages.asked(requested)
    text = reading.text("output", *_ANSWER) or ""
    listed = unwrap.decoded(reading.value("output.tool_calls", "ai.response.toolCalls"))
    calls = messages.calls(listed if isinstance(listed, list) else [])
    sent = calls or not reading.attributes.keys().isdisjoint(_ANSWER)  # an empty answer is one
    answered = (Message(role="assistant", text=text, tool_calls=calls),) if sent else ()
    offered = reading.attributes.get("ai.prompt.tools")
    return {
        "agent": reading.text("agent", "ai.telemetry.functionId") if offered else None,
        **asked,
        **messages.answered(answered),
        "system_prompt": asked["system_prompt"] or _moved_system(reading),
        "model": reading.text("model", "ai.response.model", "gen_ai.response.model"),
        "requested_model": reading.text("requested_model", "ai.model.id", "gen_ai.request.model"),
        "response_id": reading.text("response_id", "ai.response.id", "gen_ai.response.id"),
        "usage": _usage(reading),
        "capture_switch": None if requested or answered else SWITCH,
    }


def _moved_system(reading: SpanReading) -> str | None:
    """Sentry's SDK moves the instructions out of the SDK's attributes, and a tool's name and id (``_tool``)."""
    return genai.system_text(unwrap.decoded(reading.value("system_prompt", genai.INSTRUCTIONS)))


def _tool(reading: SpanReading) -> SpanFields:
    returned = unwrap.from_json(reading.value("tool.result", "ai.toolCall.result"))
    outcome = unwrap.ToolResult(result=returned) if isinstance(returned, str) else unwrap.result(returned)
    given = reading.value("tool.arguments", "ai.toolCall.args", "ai.toolCall.input")
    name = reading.text("tool.name", "ai.toolCall.name", "gen_ai.tool.name") or reading.raw.name
    call_id = reading.text("tool.call_id", "ai.toolCall.id", "gen_ai.tool.call.id")
    fields = reading.tool_run(name, given, outcome, call_id=call_id)
    return fields | {"capture_switch": SWITCH if given is None and returned is None else None}


def _usage(reading: SpanReading) -> Usage | None:
    return reading.tokens(
        "usage",
        ("gen_ai.usage.input_tokens", "ai.usage.inputTokens", "ai.usage.promptTokens"),
        ("gen_ai.usage.output_tokens", "ai.usage.outputTokens", "ai.usage.completionTokens"),
        ("ai.usage.cachedInputTokens",),
        ("ai.usage.reasoningTokens",),
    )


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

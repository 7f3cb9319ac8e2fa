"""OpenLLMetry (Traceloop): decorators state kind, name, input and output of a step; model calls follow conventions.

Calls by versions before the conventions stand in ``openllmetry_old``, what LangChain, LlamaIndex and CrewAI make
of it in ``openllmetry_langchain``, ``openllmetry_llamaindex`` and ``openllmetry_crewai``.
"""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall

from . import genai, messages, openllmetry_crewai, openllmetry_langchain, openllmetry_llamaindex, unwrap
from .reading import Dialect, SpanReading, failure
from .span_fields import SpanFields

NAME = "openllmetry"
SWITCH = "TRACELOOP_TRACE_CONTENT=true"

_KIND, _NAME = "traceloop.span.kind", "traceloop.entity.name"
_IN, _OUT = "traceloop.entity.input", "traceloop.entity.output"
_KINDS = {"workflow": SpanKind.CHAIN, "task": SpanKind.CHAIN, "agent": SpanKind.AGENT, "tool": SpanKind.TOOL}
_SCOPES = frozenset(
    f"opentelemetry.instrumentation.{library}"
    for library in (
        "openai.v1", "openai.v0", "openai_agents", "langchain", "llamaindex", "haystack", "anthropic", "bedrock",
        "crewai.instrumentation", "cohere", "groq", "mistralai", "ollama", "together", "replicate", "watsonx",
        "google_generativeai",
    )
)  # fmt: skip
_FRAMEWORKS: dict[str, genai.Adapt] = {
    "opentelemetry.instrumentation.langchain": openllmetry_langchain.adapt,
    "opentelemetry.instrumentation.llamaindex": openllmetry_llamaindex.adapt,
    "opentelemetry.instrumentation.crewai.instrumentation": openllmetry_crewai.adapt,
}


def speaks(raw: RawSpan) -> bool:
    """Whether OpenLLMetry made the span."""
    return (
        raw.scope_name in _SCOPES
        or raw.scope_name.startswith("traceloop.")
        or any(key.startswith("traceloop.") for key in raw.attributes)
    )


def normalise(raw: RawSpan) -> Span:
    """An OpenLLMetry span in normal form."""
    return genai.normalise(raw, name=NAME, switch=SWITCH, adapt=adapt)


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A decorator's span states what was run, whichever operation stands beside it."""
    stated = reading.text("traceloop.kind", _KIND)
    reading.provenance.pop("traceloop.kind", None)
    if stated in _KINDS:
        kind = _KINDS[stated]
        reading.note("kind", _KIND)
    elif stated is not None and kind is SpanKind.OTHER:
        kind = SpanKind.CHAIN
        reading.note("kind", _KIND)
    if (framework := _FRAMEWORKS.get(reading.raw.scope_name)) is not None:
        return framework(reading, kind, fields)
    if kind is SpanKind.TOOL:
        _tool(reading, fields)
    elif stated is not None:
        given, returned = unwrap.written(reading.value("input", _IN)), unwrap.written(reading.value("output", _OUT))
        if given is not None:
            fields["input"] = messages.last_content(unwrap.task(given), "user")
        if returned is not None:
            fields["output"] = returned if isinstance(returned, str) else messages.last_content(returned, "assistant")
    if kind is SpanKind.AGENT:
        fields["agent"] = reading.text("agent", "gen_ai.agent.name", _NAME) or reading.raw.name.removesuffix(".agent")
    return kind


def _tool(reading: SpanReading, fields: SpanFields) -> None:
    tool: ToolCall = fields.get("tool") or ToolCall(name=reading.raw.name, error=failure(reading.raw))
    name = reading.text("tool.name", "gen_ai.tool.name", _NAME) or reading.raw.name.removesuffix(".tool")
    returned = unwrap.written(reading.attributes.get(_OUT))
    if tool.result is None and isinstance(returned, str):
        tool = replace(tool, result=returned)
        reading.note("tool.result", _OUT)
    fields["tool"] = replace(tool, name=name)
    genai.complete_tool(reading, fields, _IN, _OUT)
    match fields["tool"].arguments:
        case {"tool_name": named, "arguments": dict(given), **others} if named == name and not others:  # MCP's request
            fields |= {"tool": replace(fields["tool"], arguments=given), "input": given}


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

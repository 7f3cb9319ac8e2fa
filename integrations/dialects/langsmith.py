"""LangSmith's exporter: a run's inputs and outputs as JSON under ``gen_ai.prompt`` and ``gen_ai.completion``.

The same two attributes serve chains, tools and model calls. An agent is known by the ``lc_agent_name`` among the
metadata of all its steps; LangChain puts settings of the model among the metadata of calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Span, SpanKind, Usage

from . import messages, unwrap
from .model_call import usage, whole
from .reading import Dialect, SpanReading, failure
from .span_fields import SpanFields

NAME = "langsmith"
SWITCH = "LANGSMITH_HIDE_INPUTS=false and LANGSMITH_HIDE_OUTPUTS=false"

_KINDS = {
    "llm": SpanKind.LLM, "tool": SpanKind.TOOL, "retriever": SpanKind.RETRIEVER, "embedding": SpanKind.EMBEDDING,
    "chain": SpanKind.CHAIN, "prompt": SpanKind.CHAIN, "parser": SpanKind.CHAIN,
}  # fmt: skip
_KIND, _IN, _OUT = "langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion"
_NODE, _START = "langsmith.metadata.langgraph_node", "__start__"
"""A step that runs no agent: of LangGraph in JavaScript it is all that the exporter sends of a run, failed or not."""
_SYSTEM = ("system", "instructions")
"""Where Anthropic's requests and OpenAI's Responses have the instructions, beside the messages."""
_MADE_BY, _CLAUDE_AGENT = "langsmith.metadata.ls_integration", "claude-agent-sdk"
_ROLE, _METHOD = "langsmith.metadata.ls_agent_type", "langsmith.metadata.ls_method"
_SETTINGS = frozenset({"model", "model_name", "stream", "temperature", "_type", "usage_metadata", "max_tokens", "stop"})
_PRINTED_ERROR = re.compile(r"(?:\w+: )?(\w+)\(([\"'])(.{0,2000})\2\)", re.DOTALL)
"""An exception as Python prints it, which is how a run's error is kept."""


def speaks(raw: RawSpan) -> bool:
    """Whether LangSmith made the span."""
    return _KIND in raw.attributes or raw.scope_name == "langsmith"


def normalise(raw: RawSpan) -> Span:
    """A LangSmith run in normal form."""
    reading = SpanReading(raw)
    kind = _KINDS.get((reading.text("kind", _KIND) or "").lower(), SpanKind.OTHER)
    if kind is SpanKind.LLM:
        reading.own_metadata = _without_settings
    given, returned = unwrap.decoded(reading.value("input", _IN)), unwrap.decoded(reading.value("output", _OUT))
    hidden = not given and not returned  # hidden contents are sent as empty maps, a failed run's output too
    given, returned = None if hidden else given, returned or None
    fields: SpanFields = {
        "agent": reading.text("agent", "langsmith.metadata.lc_agent_name", "gen_ai.agent.name"),
        "error": _error(raw),
        "trace_name": reading.text("trace_name", "langsmith.trace.name") if raw.parent_id is None else None,
    }
    if reading.attributes.get(_NODE) == _START:
        reading.no_agent(fields)
    if kind is SpanKind.TOOL:
        fields |= _tool(reading, given, returned, fields["error"])
    elif kind is SpanKind.LLM:
        fields |= _call(reading, given, returned)
    else:
        if kind is SpanKind.CHAIN and _of_claude(reading):
            kind, given = SpanKind.AGENT, _claude_agent(reading, fields, given)
        fields["input"] = messages.last_content(unwrap.only_text(unwrap.task(given)), "user")
        fields["output"] = messages.last_content(unwrap.answer(returned), "assistant")
        if kind is SpanKind.RETRIEVER and returned is not None:
            fields["documents"] = unwrap.documents(returned)
    if given is None and returned is None and kind in {SpanKind.LLM, SpanKind.TOOL}:
        fields["capture_switch"] = SWITCH
    return reading.span(NAME, kind, **fields)


def _of_claude(reading: SpanReading) -> bool:
    """Whether a run of the Claude Agent SDK made the span: functions called within one inherit its metadata."""
    return reading.attributes.get(_MADE_BY) == _CLAUDE_AGENT and reading.attributes.get(_METHOD) != "traceable"


def _claude_agent(reading: SpanReading, fields: SpanFields, given: Json) -> Json:
    """The prompt of a run of the Claude Agent SDK, whose steps are runs of agents; one that a tool ran has a name."""
    reading.note("kind", _MADE_BY)
    if reading.attributes.get(_ROLE) == "subagent":
        fields["agent"] = reading.span_name("agent")
    if not isinstance(given, dict) or "prompt" not in given:
        return given
    fields["system_prompt"] = unwrap.as_text(given.get("system"))
    return given["prompt"]


def _without_settings(metadata: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in metadata.items() if key not in _SETTINGS}


def _error(raw: RawSpan) -> str | None:
    """An exception is recorded of a failed run alone.

    JavaScript's exporter states success when a run begins, which OpenTelemetry's SDK lets nothing change.
    """
    raised = any(event.name == "exception" for event in raw.events)
    error = failure(replace(raw, status_code=2) if raised else raw)
    printed = _PRINTED_ERROR.fullmatch(error) if error else None
    return f"{printed[1]}: {printed[3]}" if printed else error


def _tool(reading: SpanReading, given: Json, returned: Json, error: str | None) -> SpanFields:
    name = reading.text("tool.name", "gen_ai.tool.name") or reading.span_name("tool.name")
    call_id = reading.text("tool.call_id", "gen_ai.tool.call.id")
    return reading.tool_run(name, given, returned, error=error, call_id=call_id)


def _call(reading: SpanReading, given: Json, returned: Json) -> SpanFields:
    requested, answered = messages.read(given), messages.read(returned)
    fields = messages.asked(requested) | messages.answered(answered)
    fields["input"] = fields["input"] or unwrap.task(given)
    if fields["system_prompt"] is None and isinstance(given, dict):
        stated = next((given[key] for key in _SYSTEM if given.get(key)), None)
        fields["system_prompt"] = messages.system_text(messages.read({"role": "system", "content": stated}))
    if not answered:
        fields["output"] = unwrap.answer(returned)
    elif not messages.hold_something(answered):
        fields["output"] = ""
    return fields | {
        "model": reading.text("model", "gen_ai.response.model") or _model(reading, returned),
        "requested_model": reading.text("requested_model", "gen_ai.request.model"),
        "response_id": reading.text("response_id", "gen_ai.response.id"),
        "usage": _usage(reading),
    }


def _model(reading: SpanReading, returned: Json) -> str | None:
    """The model that answered: in OpenAI's response, or in the metadata of LangChain's first generation."""
    match returned:
        case {"generations": [[{"message": {"kwargs": {"response_metadata": {"model_name": str(named)}}}}, *_], *_]}:
            reading.note("model", _OUT)
        case {"model": str(named)}:
            reading.note("model", _OUT)
        case _:
            return None
    return named or None


def _usage(reading: SpanReading) -> Usage | None:
    """LangChain's own count shows what was cached; input includes it."""
    held = unwrap.entries(reading.value("usage.cached_input", "langsmith.metadata.usage_metadata"))
    cached, reasoned = held.get("input_token_details"), held.get("output_token_details")
    return usage(
        reading.whole("usage", "gen_ai.usage.input_tokens"),
        reading.whole("usage", "gen_ai.usage.output_tokens"),
        whole(cached.get("cache_read")) if isinstance(cached, dict) else None,
        whole(reasoned.get("reasoning")) if isinstance(reasoned, dict) else None,
    )


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

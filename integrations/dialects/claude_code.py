"""Claude Code's own telemetry: the GenAI conventions for names, words of its own for tokens, events for contents.

An interaction's prompt is an attribute, its answer a log record; a tool's output is an event on its span. Tokens of the
input leave cached ones out. Agents have no names.
"""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall

from . import genai, unwrap
from .model_call import usage
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "claude_code"
SWITCH = "OTEL_LOG_USER_PROMPTS=1, OTEL_LOG_TOOL_DETAILS=1 and OTEL_LOG_TOOL_CONTENT=1"

_ANSWER, _OUTPUT = "assistant_response", "tool.output"


def speaks(raw: RawSpan) -> bool:
    """Whether Claude Code made the span."""
    return raw.scope_name.startswith("com.anthropic.claude_code")


def normalise(raw: RawSpan) -> Span:
    """A span of Claude Code in normal form."""
    return genai.normalise(raw, name=NAME, switch=SWITCH, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    if kind is SpanKind.AGENT:
        reading.no_agent(fields)
        fields["input"] = reading.text("input", "user_prompt")
        for event in reading.raw.events:
            if event.name == _ANSWER and isinstance(stated := event.attributes.get("response"), str):
                fields["output"] = stated
                reading.note("output", f"event {_ANSWER}: response")
    elif kind is SpanKind.LLM:
        cached = reading.whole("usage.cached_input", "cache_read_tokens") or 0
        prompt = reading.whole("usage", "input_tokens")
        if prompt is not None:
            prompt += cached + (reading.whole("usage.cached_input", "cache_creation_tokens") or 0)
        fields["usage"] = usage(prompt, reading.whole("usage", "output_tokens"), cached, None)
    elif kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        if tool.arguments is None:
            tool = replace(tool, arguments=unwrap.arguments(reading.value("tool.arguments", "tool_input")))
        for event in reading.raw.events:
            if event.name == _OUTPUT and tool.result is None and tool.error is None:
                tool = replace(tool, result=unwrap.result(event.attributes.get("output")).result)
                reading.note("tool.result", f"event {_OUTPUT}: output")
        fields |= {"tool": tool, "input": tool.arguments, "output": tool.result}
    return kind


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

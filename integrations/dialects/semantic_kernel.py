"""Semantic Kernel: the GenAI conventions to 1.36, messages in log records with the body as JSON text.

A tool is called ``plugin-function``, in spans and in messages; the function is what the application calls it. To an
agent that is used as a function SK adds an argument of its own.
"""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall

from . import genai
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "semantic_kernel"
SWITCH = "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true"

_ADDED = "instructions_override"


def speaks(raw: RawSpan) -> bool:
    """Whether Semantic Kernel made the span."""
    return raw.scope_name.startswith("semantic_kernel")


def normalise(raw: RawSpan) -> Span:
    """A Semantic Kernel span in normal form."""
    return genai.normalise(raw, name=NAME, switch=SWITCH, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    for field in ("input_messages", "output_messages"):
        fields[field] = tuple(_renamed(message) for message in fields[field])
    if (tool := fields.get("tool")) is not None:
        fields["tool"] = _own_name(tool)
        fields["input"] = fields["tool"].arguments
    if kind is SpanKind.OTHER:  # AutoFunctionInvocationLoop
        reading.note("kind", "scope")
        return SpanKind.CHAIN
    return kind


def _renamed(message: Message) -> Message:
    return replace(message, tool_calls=tuple(map(_own_name, message.tool_calls))) if message.tool_calls else message


def _own_name(call: ToolCall) -> ToolCall:
    """A plugin's name has no hyphen, so what follows the first one is the function's."""
    arguments = call.arguments
    if isinstance(arguments, dict) and arguments.get(_ADDED, ...) is None:
        arguments = {key: value for key, value in arguments.items() if key != _ADDED}
    return replace(call, name=call.name.partition("-")[2] or call.name, arguments=arguments)


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

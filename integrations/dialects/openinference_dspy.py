"""Where DSPy bends OpenInference: fields of a signature as inputs and outputs, an agent's trajectory among them."""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.scoring.trace.span import Json, SpanKind, ToolCall

from . import unwrap
from .reading import SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

_OWN_FIELDS = frozenset({"trajectory", "reasoning"})
_FINISH = "finish"
"""The pseudo-tool that an agent calls when it has finished."""


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    if kind is SpanKind.LLM:
        reading.model_requested_for(fields)
    elif kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        name = tool.name.removesuffix(".__call__").removesuffix(".acall")
        if name == _FINISH and not tool.arguments:
            del fields["tool"]
            return SpanKind.CHAIN
        fields["tool"] = replace(tool, name=name)
    elif kind is SpanKind.CHAIN:
        fields["input"] = _field(reading.attributes.get("input.value"), fields.get("input"))
        fields["output"] = _field(reading.attributes.get("output.value"), fields.get("output"))
    return kind


def _field(value: unwrap.Content, otherwise: Json) -> Json:
    """The only field that DSPy did not add itself, if it is a text; else all of it."""
    found = unwrap.decoded(value)
    if isinstance(found, dict) and found.keys() == {"input_args"}:
        found = found["input_args"]
    if not isinstance(found, dict):
        return otherwise
    own = [held for name, held in found.items() if name not in _OWN_FIELDS]
    return as_text(own[0]) or otherwise if len(own) == 1 else otherwise

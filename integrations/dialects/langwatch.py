"""LangWatch: the GenAI conventions for model and tokens; kinds, inputs and outputs are read by their shapes.

A model is called as LiteLLM calls it, with its provider before it: ``openai/gpt-4o-mini``.
"""

from __future__ import annotations

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind

from . import genai
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "langwatch"


def speaks(raw: RawSpan) -> bool:
    """Whether LangWatch's SDK made the span."""
    return raw.scope_name == "langwatch" or "langwatch.span.type" in raw.attributes


def normalise(raw: RawSpan) -> Span:
    """A span of LangWatch in normal form, but for what the reader by shape adds."""
    return genai.normalise(raw, name=NAME, switch=None, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    for field in ("model", "requested_model"):
        if isinstance(named := fields.get(field), str):
            fields[field] = named.partition("/")[2] or named
    if kind is SpanKind.LLM and "langwatch.span.type" in reading.attributes:
        reading.note("kind", "langwatch.span.type")
    return kind


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise)

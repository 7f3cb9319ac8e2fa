"""Strands Agents and AgentCore: the GenAI conventions, messages in span events in Bedrock's shape.

What a tool was given and what it returned are events on its span too. An agent's answer is its messages printed, each
with a line break behind it. There is no switch for contents: they are always sent.
"""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind

from . import genai
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "strands"

_SYSTEM, _PROVIDER = "gen_ai.system", "gen_ai.provider.name"


def speaks(raw: RawSpan) -> bool:
    """Whether Strands made the span."""
    attributes = raw.attributes
    return raw.scope_name.startswith("strands.") or "strands-agents" in (
        attributes.get(_SYSTEM),
        attributes.get(_PROVIDER),
    )


def normalise(raw: RawSpan) -> Span:
    """A Strands span in normal form."""
    return genai.normalise(raw, name=NAME, switch=None, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    del reading
    if kind is SpanKind.AGENT and isinstance(fields["output"], str):
        fields["output"] = fields["output"].rstrip("\n")
        fields["output_messages"] = tuple(replace(m, text=m.text.rstrip("\n")) for m in fields["output_messages"])
    return kind


DIALECT = Dialect(name=NAME, speaks=speaks, normalise=normalise)

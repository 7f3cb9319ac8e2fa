"""OpenLIT: the GenAI conventions, with what it makes of hand-offs, of LangGraph's nodes and of Anthropic's tokens."""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind, Usage

from . import genai
from .langgraph_nodes import NODE, UNNAMED
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "openlit"
SWITCH = "capture_message_content=True (openlit.init)"

_NODES = frozenset({NODE, "model"})
"""The node that asks the model, as LangGraph and LangChain's ``create_agent`` call it."""


def speaks(raw: RawSpan) -> bool:
    """Whether OpenLIT made the span."""
    return raw.scope_name == "openlit" or raw.scope_name.startswith("openlit.")


def normalise(raw: RawSpan) -> Span:
    """An OpenLIT span in normal form."""
    return genai.normalise(raw, name=NAME, switch=SWITCH, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    attributes = reading.attributes
    of_langgraph = reading.raw.scope_name.endswith(".langgraph")
    if kind is SpanKind.AGENT and ("gen_ai.agent.source" in attributes or (of_langgraph and fields["agent"] in _NODES)):
        # A hand-off appears as a run of the agent that it goes to, which has one of its own; a node is no agent.
        reading.no_agent(fields)
        return SpanKind.CHAIN
    if of_langgraph and attributes.get("gen_ai.workflow.name", UNNAMED) != UNNAMED:
        fields["agent"] = reading.text("agent", "gen_ai.workflow.name")
        kind = SpanKind.CHAIN
    if reading.raw.scope_name == NAME and not fields["output_messages"]:
        # A function of the application's: its result stands where messages do.
        fields["output"] = reading.text("output", "gen_ai.output.messages")
    used: Usage | None = fields["usage"]
    if used is not None and attributes.get("gen_ai.provider.name") == "anthropic":
        written = reading.whole("usage.cache_creation", "gen_ai.usage.cache_creation.input_tokens") or 0
        fields["usage"] = replace(used, input=used.input + used.cached_input + written)
    return kind


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

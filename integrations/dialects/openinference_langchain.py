"""Where LangChain and LangGraph bend OpenInference: an AGENT is whatever has *agent* in its name.

That is a node ``agent`` of each graph that LangGraph made of an agent, and not the graph; what that was called stands
in the node's message, and in the metadata the path of graphs that it lies in. A stream's model is the requested one.
"""

from __future__ import annotations

import re

from scoring.trace.span import SpanKind

from . import langgraph_nodes, unwrap
from .reading import SpanReading
from .span_fields import SpanFields

_MODEL = re.compile(r'"response_metadata": ?\{[^{}]*"model_name": ?"([^"\\]{1,100})"')


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    if kind is SpanKind.LLM:
        returned = reading.attributes.get("output.value")
        if isinstance(returned, str) and (answering := _MODEL.search(returned)):
            requested = fields.get("model")
            fields["requested_model"] = fields.get("requested_model") or (
                requested if requested != answering[1] else None
            )
            if fields["requested_model"] == requested and (source := reading.provenance.get("model")):
                reading.note("requested_model", source)
            fields["model"] = answering[1]
            reading.note("model", "output.value: response_metadata")
    elif kind is SpanKind.AGENT and reading.raw.name in langgraph_nodes.OWN_STEPS:
        fields["agent"] = None
        reading.provenance.pop("agent", None)
        return SpanKind.CHAIN
    elif kind is SpanKind.AGENT and reading.raw.name == langgraph_nodes.NODE and _named_by_span(reading):
        _name(reading, fields)
        return SpanKind.CHAIN
    return kind


def _named_by_span(reading: SpanReading) -> bool:
    return reading.provenance.get("agent") in (None, "span name")


def _name(reading: SpanReading, fields: SpanFields) -> None:
    """The agent by its message, else by the graph that the node lies in, else by the node."""
    if (named := langgraph_nodes.speaker(reading.attributes.get("output.value"))) is not None:
        source = "output.value: name"
    else:
        metadata = unwrap.decoded(reading.attributes.get("metadata"))
        path = metadata.get("langgraph_checkpoint_ns") if isinstance(metadata, dict) else None
        named, source = langgraph_nodes.graph(path), "metadata: langgraph_checkpoint_ns"
    fields["agent"] = named or langgraph_nodes.NODE
    reading.note("agent", source if named else "span name")

"""Where LangChain and LangGraph bend OpenInference: an AGENT is whatever has *agent* in its name.

That is a node ``agent`` of each graph that LangGraph made of an agent, and not the graph; what that was called stands
in the node's message, and in the metadata the path of graphs that it lies in. A stream's model is the requested one.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from sidejudge.scoring.trace.span import SpanKind

from . import langgraph_nodes, unwrap
from .reading import SpanReading
from .span_fields import SpanFields

_MODEL = re.compile(r'"response_metadata": ?\{(?:[^{}]|\{[^{}]*+\})*?"model_name": ?"([^"\\]{1,100})"')

_JAVASCRIPT_ERROR = re.compile(r"(.{1,1000})\n\n(\w*Error): \1\n +at ", re.DOTALL)
"""An error's message, then its stack, which begins with the same message."""


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
    _graph(reading, kind, fields)
    if kind is SpanKind.TOOL and (tool := fields["tool"]).error and (traced := _JAVASCRIPT_ERROR.match(tool.error)):
        fields["tool"] = replace(tool, error=f"{traced[2]}: {traced[1]}")
    if kind is SpanKind.AGENT and reading.raw.name in langgraph_nodes.OWN_STEPS:
        reading.no_agent(fields)
        return SpanKind.CHAIN
    if kind is SpanKind.AGENT and reading.raw.name == langgraph_nodes.NODE and _named_by_span(reading):
        _name(reading, fields)
        return SpanKind.CHAIN
    return kind


def _graph(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> None:
    """An agent's name that is its caller's gives way to that of the graph."""
    metadata = unwrap.decoded(reading.attributes.get("metadata"))
    if not isinstance(metadata, dict) or "langgraph_node" not in metadata:
        return
    node, path, named = metadata["langgraph_node"], metadata.get("langgraph_checkpoint_ns"), fields.get("agent")
    state = reading.attributes.get("input.value") if kind is not SpanKind.TOOL else None
    agent = langgraph_nodes.own_name(named, reading.raw.name, node, path, state)
    if agent != named:
        fields["agent"] = agent
        reading.note("agent", "span name") if agent else reading.provenance.pop("agent", None)


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

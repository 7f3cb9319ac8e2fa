"""Where LangChain and LangGraph bend OpenInference: an AGENT is whatever has *agent* in its name.

That is a node ``agent`` of each graph that LangGraph made of an agent, and not the graph; the path of graphs that it
lies in is in the metadata. A stream's model is the one that was asked for.
"""

from __future__ import annotations

import re
from typing import Any

from scoring.span import SpanKind

from . import unwrap
from .reading import Reading

_NODE = "agent"
"""What LangGraph calls the node that asks the model, in every graph that it makes of an agent."""
_NO_AGENTS = frozenset({"tools", "__start__"})
_OWN_STEPS = frozenset({"call_agent", "route_to_active_agent"})
"""Functions of ``langgraph_supervisor`` and ``langgraph_swarm``."""
_MODEL = re.compile(r'"response_metadata": ?\{[^{}]*"model_name": ?"([^"\\]{1,100})"')


def adapt(reading: Reading, kind: SpanKind, fields: dict[str, Any]) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    if kind is SpanKind.LLM:
        returned = reading.attributes.get("output.value")
        if isinstance(returned, str) and (answering := _MODEL.search(returned)):
            asked = fields.get("model")
            fields["requested_model"] = fields.get("requested_model") or (asked if asked != answering[1] else None)
            if fields["requested_model"] == asked and (source := reading.provenance.get("model")):
                reading.note("requested_model", source)
            fields["model"] = answering[1]
            reading.note("model", "output.value: response_metadata")
    elif kind is SpanKind.AGENT and reading.raw.name in _OWN_STEPS:
        return _step(reading, fields, None)
    elif (
        kind is SpanKind.AGENT and reading.raw.name == _NODE and reading.provenance.get("agent") in (None, "span name")
    ):
        return _step(reading, fields, _graph(reading) or _NODE)
    return kind


def _step(reading: Reading, fields: dict[str, Any], agent: str | None) -> SpanKind:
    fields["agent"] = agent
    if agent is None:
        reading.provenance.pop("agent", None)
    else:
        reading.note("agent", "metadata: langgraph_checkpoint_ns" if agent != _NODE else "span name")
    return SpanKind.CHAIN


def _graph(reading: Reading) -> str | None:
    """The name of the graph that a node lies in: ``supervisor:…|research:…|agent:…``; None for the outermost."""
    metadata = unwrap.decoded(reading.attributes.get("metadata"))
    path = metadata.get("langgraph_checkpoint_ns") if isinstance(metadata, dict) else None
    nodes = [part.partition(":")[0] for part in path.split("|")] if isinstance(path, str) else []
    return nodes[-2] if len(nodes) > 1 and nodes[-2] not in _NO_AGENTS and nodes[-2] else None

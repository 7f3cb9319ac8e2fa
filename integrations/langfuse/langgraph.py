"""LangGraph by way of Langfuse 4: whose step is whose, where one agent calls another.

Langfuse's LangChain handler writes an agent's name (``lc_agent_name``) into the metadata of all its steps, and that of
the outermost agent into the trace's. Version 4 keeps one map of both, in which the trace's entry covers the step's: so
all steps seem to be the outermost agent's. Which graph a step belongs to is given by its checkpoint namespace as well,
``tools:ID|model:ID`` for a step ``model`` of a graph that a step ``tools`` called; that graph's own span has the
namespace of the step that called it, and bears the name that the agent was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue, RawSpan

_METADATA: Final = "langfuse.observation.metadata."
_AGENT, _NAMESPACE = f"{_METADATA}lc_agent_name", f"{_METADATA}langgraph_checkpoint_ns"
_UNNAMED: Final = "LangGraph"
"""The default name of a graph."""
_HIGHEST: Final = 50
"""Levels from a step up to its graph that are looked at; between the two lie a few wrappers."""


def with_agents(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """The spans of a trace, the steps of graphs within graphs under the names of these.

    Spans that name different agents, or none, are left as they are: nothing covers them.
    """
    if len({_text(span.attributes.get(_AGENT)) for span in spans if _AGENT in span.attributes}) != 1:
        return list(spans)
    by_id = {span.span_id: span for span in spans}
    namespaces = {span.span_id: _text(span.attributes.get(_NAMESPACE)) for span in spans}
    agents: dict[str, str] = {}
    for span in spans:
        called, inner, _ = namespaces[span.span_id].rpartition("|")
        above = islice(_above(span, by_id), _HIGHEST) if inner else iter(())
        graph = next((each for each in above if namespaces[each.span_id] == called), None)
        if graph is not None and graph.name not in ("", _UNNAMED) and _AGENT in graph.attributes:
            agents[span.span_id] = agents[graph.span_id] = graph.name
    return [_named(span, agents[span.span_id]) if span.span_id in agents else span for span in spans]


def _above(span: RawSpan, by_id: Mapping[str, RawSpan]) -> Iterator[RawSpan]:
    """The ancestors of a span; a circle ends where it begins to repeat."""
    seen = {span.span_id}
    while (parent := by_id.get(span.parent_id or "")) is not None and parent.span_id not in seen:
        span = parent
        seen.add(span.span_id)
        yield span


def _text(value: AttributeValue) -> str:
    """A text, or the text that is written as JSON (SDKs from version 5 on)."""
    if not isinstance(value, str):
        return ""
    try:
        read = json.loads(value) if value.startswith('"') else value
    except ValueError:
        return value
    return read if isinstance(read, str) else value


def _named(span: RawSpan, agent: str) -> RawSpan:
    quoted = str(span.attributes.get(_AGENT)).startswith('"')
    return replace(span, attributes={**span.attributes, _AGENT: json.dumps(agent) if quoted else agent})

"""LangGraph's nodes: the agent of a step, in the same way for all instrumentations."""

from __future__ import annotations

from sidejudge.scoring.trace.span import Json

from . import messages
from .unwrap import Content, decoded

NODE = "agent"
"""LangGraph's name for the node that asks the model, in every graph of an agent."""
UNNAMED = "LangGraph"
"""LangGraph's name for an unnamed graph."""
OWN_STEPS = frozenset({"call_agent", "route_to_active_agent"})
"""Functions of ``langgraph_supervisor`` and ``langgraph_swarm``, which only have *agent* in their names."""
_TOOLS = "tools"
_NO_AGENTS = frozenset({_TOOLS, "__start__", ""})


def speaker(output: Content) -> str | None:
    """The name under which a node's message appears: that which the graph was given when it was made of an agent."""
    stated = (message for message in messages.read(decoded(output)) if message.role == "assistant")
    return next((message.name for message in stated if message.name), None)


def graph(path: Json) -> str | None:
    """The graph that a node lies in, by its checkpoint namespace ``supervisor:…|research:…|agent:…``.

    None for the outermost, and for one that a tool runs.
    """
    nodes = [part.partition(":")[0] for part in path.split("|")] if isinstance(path, str) else []
    return nodes[-2] if len(nodes) > 1 and nodes[-2] not in _NO_AGENTS else None


def own_name(named: str | None, span: str, node: Json, path: Json, requested: Content | None = None) -> str | None:
    """The agent of a span, where its metadata name one; inside a tool that may be the caller's name.

    LangChain for JavaScript hands its metadata on to the graph that a tool runs. There the graph's own span, which is
    none of the node's steps and is given a state, has the agent's name; the spans below it are that agent's.
    """
    nodes = [part.partition(":")[0] for part in path.split("|")] if isinstance(path, str) else []
    if len(nodes) > 1 and nodes[-2] == _TOOLS:
        return None
    if node == _TOOLS and span not in (_TOOLS, UNNAMED) and not span.startswith("Runnable"):
        state = decoded(requested)
        return span if isinstance(state, dict) and isinstance(state.get("messages"), list) else named
    return named

"""Where LangChain and LangGraph bend OpenLLMetry: runs wrapped once more, and agents called by their runs' names.

A graph's run appears twice, as an ``invoke_agent`` without contents and as a workflow or task; the latter has, among
its association properties, the agent's true name. Inputs carry the run's tags and metadata along.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from sidejudge.scoring.trace.span import Json, SpanKind, ToolCall

from . import labels, messages, unwrap
from .langgraph_nodes import UNNAMED
from .reading import SpanReading, as_text, failure
from .span_fields import SpanFields

_IN, _OUT = "traceloop.entity.input", "traceloop.entity.output"
_AGENT = "traceloop.association.properties.lc_agent_name"
_NODES = frozenset({"agent", "tools", "pre_model_hook", "post_model_hook", "generate_structured_response"})
_CONTEXT: Final[tuple[Literal["session_id", "user_id"], ...]] = ("session_id", "user_id")
_OWN_METADATA = ("ls_", "lc_", "langgraph_", "checkpoint_", "__")


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    given, returned = _map(reading, "input", _IN), _map(reading, "output", _OUT)
    fields["agent"] = as_text(unwrap.plain(reading.value("agent", _AGENT)))
    if kind is SpanKind.AGENT and fields["agent"] is None:
        fields["agent"] = _graph_of_an_agent(reading)
        if fields["agent"] is None:
            kind = SpanKind.CHAIN  # the twin without contents
    elif (
        kind is SpanKind.CHAIN and fields["agent"] and reading.attributes.get("gen_ai.operation.name") == "invoke_agent"
    ):
        kind = SpanKind.AGENT
    if kind is SpanKind.TOOL:
        fields |= _tool(reading, given, returned, fields.get("tool"))
    elif given or returned:
        fields["input"] = messages.last_content(unwrap.task(given.get("inputs")), "user")
        answer = returned.get("outputs")
        fields["output"] = answer if isinstance(answer, str) else messages.last_content(answer, "assistant")
    _labels(reading, given, fields)
    return kind


def _graph_of_an_agent(reading: SpanReading) -> str | None:
    """The name of a graph that LangGraph made of an agent, recognised by its nodes: ``agent`` asks the model.

    A graph of LangChain's ``create_agent`` calls that node ``model``, and is called by its run's name here; the agent's
    true name stands on the spans below it.
    """
    nodes = unwrap.plain(reading.attributes.get("gen_ai.workflow.nodes"))
    named = as_text(unwrap.plain(reading.attributes.get("gen_ai.agent.name")))
    if not isinstance(nodes, list) or "agent" not in nodes:
        return None
    if not _NODES.issuperset(map(str, nodes)) or named == UNNAMED:
        return None
    reading.note("agent", "gen_ai.agent.name")
    return named


def _map(reading: SpanReading, field: str, key: str) -> dict[str, Json]:
    found = unwrap.written(reading.value(field, key))
    return found if isinstance(found, dict) else {}


def _tool(reading: SpanReading, given: dict[str, Json], returned: dict[str, Json], held: ToolCall | None) -> SpanFields:
    """Arguments stand under ``inputs``, and under ``input_str`` as Python prints them."""
    tool = held or ToolCall(name=reading.text("tool.name", "traceloop.entity.name") or reading.raw.name)
    arguments = given.get("inputs") or unwrap.arguments(given.get("input_str"))
    outcome = unwrap.result(returned.get("output"))
    tool = replace(
        tool, arguments=arguments, result=outcome.result, error=failure(reading.raw) or outcome.error,
        call_id=tool.call_id or outcome.call_id,
    )  # fmt: skip
    return {"tool": tool, "input": tool.arguments, "output": tool.result}


def _labels(reading: SpanReading, given: dict[str, Json], fields: SpanFields) -> None:
    """The application's metadata of the run; LangGraph's own tags and metadata are among it."""
    metadata = given.get("metadata")
    if tags := labels.tags_of(given.get("tags")):
        fields["tags"] = tags
        reading.note("tags", _IN)
    if isinstance(metadata, dict):
        for field in _CONTEXT:
            fields[field] = as_text(metadata.get(field))
        kept = {k: v for k, v in metadata.items() if not k.startswith(_OWN_METADATA) and k not in _CONTEXT}
        if kept:
            fields["metadata"] = kept
            reading.note("metadata", _IN)

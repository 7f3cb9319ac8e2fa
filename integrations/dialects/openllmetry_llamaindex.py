"""Where LlamaIndex bends OpenLLMetry: every step of a workflow is a task of one name, recognised by its output.

A step that ran a tool names it and its arguments; one of an agent names the agent. The request is in the output of the
first step.
"""

from __future__ import annotations

from sidejudge.scoring.trace.span import Json, SpanKind, ToolCall

from . import messages, unwrap
from .reading import SpanReading, as_text, failure
from .span_fields import SpanFields

_OUT = "traceloop.entity.output"


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    returned = unwrap.written(reading.value("output", _OUT))
    out = returned if isinstance(returned, dict) else {}
    tool = as_text(unwrap.plain(reading.attributes.get("tool.name"))) or as_text(out.get("tool_name"))
    if kind is not SpanKind.CHAIN or "traceloop.span.kind" not in reading.attributes:
        return kind
    if tool is not None and ("tool_output" in out or "raw_output" in out or "tool.name" in reading.attributes):
        fields |= _tool(reading, tool, out)
        return SpanKind.TOOL
    if (agent := as_text(out.get("current_agent_name"))) is not None:
        fields["agent"] = agent
        reading.note("agent", f"{_OUT}: current_agent_name")
    ended = out.get("result")
    stated = ended if isinstance(ended, dict) else out
    fields["output"] = messages.last_text(messages.read(stated.get("response")), "assistant") or returned
    if isinstance(requested := out.get("input"), list):
        fields["output"] = None
        fields["input"] = messages.last_text(messages.read(requested), "user")
        reading.note("input", f"{_OUT}: input")
    return kind


def _tool(reading: SpanReading, name: str, out: dict[str, Json]) -> SpanFields:
    held = out.get("tool_output", out)
    given = out.get("tool_kwargs") or (held.get("raw_input") if isinstance(held, dict) else None)
    if given is not None:
        reading.note("tool.arguments", f"{_OUT}: arguments")
    else:
        given = unwrap.plain(reading.value("tool.arguments", "tool.arguments", "traceloop.entity.input"))
    outcome = unwrap.result(held)
    reading.note("tool.name", "tool.name" if "tool.name" in reading.attributes else f"{_OUT}: tool_name")
    tool = ToolCall(
        name=name, arguments=unwrap.arguments(given), result=outcome.result,
        error=failure(reading.raw) or outcome.error, call_id=as_text(out.get("tool_id")),
    )  # fmt: skip
    return {"tool": tool, "input": tool.arguments, "output": tool.result}

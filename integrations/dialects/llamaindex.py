"""LlamaIndex's own OpenTelemetry: steps with printed events, cut at 200 characters, and model calls in span events.

Model calls are read by their shapes. Here stand a tool's span, whose call is the event that its step was given, and
the agent that a step's event names, where that was not cut off.
"""

from __future__ import annotations

import re

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall

from . import pyrepr, unwrap
from .reading import Dialect, SpanReading, failure

NAME = "llamaindex"

_SCOPE = "llamaindex.opentelemetry.tracer"
_TOOL = re.compile(r"\w*Tool\.a?call")
_GIVEN = "llamaindex.step.input_summary"
_STEP = "step.output"
_AGENT = re.compile(r"current_agent_name='([^'\\]{1,200})'")


def speaks(raw: RawSpan) -> bool:
    """Whether the span is a tool's or a step's of LlamaIndex."""
    return raw.scope_name == _SCOPE and (_TOOL.fullmatch(raw.name) is not None or _printed(raw) is not None)


def normalise(raw: RawSpan) -> Span:
    """A tool's span or a step in normal form."""
    reading = SpanReading(raw)
    if _TOOL.fullmatch(raw.name):
        reading.note("kind", "span name")
        tool = _tool(reading)
        return reading.span(NAME, SpanKind.TOOL, tool=tool, input=tool.arguments)
    named = _AGENT.search(_printed(raw) or "")
    if named:
        reading.note("agent", f"event {_STEP}: current_agent_name")
    reading.note("kind", f"event {_STEP}")
    return reading.span(NAME, SpanKind.CHAIN, agent=named[1] if named else None)


def _printed(raw: RawSpan) -> str | None:
    held = next((event.attributes.get("output") for event in raw.events if event.name == _STEP), None)
    return held if isinstance(held, str) else None


def _tool(reading: SpanReading) -> ToolCall:
    """The call in the printed event ``ToolCall(tool_name='…', tool_kwargs={…}, tool_id='…')``."""
    printed = reading.text("tool.name", _GIVEN) or ""
    error = failure(reading.raw)
    held = pyrepr.printed(printed)
    if not isinstance(held, dict) or not isinstance(name := held.get("tool_name"), str):
        return ToolCall(name=reading.raw.name.partition(".")[0], error=error)
    call_id = held.get("tool_id")
    reading.note("tool.arguments", _GIVEN)
    return ToolCall(
        name=name, arguments=unwrap.arguments(held.get("tool_kwargs")), error=error,
        call_id=call_id if isinstance(call_id, str) else None,
    )  # fmt: skip


DIALECT = Dialect(name=NAME, speaks=speaks, normalise=normalise)

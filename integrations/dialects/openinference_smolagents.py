"""Where smolagents bend OpenInference: all arguments of a call as its input, and pseudo-tools for answers."""

from __future__ import annotations

import json
import re

from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue
from sidejudge.scoring.trace.span import Json, Message, SpanKind, ToolCall

from . import messages, pyrepr, unwrap
from .reading import SpanReading
from .span_fields import SpanFields

_FINAL_ANSWER = "final_answer"
_TOOLS = "smolagents.tools_names"
_ANSWERING_MODEL = re.compile(r", model='([^'\\]{1,100})', object='")
_STREAMED_ANSWER = ")FinalAnswerStep(output="
"""A streaming agent's output is everything it yielded, printed one after the other; the answer is the last."""


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Inputs are all arguments of the call; an agent's answer is given to a pseudo-tool, which is no tool of it."""
    given = unwrap.decoded(reading.attributes.get("input.value"))
    if kind is SpanKind.AGENT:
        if "agent.name" not in reading.attributes:
            fields["agent"] = reading.raw.name.removesuffix(".run")
        if isinstance(given, dict) and isinstance(task := given.get("task"), str):
            fields["input"] = task
        if (offered := _offered(reading.attributes.get(_TOOLS))) is not None:
            fields["tool_definitions"] = offered
            reading.note("tool_definitions", _TOOLS)
        _, streamed, last = str(fields.get("output")).rpartition(_STREAMED_ANSWER)
        if streamed:
            fields["output"] = _final(last.removesuffix(")"))
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        if tool.name in {_FINAL_ANSWER, "FinalAnswerTool"}:
            del fields["tool"]
            return SpanKind.CHAIN
        if (named := _named(given, reading.attributes.get("tool.parameters"))) is not None:
            fields["tool"] = replace(tool, arguments=named)
            fields["input"] = named
    fields["output_messages"] = tuple(map(_without_final_answer, fields.get("output_messages", ())))
    if kind is SpanKind.LLM:
        fields["output"] = messages.last_text(fields["output_messages"], "assistant") or fields.get("output")
        _answering(reading, fields)
    return kind


def _offered(names: AttributeValue) -> tuple[str] | None:
    """The names of an agent's tools as one text. Spans name tools by their classes, so these are no declarations."""
    known = [name for name in names if name != _FINAL_ANSWER] if isinstance(names, list | tuple) else []
    return (json.dumps(known),) if known else None


def _named(given: Json, parameters: AttributeValue) -> dict[str, Json] | None:
    """The arguments of a call by their names: those without one are given in the order of the tool's parameters."""
    if not isinstance(given, dict) or not isinstance(kwargs := given.get("kwargs"), dict):
        return None
    args, names = given.get("args"), unwrap.decoded(parameters)
    if not args:
        return kwargs
    if not isinstance(args, list) or not isinstance(names, dict) or len(args) > len(names):
        return None
    return dict(zip(names, args, strict=False)) | kwargs


def _answering(reading: SpanReading, fields: SpanFields) -> None:
    """The model that answered stands in the printed response alone."""
    reading.model_requested_for(fields)
    returned = unwrap.decoded(reading.attributes.get("output.value"))
    raw = returned.get("raw") if isinstance(returned, dict) else None
    if isinstance(raw, str) and (models := _ANSWERING_MODEL.findall(raw)):
        fields["model"] = models[-1]
        reading.note("model", "output.value: raw")


def _final(printed: str) -> Json:
    """The answer as printed, itself a repr."""
    try:
        read = pyrepr.read(f"[{printed}]")
    except (pyrepr.UnreadableError, RecursionError):
        return printed
    return read[0] if isinstance(read, list) and len(read) == 1 else printed


def _without_final_answer(message: Message) -> Message:
    """The input of the pseudo-tool is the answer."""
    calls = tuple(call for call in message.tool_calls if call.name != _FINAL_ANSWER)
    if len(calls) == len(message.tool_calls):
        return message
    given = next(call.arguments for call in message.tool_calls if call.name == _FINAL_ANSWER)
    answer = given.get("answer") if isinstance(given, dict) else given
    return replace(message, tool_calls=calls, text=answer if isinstance(answer, str) else message.text)

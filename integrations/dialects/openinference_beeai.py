"""Where BeeAI bends OpenInference: events are spans of their own, and answers are given to a pseudo-tool."""

from __future__ import annotations

import json
import re
from typing import Final, Literal

from msgspec.structs import replace

from sidejudge.scoring.trace.span import Message, SpanKind, ToolCall, Usage

from . import messages, unwrap
from .reading import SpanReading, failure
from .span_fields import SpanFields

_FINAL_ANSWER = "final_answer"
_CAUSE = re.compile(r"^ {0,40}(\w{1,100})\(([\w.]{1,200})\): ", re.MULTILINE)
"""How BeeAI prints an exception and its causes, each below the one that it led to."""
_OF_STEP: Final[tuple[Literal["agent", "tool", "input", "output"], ...]] = ("agent", "tool", "input", "output")


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    attributes = reading.attributes
    held = unwrap.decoded(attributes.get("metadata"))
    given = held if isinstance(held, dict) else {}
    # What it notes of a run, under keys that begin like metadata, is none of the application's.
    reading.own_metadata = lambda found: {key: found[key] for key in given if key in found}
    if "metadata.path" in attributes and "metadata.class_name" not in attributes:
        for field in _OF_STEP:
            fields.pop(field, None)
        reading.provenance.pop("agent", None)
        return SpanKind.CHAIN
    if kind is SpanKind.LLM:
        _call(reading, fields)
        return kind
    _contents(reading, kind, fields)
    return _tool(fields) if kind is SpanKind.TOOL else kind


def _contents(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> None:
    """Inputs are all arguments of the run; a failure's output is the exception."""
    match unwrap.decoded(reading.attributes.get("input.value")):
        case {"input": held, **others} if not isinstance(held, list) and (others or kind is SpanKind.TOOL):
            fields["input"] = held
        case {"state": {"inputs": [{"prompt": str(requested)}, *_]}}:
            fields["input"] = requested
    match unwrap.decoded(reading.attributes.get("output.value")):
        case {"final_answer": str(answer)} if kind is SpanKind.CHAIN:
            fields["output"] = answer
    if (cause := _cause(reading)) is not None:
        fields |= {"error": cause, "output": None}


def _tool(fields: SpanFields) -> SpanKind:
    tool: ToolCall = fields["tool"]
    if tool.name == _FINAL_ANSWER:
        del fields["tool"]
        return SpanKind.CHAIN
    if (cause := fields.get("error")) is not None:
        tool = replace(tool, result=None, error=cause)
    fields["tool"] = replace(tool, arguments=fields["input"])
    return SpanKind.TOOL


def _call(reading: SpanReading, fields: SpanFields) -> None:
    """The model is the requested one; cached tokens stand in BeeAI's own notes."""
    reading.model_requested_for(fields)
    used: Usage | None = fields.get("usage")
    cached = reading.whole("usage.cached_input", "metadata.usage.cached_prompt_tokens")
    if used is not None and cached:
        fields["usage"] = replace(used, cached_input=cached)
    fields["output_messages"] = tuple(map(_stated, fields["output_messages"]))
    fields["output"] = messages.last_text(fields["output_messages"], "assistant") or fields.get("output")


def _stated(message: Message) -> Message:
    """The input of the pseudo-tool is the answer; arguments that run into another call's stand on the tool's span."""
    calls = tuple(
        replace(call, arguments=None) if isinstance(call.arguments, str) else call
        for call in message.tool_calls if call.name != _FINAL_ANSWER
    )  # fmt: skip
    text = message.text
    for call in message.tool_calls:
        match call.arguments if call.name == _FINAL_ANSWER else None:
            case {"response": str(answer), **others} if not others:
                text = answer
            case dict(answer):
                text = json.dumps(answer, ensure_ascii=False)
    return replace(message, tool_calls=calls, text=text)


def _cause(reading: SpanReading) -> str | None:
    """The error of a failed run: the last exception that its output prints."""
    printed = reading.attributes.get("output.value")
    if not isinstance(printed, str) or failure(reading.raw) is None or not (found := list(_CAUSE.finditer(printed))):
        return None
    kind, module = found[-1].groups()
    reading.note("error", "output.value")
    return f"{kind if module == 'builtins' else f'{module}.{kind}'}: {printed[found[-1].end() :].strip()}"

"""Corrections of OpenInference for frameworks whose agents answer through a pseudo-tool: smolagents, DSPy, BeeAI.

Each function corrects the fields of a span in place, and returns its true kind. The pseudo-tool is no tool of the
agent: its span is a step, and its arguments are the answer.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal

from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue
from sidejudge.scoring.trace.span import Json, Message, SpanKind, ToolCall, Usage

from . import messages, pyrepr, unwrap
from .reading import SpanReading, failure
from .span_fields import SpanFields
from .unwrap import as_text

_FINAL_ANSWER = "final_answer"
_TOOLS = "smolagents.tools_names"
_ANSWERING_MODEL = re.compile(r", model='([^'\\]{1,100})', object='")
_STREAMED_ANSWER = ")FinalAnswerStep(output="
"""A streaming agent's output is everything it yielded, printed one after the other; the answer is the last."""
_MODEL_FAILED = "AgentGenerationError"
"""The only error of a step that the agent raises too; the span of a run that raises is never ended."""
_NAMES_ALONE = re.compile(r"\s*(?:\[\[ ## \w+ ## \]\]\s*)+")
_OWN_FIELDS = frozenset({"trajectory", "reasoning"})
_FINISH = "finish"
"""The pseudo-tool that an agent calls when it has finished."""
_CAUSE = re.compile(r"^ {0,40}(\w{1,100})\(([\w.]{1,200})\): ", re.MULTILINE)
"""How BeeAI prints an exception and its causes, each below the one that it led to."""
_OF_STEP: Final[tuple[Literal["agent", "tool", "input", "output"], ...]] = ("agent", "tool", "input", "output")


def smolagents(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """All arguments of a call are its input in smolagents."""
    given = unwrap.entries(reading.attributes.get("input.value"))
    if kind is SpanKind.AGENT:
        _run(reading, given, fields)
    if kind is SpanKind.CHAIN and "memory_step" in given:
        fields["input"] = None  # a printed object around the task
        fields["parent_raises"] = _MODEL_FAILED in (failure(reading.raw) or "")
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        if tool.name in {_FINAL_ANSWER, "FinalAnswerTool"}:
            del fields["tool"]
            return SpanKind.CHAIN
        if (named := _named(given, reading.attributes.get("tool.parameters"))) is not None:
            fields["tool"] = replace(tool, arguments=named)
            fields["input"] = named
    fields["output_messages"] = tuple(map(_with_answer, fields.get("output_messages", ())))
    if kind is SpanKind.LLM:
        fields["output"] = messages.last_text(fields["output_messages"], "assistant") or fields.get("output")
        _answering(reading, fields)
    return kind


def _run(reading: SpanReading, given: dict[str, Json], fields: SpanFields) -> None:
    if "agent.name" not in reading.attributes:
        fields["agent"] = reading.raw.name.removesuffix(".run")
    if isinstance(task := given.get("task"), str):
        fields["input"] = task
    if (offered := _offered(reading.attributes.get(_TOOLS))) is not None:
        fields["tool_definitions"] = offered
        reading.note("tool_definitions", _TOOLS)
    _, streamed, last = str(fields.get("output")).rpartition(_STREAMED_ANSWER)
    if streamed:
        fields["output"] = _final(last.removesuffix(")"))


def _offered(names: AttributeValue) -> tuple[str] | None:
    """The names of an agent's tools as one text. Spans name tools by their classes, so these are no declarations."""
    known = [name for name in names if name != _FINAL_ANSWER] if isinstance(names, list | tuple) else []
    return (json.dumps(known),) if known else None


def _named(given: dict[str, Json], parameters: AttributeValue) -> dict[str, Json] | None:
    """The arguments of a call by their names: those without one are given in the order of the tool's parameters."""
    if not isinstance(kwargs := given.get("kwargs"), dict):
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
    raw = unwrap.entries(reading.attributes.get("output.value")).get("raw")
    if isinstance(raw, str) and (models := _ANSWERING_MODEL.findall(raw)):
        fields["model"] = models[-1]
        reading.note("model", "output.value: raw")


def _final(printed: str) -> Json:
    """The answer as printed, itself a repr."""
    read = pyrepr.printed(f"[{printed}]")
    return read[0] if isinstance(read, list) and len(read) == 1 else printed


def _with_answer(message: Message) -> Message:
    """The input of the pseudo-tool is the answer."""
    calls = tuple(call for call in message.tool_calls if call.name != _FINAL_ANSWER)
    if len(calls) == len(message.tool_calls):
        return message
    given = next(call.arguments for call in message.tool_calls if call.name == _FINAL_ANSWER)
    answer = given.get("answer") if isinstance(given, dict) else given
    return replace(message, tool_calls=calls, text=answer if isinstance(answer, str) else message.text)


def dspy(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Fields of a DSPy signature are inputs and outputs, an agent's trajectory among them.

    A model puts the name of each field above it; where it has nothing to say, the names are all that it writes.
    """
    if kind is SpanKind.LLM:
        reading.model_requested_for(fields)
        if isinstance(written := fields["output"], str) and _NAMES_ALONE.fullmatch(written):
            fields |= {"output": "", "output_messages": (Message(role="assistant"),)}
    elif kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        name = tool.name.removesuffix(".__call__").removesuffix(".acall")
        if name == _FINISH and not tool.arguments:
            del fields["tool"]
            return SpanKind.CHAIN
        fields["tool"] = replace(tool, name=name)
    elif kind is SpanKind.CHAIN:
        fields["input"] = _field(reading.attributes.get("input.value"), fields.get("input"))
        fields["output"] = _field(reading.attributes.get("output.value"), fields.get("output"))
    return kind


def _field(value: unwrap.Content, otherwise: Json) -> Json:
    """The only field that DSPy did not add itself, if it is a text; else all of it."""
    found = unwrap.decoded(value)
    if isinstance(found, dict) and found.keys() == {"input_args"}:
        found = found["input_args"]
    if not isinstance(found, dict):
        return otherwise
    own = [held for name, held in found.items() if name not in _OWN_FIELDS]
    if len(own) != 1:
        return otherwise
    return "" if own[0] == "" else as_text(own[0]) or otherwise


def beeai(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Events of BeeAI are spans of their own; inputs are all arguments of the run."""
    attributes = reading.attributes
    given = unwrap.entries(attributes.get("metadata"))
    # What it notes of a run, under keys that begin like metadata, is none of the application's.
    reading.own_metadata = lambda found: {key: found[key] for key in given if key in found}
    if "metadata.path" in attributes and "metadata.class_name" not in attributes:
        for field in _OF_STEP:
            fields.pop(field, None)
        reading.provenance.pop("agent", None)
        return SpanKind.CHAIN
    if kind is SpanKind.LLM:
        _beeai_call(reading, fields)
        return kind
    _beeai_contents(reading, kind, fields)
    return _beeai_tool(fields) if kind is SpanKind.TOOL else kind


def _beeai_contents(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> None:
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


def _beeai_tool(fields: SpanFields) -> SpanKind:
    tool: ToolCall = fields["tool"]
    if tool.name == _FINAL_ANSWER:  # its result is that the answer was sent
        del fields["tool"]
        fields["output"] = None
        return SpanKind.CHAIN
    if (cause := fields.get("error")) is not None:
        tool = replace(tool, result=None, error=cause)
    fields["tool"] = replace(tool, arguments=fields["input"])
    return SpanKind.TOOL


def _beeai_call(reading: SpanReading, fields: SpanFields) -> None:
    """The model is the requested one; cached tokens stand in BeeAI's own notes."""
    reading.model_requested_for(fields)
    used: Usage | None = fields.get("usage")
    cached = reading.whole("usage.cached_input", "metadata.usage.cached_prompt_tokens")
    if used is not None and cached:
        fields["usage"] = replace(used, cached_input=cached)
    if (cause := _cause(reading)) is not None:
        fields |= {"error": cause, "output": None, "output_messages": ()}
    fields["output_messages"] = tuple(map(_without_final_answer, fields["output_messages"]))
    fields["output"] = messages.last_text(fields["output_messages"], "assistant") or fields.get("output")


def _without_final_answer(message: Message) -> Message:
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

"""Where frameworks of several agents bend OpenInference: CrewAI and AutoGen.

Both put all arguments of the wrapped call into the input and a printed or serialised result into the output.
"""

from __future__ import annotations

import re

from sidejudge.scoring.trace.span import Json, SpanKind, ToolCall

from . import pyrepr, unwrap
from .reading import SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

_DELEGATION = frozenset({"delegate_work_to_coworker", "ask_question_to_coworker"})
_WORDS = re.compile(r"\W+")
_CONTENT = re.compile(r" content=('[^'\\]*+(?:\\.[^'\\]*+)*+'|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\") type=", re.DOTALL)
_IN, _OUT = "input.value", "output.value"


def crewai(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """A crew is a CHAIN, a task the AGENT that does it; an agent that works for another has no span at all.

    A crew without inputs, and every agent, have as input the description of the task in the result.
    """
    if kind is SpanKind.TOOL:
        tool: ToolCall = fields["tool"]
        coworker = tool.arguments.get("coworker") if isinstance(tool.arguments, dict) else None
        if _WORDS.sub("_", tool.name.lower()) in _DELEGATION and tool.error is None and (named := as_text(coworker)):
            # The coworker's calls stand below the tool.
            fields["agent"] = named
            reading.note("agent", f"{_IN}: coworker")
    elif kind in {SpanKind.AGENT, SpanKind.CHAIN}:
        given, returned = unwrap.decoded(reading.attributes.get(_IN)), unwrap.decoded(reading.attributes.get(_OUT))
        done = returned if isinstance(returned, dict) else {}
        if (answer := as_text(done.get("raw"))) is not None:
            fields["output"] = answer
        tasks = done.get("tasks_output")
        first = tasks[0] if isinstance(tasks, list) and tasks else done
        described = as_text(first.get("description")) if isinstance(first, dict) else None
        if kind is SpanKind.AGENT:
            fields["input"] = described  # what was given are the agent and its tools, printed
            if described is not None:
                reading.note("input", f"{_OUT}: description")
        elif isinstance(given, dict) and len(given) == 1 and (text := as_text(next(iter(given.values())))):
            fields["input"] = text
    return kind


def autogen(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Teams and agents are given a task, or messages each printed without its class; a team returns all messages."""
    if kind not in {SpanKind.AGENT, SpanKind.CHAIN}:
        return kind
    given, returned = unwrap.decoded(reading.attributes.get(_IN)), unwrap.decoded(reading.attributes.get(_OUT))
    if isinstance(given, dict) and ("task" in given or "messages" in given):
        held = given.get("messages")
        printed = [text for item in held if (text := _printed(item))] if isinstance(held, list) else []
        fields["input"] = as_text(given.get("task")) or (printed[-1] if printed else None)
    if isinstance(returned, dict) and isinstance(stated := returned.get("messages"), list):
        texts = [text for item in stated if (text := _stated(item))]
        fields["output"] = texts[-1] if texts else None
    return kind


def _printed(message: Json) -> str | None:
    """The text of a message as pydantic prints it: ``id='…' source='user' … content='…' type='TextMessage'``."""
    found = _CONTENT.search(message) if isinstance(message, str) else None
    if not found:
        return None
    try:
        read = pyrepr.read(f"[{found[1]}]")
    except pyrepr.UnreadableError:
        return None
    return as_text(read[0]) if isinstance(read, list) else None


def _stated(message: Json) -> str | None:
    """An agent's message: neither the user's nor the one that ends the conversation."""
    if not isinstance(message, dict) or message.get("source") == "user" or message.get("type") == "StopMessage":
        return None
    return as_text(message.get("content"))

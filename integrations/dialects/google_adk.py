"""Google's Agent Development Kit, telemetry schema 1: Gemini requests and answers as JSON on ``gcp.vertex.agent.*``.

Schema 2, the default since ADK 2, keeps to the GenAI conventions. In schema 1 a call is reported twice, by ``call_llm``
with the contents and by a ``generate_content`` below it without them.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Message, SpanKind

from . import genai, messages, unwrap
from .reading import SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

SWITCH = (
    "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true; from schema 2 on "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
)

_REQUEST, _RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
_RUN = re.compile(r"agent_run \[(.+)\]")
"""The name that older versions give the run of an agent; they report nothing else about it."""
_ARGUMENTS, _RESULT = "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"


def speaks(raw: RawSpan) -> bool:
    """Whether ADK made the span."""
    return raw.scope_name == "gcp.vertex.agent" or any(key.startswith("gcp.vertex.agent.") for key in raw.attributes)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    for field in ("input_messages", "output_messages"):
        fields[field] = tuple(map(_bare_result, fields[field]))
    fields["output_messages"] = _whole_text(_whole_calls(fields["output_messages"]))
    if kind is SpanKind.LLM:
        fields["output"] = messages.last_text(fields["output_messages"], "assistant") or fields["output"]
    fields["user_id"] = next((as_text(unwrap.plain(e.attributes.get("user.id"))) for e in reading.raw.events), None)
    if fields["user_id"]:
        reading.note("user_id", "event user.id")
    if kind is SpanKind.TOOL:
        genai.complete_tool(reading, fields, _ARGUMENTS, _RESULT)
        tool = fields["tool"]
        if all(reading.attributes.get(key) == "{}" for key in (_ARGUMENTS, _RESULT)):
            # What ADK sends in place of contents.
            fields |= {"tool": replace(tool, arguments=None, result=None), "input": None, "output": None}
    elif kind is SpanKind.LLM:
        _call(reading, fields)
    elif kind is SpanKind.OTHER and (run := _RUN.fullmatch(reading.raw.name)):
        fields["agent"] = run[1]
        reading.note("kind", "span name")
        reading.note("agent", "span name")
        return SpanKind.AGENT
    elif kind is SpanKind.OTHER:  # the invocation, around everything
        reading.note("kind", "scope")
        return SpanKind.CHAIN
    return kind


def _bare_result(message: Message) -> Message:
    """ADK wraps what a function returns, ``{"result": …}``, unless that is a map; the wrapper comes off."""
    held = unwrap.decoded(message.text) if message.role == "tool" else None
    if isinstance(held, dict) and held.keys() == {"result"}:
        return replace(message, text=messages.joined(held["result"]))
    return message


def _whole_calls(answered: tuple[Message, ...]) -> tuple[Message, ...]:
    """A stream's parts stand before the whole answer: a message whose calls a later one repeats is left out."""
    later: set[str | None] = set()
    kept = []
    for message in reversed(answered):
        calls = {call.call_id for call in message.tool_calls}
        if not calls or None in calls or not calls <= later:
            kept.append(message)
        later |= calls
    return tuple(reversed(kept))


def _whole_text(answered: tuple[Message, ...]) -> tuple[Message, ...]:
    """A stream's pieces are a message each, maybe with the whole text behind them; calls follow the text."""
    pieces = [message.text for message in answered if message.text and message.role == "assistant"]
    if len(pieces) < 2:
        return answered
    before = "".join(pieces[:-1])
    text = before if before == pieces[-1] else before + pieces[-1]
    others = [m for m in answered if m.role != "assistant"]
    made = tuple([call for message in answered for call in message.tool_calls])
    return (Message(role="assistant", text=text, tool_calls=made), *others)


def _call(reading: SpanReading, fields: SpanFields) -> None:
    request = unwrap.decoded(reading.attributes.get(_REQUEST))
    response = unwrap.decoded(reading.attributes.get(_RESPONSE))
    if isinstance(request, dict) and (requested := messages.read(request.get("contents"))):
        fields |= {"input_messages": requested, "input": messages.last_text(requested, "user")}
        fields["system_prompt"] = _instruction(request.get("config"))
        reading.note("input", _REQUEST)
    if isinstance(response, dict) and response:
        finish = response.get("finish_reason") or response.get("finishReason")
        if answered := messages.read(response.get("content")):
            # Of a stream that broke off there is one of its parts, which is no answer.
            part = response.get("partial") is True and finish is None
            text = "" if part else messages.last_text(answered, "assistant")
            fields |= {"output_messages": answered, "output": text}
            reading.note("output", _RESPONSE)
        elif code := response.get("error_code") or response.get("errorCode"):
            # In ADK's words an empty answer is an error too, with the code of a normal end.
            fields["output"] = ""
            reading.note("output", _RESPONSE)
            if code != "STOP":
                fields["error"] = as_text(response.get("error_message") or response.get("errorMessage") or code)
                reading.note("error", _RESPONSE)
        model = response.get("model_version") or response.get("modelVersion")
        if fields["model"] is None and isinstance(model, str):
            fields["model"] = model
            reading.note("model", _RESPONSE)


def _instruction(config: Json) -> str | None:
    """``system_instruction``, ``systemInstruction`` in JavaScript: text, or a content with parts."""
    given = config if isinstance(config, dict) else {}
    held = given.get("system_instruction") or given.get("systemInstruction")
    if isinstance(held, dict):
        return messages.system_text(messages.read({**held, "role": "system"}))
    return held if isinstance(held, str) and held else None


DIALECT = genai.dialect("google_adk", speaks, _adapt, switch=SWITCH)

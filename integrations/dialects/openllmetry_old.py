"""OpenLLMetry before the GenAI conventions (to 0.4x): model calls with one attribute a message, numbered.

``gen_ai.prompt.0.role``, ``gen_ai.completion.0.tool_calls.1.name`` and so on; decorators are as in ``openllmetry``.
"""

from __future__ import annotations

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind

from . import flattened, genai, messages, openllmetry
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "openllmetry_old"

_REQUEST = "llm.request.type"
_KINDS = {
    "chat": SpanKind.LLM, "completion": SpanKind.LLM, "embedding": SpanKind.EMBEDDING, "rerank": SpanKind.RETRIEVER,
}  # fmt: skip
_ASKED, _ANSWERED = "gen_ai.prompt.", "gen_ai.completion."


def speaks(raw: RawSpan) -> bool:
    """Whether the span is a model call in this form."""
    return _REQUEST in raw.attributes or f"{_ASKED}0.role" in raw.attributes or f"{_ASKED}0.content" in raw.attributes


def normalise(raw: RawSpan) -> Span:
    """A model call in normal form."""
    return genai.normalise(raw, name=NAME, switch=openllmetry.SWITCH, adapt=_adapt)


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    if (stated := reading.text("kind", _REQUEST)) is not None:
        kind = _KINDS.get(stated, SpanKind.LLM)
    requested = _messages(reading, "input", _ASKED, "user")
    answered = _messages(reading, "output", _ANSWERED, "assistant")
    if requested:
        fields |= {"input_messages": requested, "input": messages.last_text(requested, "user")}
        fields["system_prompt"] = messages.system_text(requested)
    if answered:
        fields |= {"output_messages": answered, "output": messages.last_text(answered, "assistant")}
    return kind


def _messages(reading: SpanReading, field: str, prefix: str, role: str) -> tuple[Message, ...]:
    found: list[Json] = []
    for entry in flattened.listed(flattened.tree(reading, prefix)):
        calls: list[Json] = [*flattened.listed(entry.get("tool_calls"))]
        found.append({
            "role": entry.get("role") or role, "content": messages.content(entry.get("content")), "tool_calls": calls,
            "function_call": entry.get("function_call"), "tool_call_id": entry.get("tool_call_id"),
        })  # fmt: skip
    if found:
        reading.note(field, f"{prefix}*")
    return messages.read(found)


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=openllmetry.SWITCH)

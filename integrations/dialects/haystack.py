"""Haystack's own tracing: pipelines, components and agents, recognised by name and component type.

Up to 2.x a tool has no span of its own: its arguments stand in the model's messages, its result in those of the
``ToolInvoker``. From 3.0 on an agent's step has a span for the model and one for each tool. An agent has no name but
the one by which its system prompt introduces it.
"""

from __future__ import annotations

import re

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, Usage

from . import messages, unwrap
from .model_call import from_details
from .reading import Dialect, SpanReading
from .span_fields import SpanFields

NAME = "haystack"
SWITCH = "HAYSTACK_CONTENT_TRACING_ENABLED=true"

_TYPE = "haystack.component.type"
_STEPS = {"haystack.agent.step.llm": SpanKind.LLM, "haystack.agent.step.tool": SpanKind.TOOL}
_IN = (
    "haystack.component.input", "haystack.agent.input", "haystack.pipeline.input_data",
    *(f"{step}.input" for step in _STEPS),
)  # fmt: skip
_OUT = (
    "haystack.component.output", "haystack.agent.output", "haystack.pipeline.output_data",
    *(f"{step}.output" for step in _STEPS),
)  # fmt: skip
_KINDS = (
    ("Generator", SpanKind.LLM), ("Retriever", SpanKind.RETRIEVER), ("Ranker", SpanKind.RETRIEVER),
    ("Embedder", SpanKind.EMBEDDING), ("Evaluator", SpanKind.EVALUATOR),
)  # fmt: skip
"""By the last word of a component's type."""
_SELF_INTRODUCTION = re.compile(r"\s*You are (?:the |an? )?([\w-]+)(?: agent)?[.,;:]")


def speaks(raw: RawSpan) -> bool:
    """Whether Haystack's own tracer made the span."""
    return raw.scope_name == "haystack" or any(key.startswith("haystack.") for key in raw.attributes)


def normalise(raw: RawSpan) -> Span:
    """A Haystack span in normal form."""
    reading = SpanReading(raw)
    kind = _kind(reading)
    given, returned = reading.value("input", *_IN), reading.value("output", *_OUT)
    requested_raw, answered_raw = unwrap.decoded(given), unwrap.decoded(returned)
    requested, answered = _messages(requested_raw, "user"), _messages(answered_raw, "assistant")
    fields: SpanFields = {
        "input": messages.last_text(requested, "user") or sole_text(requested_raw),
        "output": messages.last_text(answered, "assistant") or sole_text(answered_raw),
    }
    if kind is SpanKind.LLM:
        fields |= {"input_messages": requested, "output_messages": answered} | _reply(reading, answered_raw)
        fields["system_prompt"] = messages.system_text(requested)
    elif kind is SpanKind.TOOL:
        name = reading.text("tool.name", "haystack.tool.name") or raw.name
        fields |= reading.tool_run(name, given, returned, error=_failure(answered_raw))
    elif kind is SpanKind.AGENT:
        fields["system_prompt"] = messages.system_text(answered) or messages.system_text(requested)
        fields["agent"] = introduced(reading, fields["system_prompt"])
        if fields["output"] is None and messages.says_nothing(answered_raw):
            fields["output"] = ""
    elif kind is SpanKind.RETRIEVER and returned is not None:
        fields["documents"] = unwrap.documents(returned)
    elif isinstance(answered_raw, dict) and (ran := messages.read(answered_raw.get("tool_messages"))):
        fields["output_messages"] = ran
    if given is None and returned is None and kind in {SpanKind.LLM, SpanKind.AGENT}:
        fields["capture_switch"] = SWITCH
    return reading.span(NAME, kind, **fields)


def _kind(reading: SpanReading) -> SpanKind:
    component = reading.text("kind", _TYPE)
    if component is None:
        reading.note("kind", "span name")
    if component is not None:
        return next((kind for ending, kind in _KINDS if component.endswith(ending)), SpanKind.CHAIN)
    if reading.raw.name == "haystack.agent.run":
        return SpanKind.AGENT
    if (step := _STEPS.get(reading.raw.name)) is not None:
        return step
    return SpanKind.CHAIN if reading.raw.name.startswith("haystack.pipeline") else SpanKind.OTHER


def _failure(result: Json) -> str | None:
    """What the model gets in place of a tool's result, where the tool raised and the agent goes on."""
    error = result.get("error") if isinstance(result, dict) and len(result) == 1 else None
    return error if isinstance(error, str) and error.startswith("Failed to invoke Tool ") else None


def _messages(value: Json, role: str) -> tuple[Message, ...]:
    """Messages of a component; a generator without messages takes a prompt and replies with bare texts."""
    held = component(value)
    if not isinstance(held, dict):
        return ()
    if found := messages.read(held):
        return found
    texts = held.get("replies") if role == "assistant" else [held.get("prompt")]
    texts = texts if isinstance(texts, list) else []
    return tuple(Message(role=role, text=text) for text in texts if isinstance(text, str) and text)


def _reply(reading: SpanReading, output: Json) -> SpanFields:
    """Model and usage stand in the meta of a reply, or beside the replies."""
    held = output if isinstance(output, dict) else {}
    items = [item for key in ("replies", "meta") if isinstance(group := held.get(key), list) for item in group]
    metas = [item.get("meta", item) for item in items if isinstance(item, dict)]
    used: Usage | None = None
    model: str | None = None
    for meta in metas:
        if isinstance(meta, dict):
            used = used or from_details(meta.get("usage"))
            named = meta.get("model")
            model = model or (named if isinstance(named, str) else None)
    for field, found in (("usage", used), ("model", model)):
        if found:
            reading.note(field, "output: meta")
    return {"usage": used, "model": model}


def component(value: Json) -> Json:
    """Input and output of a pipeline stand under the component's name, the input under ``data`` too."""
    for _ in range(3):
        if not isinstance(value, dict) or "messages" in value or "replies" in value:
            break
        inner = [item for item in value.values() if isinstance(item, dict)]
        held = [item for item in inner if "messages" in item or "replies" in item]
        value = held[-1] if held else inner[0] if len(inner) == 1 else None
    return value


def introduced(reading: SpanReading, system_prompt: str | None) -> str | None:
    """The name by which a system prompt opens (``You are the research agent.``): the only place that has an agent's."""
    found = _SELF_INTRODUCTION.match(system_prompt or "")
    if not found:
        return None
    reading.note("agent", "opening of the system prompt")
    return found[1]


def sole_text(value: Json) -> str | None:
    """The one text that is given to a pipeline's components, or to one of them, however many times it is given."""
    if isinstance(value, dict) and isinstance(held := value.get("data"), dict):
        value = held
    texts = [text for part in value.values() for text in _texts(part)] if isinstance(value, dict) else []
    return texts[0] if texts and len(set(texts)) == 1 else None


def _texts(part: Json) -> list[str]:
    values = list(part.values()) if isinstance(part, dict) else [part]
    return [text for text in values if isinstance(text, str) and text]


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

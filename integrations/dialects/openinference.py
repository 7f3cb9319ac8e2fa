"""OpenInference (Arize): flattened messages, ``input.value`` and ``output.value``, ``openinference.span.kind``.

``openinference_frameworks`` holds the differences of single frameworks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.tool_spans import call_identity

from . import messages, openinference_frameworks, unwrap, vercel_ai
from .fields import Fields, numbered_maps, real, text, tokens, tree
from .reading import Dialect, SpanReading, failure
from .span_fields import SpanFields
from .unwrap import as_text

NAME = "openinference"
SWITCH = "OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false (TraceConfig hide_inputs, hide_outputs)"

_KINDS = {
    "LLM": SpanKind.LLM, "AGENT": SpanKind.AGENT, "TOOL": SpanKind.TOOL, "CHAIN": SpanKind.CHAIN,
    "RETRIEVER": SpanKind.RETRIEVER, "RERANKER": SpanKind.RETRIEVER, "EMBEDDING": SpanKind.EMBEDDING,
    "GUARDRAIL": SpanKind.GUARDRAIL, "EVALUATOR": SpanKind.EVALUATOR, "PROMPT": SpanKind.CHAIN,
}  # fmt: skip
_IN, _OUT = "input.value", "output.value"
TOKENS = tokens(
    prompt=("llm.token_count.prompt",),
    completion=("llm.token_count.completion",),
    cached=("llm.token_count.prompt_details.cache_read",),
    reasoning=("llm.token_count.completion_details.reasoning",),
)
_FIELDS = Fields(
    model=text("llm.response.model_name", "gen_ai.response.model", "llm.model_name"),
    requested_model=text("llm.request.model_name"),
    usage=TOKENS,
    cost_usd=real("llm.cost.total"),
)
_REPORTING_THEMSELVES = frozenset({"pydantic-ai", "agent_framework"})
_OF_AI_SDK = "ai.operationId"
_TRANSLATED = "opentelemetry.instrumentation."
_OWN_CONTENTS = (
    "gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.",
    "traceloop.entity.",
)  # fmt: skip
_FAILED = ('"is_error"', '"status": "error"', '"status":"error"')
"""How Anthropic's and Bedrock's requests mark the result of a tool that failed."""
_PROVIDED = tuple(f'"{kind}"' for kind in messages.PROVIDED_ITEMS)
_BY_ITSELF = "automatic_function_calling_history"
"""Where google-genai states what it did before its answer, with the request in front."""
_RESPONSE_ID = re.compile(r'\s*\{\s*"id"\s*:\s*"([^"\\]{1,200})"')


def speaks(raw: RawSpan) -> bool:
    """Whether the span states its OpenInference kind, or an OpenInference instrumentation made it.

    Not where one only added its words to the richer ones of a framework that reports itself.
    """
    if _OF_AI_SDK in raw.attributes:
        return False
    if raw.scope_name.startswith("openinference."):
        return True
    if "openinference.span.kind" not in raw.attributes or raw.scope_name in _REPORTING_THEMSELVES:
        return False
    if raw.scope_name.startswith(_TRANSLATED):
        return not any(key.startswith(_OWN_CONTENTS) for key in raw.attributes)
    return not raw.scope_name.startswith("openlit.")


def normalise(raw: RawSpan) -> Span:
    """An OpenInference span in normal form."""
    reading = SpanReading(vercel_ai.with_own_status(raw))
    kind = _KINDS.get((reading.text("kind", "openinference.span.kind") or "").upper(), SpanKind.OTHER)
    reading.provenance.setdefault("kind", "scope")
    fields: SpanFields = {"agent": _agent(reading, kind)}
    fields |= _FIELDS.read(reading)
    requested, answered = reading.value("input", _IN), reading.value("output", _OUT)
    if kind is SpanKind.TOOL:
        fields |= _tool(reading)
    elif kind is SpanKind.LLM:
        fields |= _llm(reading)
        if fields.get("model") is None and fields.get("requested_model") is None:
            fields["requested_model"] = _requested_model(reading)
    else:
        fields["input"] = _quoted_text(reading, "input", requested) or messages.stated_in(
            unwrap.task(requested), "user"
        )
        fields["output"] = _quoted_text(reading, "output", answered) or messages.stated_in(
            unwrap.answer(answered), "assistant"
        )
        if kind is SpanKind.RETRIEVER:
            fields["documents"] = _documents(reading)
    if kind is SpanKind.AGENT and fields["agent"] is None:
        fields["agent"] = reading.span_name("agent")
    kind = openinference_frameworks.adapt(reading, kind, fields)
    silent = requested is None and answered is None and not fields.get("input_messages")
    if silent and kind in {SpanKind.LLM, SpanKind.TOOL}:
        fields["capture_switch"] = SWITCH
    return reading.span(NAME, kind, **fields)


def _agent(reading: SpanReading, kind: SpanKind) -> str | None:
    """``agent.name``; else the node of the agent graph; else the name that LangGraph puts into the metadata.

    Where a framework's own spans were translated, calls and tools are nodes too, and the agent's name stands beside.
    """
    graph = ("gen_ai.agent.name", "graph.node.name", "graph.node.id") if kind is SpanKind.AGENT else ()
    named = reading.text("agent", "agent.name", *graph)
    held = reading.attributes.get("metadata") if named is None else None
    if held and "lc_agent_name" in str(held) and (named := as_text(unwrap.entries(held).get("lc_agent_name"))):
        reading.note("agent", "metadata.lc_agent_name")
    return named


def _quoted_text(reading: SpanReading, direction: str, value: object) -> str | None:
    """A text in quotation marks that is sent as plain text, and so is no JSON: the marks are part of it."""
    plain = isinstance(value, str) and reading.attributes.get(f"{direction}.mime_type") == "text/plain"
    return str(value) if plain and str(value).startswith('"') else None


def _requested_model(reading: SpanReading) -> str | None:
    """The model of a failed call is only among its parameters."""
    return as_text(unwrap.entries(reading.value("requested_model", "llm.invocation_parameters")).get("model"))


def _llm(reading: SpanReading) -> SpanFields:
    requested = tuple(_flattened(reading, "llm.input_messages."))
    answered = tuple(_flattened(reading, "llm.output_messages."))
    raw_in, raw_out = reading.value("input", _IN), reading.value("output", _OUT)
    if requested:
        requested = _completed_by(requested, raw_in)
        reading.note("input", "llm.input_messages")
    elif raw_in is not None:
        requested = messages.read(unwrap.decoded(raw_in))
    if answered:
        answered = _with_provided(_completed_by(answered, raw_out), raw_out)
        reading.note("output", "llm.output_messages")
    elif raw_out is not None:
        given = unwrap.decoded(raw_out)
        if isinstance(given, dict) and "role" not in given and {"content", "finish_reason"} <= given.keys():
            given = {**given, "role": "assistant"}  # a reply alone, as AutoGen has it, does not name its role
        answered = messages.read(given)
    if isinstance(raw_out, str) and _BY_ITSELF in raw_out:
        answered = _with_carried_out(messages.read(_own_history(raw_in, raw_out)), answered)
    response = _RESPONSE_ID.match(raw_out) if isinstance(raw_out, str) else None
    if response:
        reading.note("response_id", _OUT)
    return {
        "input_messages": requested,
        "output_messages": answered,
        "input": messages.last_text(requested, "user") or _quoted_text(reading, "input", raw_in) or unwrap.task(raw_in),
        "output": messages.last_text(answered, "assistant")
        if answered
        else _quoted_text(reading, "output", raw_out) or unwrap.answer(raw_out),
        "system_prompt": messages.system_text(requested) or _instructions(raw_in, raw_out),
        "response_id": response[1] if response else None,
    }


def _own_history(raw_in: AttributeValue, raw_out: str) -> list[Json]:
    """The calls that google-genai carried out by itself before the answer, and their results: one span has it all."""
    history, asked = unwrap.entries(raw_out).get(_BY_ITSELF), unwrap.entries(raw_in).get("contents")
    return history[len(asked) :] if isinstance(history, list) and isinstance(asked, list) else []


def _with_carried_out(carried_out: tuple[Message, ...], answered: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages of calls that were carried out, and the answer without these: streamed, it repeats them all."""
    made = Counter(call_identity(call)[1:] for message in carried_out for call in message.tool_calls)
    left = list[Message]()
    for message in answered:
        calls = list[ToolCall]()
        for call in message.tool_calls:
            made[call_identity(call)[1:]] -= 1
            if made[call_identity(call)[1:]] < 0:
                calls.append(call)
        left.append(replace(message, tool_calls=tuple(calls)))
    return (*carried_out, *left)


def _completed_by(stated: tuple[Message, ...], raw: AttributeValue) -> tuple[Message, ...]:
    """The messages with what some clients leave in the raw body alone.

    That is ids of calls and of answers to them, that a tool failed, arguments where there are none, for an empty map
    has nothing to flatten, and texts that are sent as a list of parts. Anthropic's instructions stand beside that body.
    """
    failed = isinstance(raw, str) and "error" in raw and any(mark in raw for mark in _FAILED)
    if not failed and not any(map(_lacks, stated)):
        return stated
    full = messages.read(unwrap.decoded(raw))
    if len(full) < len(stated):
        full = (*(m for m in stated if m.role == "system"), *full)
    if [(m.role, len(m.tool_calls)) for m in full] != [(m.role, len(m.tool_calls)) for m in stated]:
        return stated
    return tuple(
        replace(
            m,
            text=m.text or whole.text,
            tool_call_id=m.tool_call_id or whole.tool_call_id,
            name=m.name or whole.name,
            error=m.error or whole.error,
            tool_calls=tuple(map(_completed, m.tool_calls, whole.tool_calls)),
        )
        for m, whole in zip(stated, full, strict=True)
    )


def _with_provided(stated: tuple[Message, ...], raw: AttributeValue) -> tuple[Message, ...]:
    """The messages of the raw body where OpenAI ran tools: the others leave out what came of them, and some calls.

    Without that body the program still has nothing to run for the calls that are named after their kind.
    """
    named = [call for m in stated for call in m.tool_calls if call.name in messages.PROVIDED_ITEMS]
    if not named and not (isinstance(raw, str) and '_call"' in raw and any(kind in raw for kind in _PROVIDED)):
        return stated
    full = messages.read(unwrap.decoded(raw))
    shown, whole = (
        {held for m in each for held in (m.text, *(call.call_id for call in m.tool_calls))} for each in (stated, full)
    )
    if shown <= whole | {""}:
        return full
    ran = (Message(role="tool", tool_call_id=call.call_id, name=call.name, withheld=True) for call in named)
    return (*ran, *stated)


def _lacks(message: Message) -> bool:
    if message.role == "tool" and message.tool_call_id is None:
        return True
    if not message.tool_calls:
        return not message.text
    return any(call.call_id is None or call.arguments is None for call in message.tool_calls)


def _completed(call: ToolCall, full: ToolCall) -> ToolCall:
    given = full.arguments if call.arguments is None else call.arguments
    return replace(call, call_id=call.call_id or full.call_id, arguments=given)


def _instructions(request: AttributeValue, response: AttributeValue) -> str | None:
    """Where messages hold none: Anthropic, Gemini and OpenAI's responses carry them beside the messages."""
    for body, key in ((request, "system"), (request, "system_instruction"), (response, "instructions")):
        if (
            isinstance(body, str)
            and f'"{key}"' in body
            and isinstance(held := unwrap.decoded(body), dict)
            and held.get(key)
        ):
            stated = held[key]
            whole = stated if isinstance(stated, dict) and "parts" in stated else {"content": stated}
            return messages.system_text(messages.read({**whole, "role": "system"}))
    return None


def _flattened(reading: SpanReading, prefix: str) -> Iterator[Message]:
    """Messages from keys such as ``llm.input_messages.0.message.tool_calls.1.tool_call.function.name``."""
    for entry in numbered_maps(tree(reading, prefix)):
        body = entry.get("message")
        if not isinstance(body, dict):
            continue
        contents: list[Json] = [_content(part) for part in numbered_maps(body.get("contents"))]
        calls: list[Json] = [
            call for part in numbered_maps(body.get("tool_calls")) if isinstance(call := part.get("tool_call"), dict)
        ]
        text = body.get("content")
        if text is None and "content" in body and not contents and not calls:
            continue  # it was removed
        if body.get("role") == "user" and body.get("tool_call_id"):  # Anthropic's, from JavaScript
            body = {**body, "role": "tool"}
        yield from messages.read(
            {**body, "content": text or contents, "tool_calls": calls, "contents": None, "type": None}
        )


def _content(part: dict[str, Json]) -> Json:
    held = part.get("message_content")
    return held if isinstance(held, dict) else part


def _tool(reading: SpanReading) -> SpanFields:
    outcome = unwrap.result(reading.value("tool.result", _OUT))
    name = reading.text("tool.name", "tool.name") or reading.span_name("tool.name")
    error = failure(reading.raw) or outcome.error
    if error is not None and isinstance(outcome.result, str) and outcome.result in error:
        outcome = replace(outcome, result=None)  # it is the error once more
    given = reading.value("tool.arguments", _IN, "gen_ai.tool.call.arguments")
    call_id = reading.text("tool.call_id", "tool_call.id", "tool.id", "tool.call_id", "gen_ai.tool.call.id")
    return reading.tool_run(name, given, outcome, call_id=call_id)


def _documents(reading: SpanReading) -> tuple[str, ...]:
    for prefix in ("reranker.output_documents.", "retrieval.documents."):
        texts: list[str] = []
        for entry in numbered_maps(tree(reading, prefix)):
            document = entry.get("document")
            text = document.get("content") if isinstance(document, dict) else None
            if isinstance(text, str) and text:
                texts.append(text)
        if texts:
            reading.note("documents", prefix.rstrip("."))
            return tuple(texts)
    held = reading.value("documents", _OUT)
    return unwrap.documents(held) if held is not None else ()


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

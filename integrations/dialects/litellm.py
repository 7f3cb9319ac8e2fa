"""LiteLLM: ``otel`` keeps to the GenAI conventions, ``langfuse_otel`` to Langfuse's and OpenInference's words at once.

Below either lies a span with the raw request and response as Python prints them (``llm.PROVIDER.*``). If the
application has a span open, LiteLLM makes none of its own: it adds its first call to that span, and further calls have
only a raw span. The second form adds the requested model to steps of its proxy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.lexical.memory import by_names
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall

from . import genai, langfuse, messages, openinference, unwrap
from .model_call import from_details, normal_reason
from .reading import Dialect, SpanReading
from .span_fields import SpanFields
from .unwrap import as_text

NAME = "litellm"
SWITCH = unwrap.LITELLM_SWITCH
_V2, _V2_SWITCH = "litellm.call_type", f"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only with {SWITCH}"
"""What the second form of ``otel`` (``LITELLM_OTEL_V2``) sends alone; it leaves contents out unless both are set."""

_CALL_ID = "litellm.call_id"
_ASKED = "litellm.api_key.hash"
"""Who asked its proxy, on calls and on the proxy's own steps, such as those of FastAPI."""
_RAW = re.compile(r"llm\.([\w-]+)\.(?:messages|choices|input|contents|output)")
_FUNCTION = "gen_ai.completion.{}.function_call."
_MOST_CALLS = 100
_GIVEN = ("messages", "input", "contents")


def speaks(raw: RawSpan) -> bool:
    """Whether LiteLLM made the span, or decorated one of the application's or of its proxy's."""
    return raw.scope_name == "litellm" or _CALL_ID in raw.attributes or _ASKED in raw.attributes


def normalise(raw: RawSpan) -> Span:
    """A LiteLLM span in normal form."""
    if provider := _provider(tuple(raw.attributes)):
        return _raw_call(raw, provider)
    if langfuse.speaks(raw):
        return _both(raw)
    switch = _V2_SWITCH if _V2 in raw.attributes else SWITCH
    return genai.normalise(raw, name=NAME, switch=switch, adapt=_adapt, own_metadata=_given_to_proxy)


@by_names
def _provider(keys: tuple[str, ...]) -> str:
    """The provider whose raw request these keys belong to; empty for none."""
    return next((found[1] for key in keys if (found := _RAW.fullmatch(key))), "")


def _given_to_proxy(metadata: Mapping[str, Json]) -> dict[str, Json]:
    """Metadata without LiteLLM's own bookkeeping: only the values from the caller of its proxy."""
    return unwrap.entries(metadata.get("requester_metadata"))


def _adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Calls of tools are left out of the messages, and put beside them without their ids."""
    if _ASKED in reading.attributes and "gen_ai.operation.name" not in reading.attributes:
        reading.note("kind", "no operation")
        fields["requested_model"] = None
        return SpanKind.OTHER
    answered: tuple[Message, ...] = fields["output_messages"]
    if not any(message.tool_calls for message in answered) and (calls := tuple(_function_calls(reading))):
        last = answered[-1] if answered else Message(role="assistant")
        fields["output_messages"] = (*answered[:-1], replace(last, tool_calls=calls))
    fields["requested_model"] = fields["requested_model"] or reading.text("requested_model", "litellm.provider.model")
    if fields["cost_usd"] is None:
        fields["cost_usd"] = reading.real("cost_usd", "litellm.cost.total")
    return kind


def _function_calls(reading: SpanReading) -> list[ToolCall]:
    found = []
    for number in range(_MOST_CALLS):
        prefix = _FUNCTION.format(number)
        name = as_text(unwrap.plain(reading.attributes.get(prefix + "name")))
        if name is None:
            break
        found.append(ToolCall(name=name, arguments=unwrap.arguments(reading.attributes.get(prefix + "arguments"))))
    return found


def _both(raw: RawSpan) -> Span:
    """Messages by Langfuse's attributes, usage by OpenInference's."""
    span = langfuse.normalise(raw)
    reading = SpanReading(raw)
    reading.provenance.update(span.provenance)
    counted = openinference.TOKENS.read(reading, "usage", *openinference.TOKENS.keys)
    return replace(
        span,
        dialect=NAME,
        usage=span.usage or counted,
        model=reading.text("model", "llm.response.model") or span.model,
        requested_model=reading.text("requested_model", "llm.model_name"),
        response_id=reading.text("response_id", "llm.response.id") or span.response_id,
        cost_usd=reading.real("cost_usd", "llm.cost.total", "llm.response.cost"),
        metadata=_given_to_proxy(dict(span.metadata)),
        provenance=reading.provenance,
    )


def _raw_call(raw: RawSpan, provider: str) -> Span:
    """The request and the response by the provider's own names, each value as Python prints it."""
    reading = SpanReading(raw, _given_to_proxy)
    body: dict[str, Json] = {}
    for key in (*_GIVEN, "choices", "output", "candidates", "content", "role"):
        name = f"llm.{provider}.{key}"
        if name in raw.attributes:
            body[key] = unwrap.decoded(raw.attributes[name])
    given: dict[str, Json] = {key: body[key] for key in _GIVEN if key in body}
    returned: dict[str, Json] = {key: value for key, value in body.items() if key not in given}
    requested, answered = messages.read(given), messages.read(returned)
    reading.note("kind", f"llm.{provider}.*")
    reading.note("input", f"llm.{provider}.{next(iter(given), '')}")
    reading.note("output", f"llm.{provider}.{next(iter(returned), '')}")
    fields: SpanFields = messages.asked(requested) | messages.answered(answered)
    fields |= {
        "model": reading.text("model", f"llm.{provider}.model"),
        "response_id": reading.text("response_id", f"llm.{provider}.id"),
        "usage": from_details(unwrap.decoded(reading.value("usage", f"llm.{provider}.usage"))),
        "user_id": reading.text("user_id", f"llm.{provider}.user"),
    }
    if (finish := _finish(reading, provider, body)) is not None:
        fields["finish_reason"] = finish
    embeds = f"llm.{provider}.data" in raw.attributes and not answered
    return reading.span(NAME, SpanKind.EMBEDDING if embeds else SpanKind.LLM, **fields)


def _finish(reading: SpanReading, provider: str, body: Mapping[str, Json]) -> str | None:
    """Why the model stopped: by Anthropic's or Bedrock's word, by OpenAI's *Responses*, or by the first choice."""
    at = f"llm.{provider}."
    if (why := as_text(unwrap.entries(reading.attributes.get(f"{at}incomplete_details")).get("reason"))) is not None:
        reading.note("finish_reason", f"{at}incomplete_details")
        return normal_reason(why)
    stated = reading.text("finish_reason", f"{at}stop_reason", f"{at}stopReason", f"{at}status")
    for key in ("choices", "candidates"):
        held = body.get(key)
        first = held[0] if isinstance(held, list) and held else None
        if stated is None and isinstance(first, dict):
            stated = as_text(first.get("finish_reason") or first.get("finishReason"))
            reading.note("finish_reason", f"{at}{key}")
    return normal_reason(stated) if stated else None


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)

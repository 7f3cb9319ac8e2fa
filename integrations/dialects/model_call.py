"""Fields of a model call in any dialect: why the model stopped, which tools it was offered, when it began to answer.

The instrumentations use many keys for the same facts, and none contradicts another, so all spans are read alike.

Token counts in any vendor's words → ``Usage``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.lexical.memory import by_names
from sidejudge.scoring.trace.span import Json, Usage
from sidejudge.scoring.trace.time_units import read_instant

from . import unwrap
from .span_fields import SpanFields

_FINISH: Final = (
    "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason", "ai.response.finishReason",
    "gen_ai.completion.0.finish_reason", "anthropic.message.stop_reason", "llm.output_messages.0.message.finish_reason",
    "langfuse.observation.metadata.finish_reason", "ai.response.finish_reason",
)  # fmt: skip
"""Attributes that hold nothing but the reason, the most trusted first."""
_BODIES: Final = (
    "gen_ai.output.messages", "output.value", "langfuse.observation.output", "llm.openai.choices", "mlflow.spanOutputs",
    "gcp.vertex.agent.llm_response", "gen_ai.completion", "genkit:output",
)  # fmt: skip
"""Attributes that hold a response, the reason somewhere in it."""
_IN_BODY: Final = re.compile(
    r"""["'](?<!\\["'])(?:(?:finish_reason|finishReason|stop_reason|stopReason)["']\s*:"""
    r"""|incomplete_details["']\s*:\s*\{\s*["']reason["']\s*:"""
    r"""|type["']\s*:\s*["']message["'][^][{}]{0,200}["']status["']\s*:\s*(?=["']incomplete["']))"""
    r"""\s*["']([A-Za-z_.]{1,40})["']"""
)
"""Quotes behind a backslash are text of the answer, not keys of the response. The quote comes first: by a character
that a pattern begins with, it is found many times as fast.

OpenAI's Responses give a reason only where an answer is incomplete, beside it; each message has a status.
"""
_LONGEST_BODY: Final = 1 << 18
_WORDS: Final = {
    "stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "complete": "stop", "eos": "stop",
    "finish": "stop", "finished": "stop",
    "length": "length", "max_tokens": "length", "max_output_tokens": "length", "model_length": "length",
    "model_context_window_exceeded": "length", "max_completion_tokens": "length", "incomplete": "length",
    "tool_calls": "tool_calls", "tool_call": "tool_calls", "tool_use": "tool_calls", "function_call": "tool_calls",
    "function_calls": "tool_calls",
    "tool-calls": "tool_calls",
    "content_filter": "content_filter", "content-filter": "content_filter", "safety": "content_filter",
    "refusal": "content_filter", "recitation": "content_filter", "prohibited_content": "content_filter",
    "blocklist": "content_filter", "guardrail_intervened": "content_filter", "content_filtered": "content_filter",
    "error": "error",
}  # fmt: skip
"""Providers' words, lower case and without the name of an enumeration, and OpenTelemetry's for each."""
_TOOLS: Final = (
    "gen_ai.tool.definitions", "llm.openai.tools", "mlflow.chat.tools", "ai.prompt.tools", "llm.invocation_parameters",
    "langfuse.observation.input", "gcp.vertex.agent.llm_request",
)  # fmt: skip
"""Attributes that hold all definitions, alone or under ``tools`` of a request."""
_CHOICES: Final = (
    "llm.invocation_parameters", "ai.prompt.toolChoice", "langfuse.observation.input", "mlflow.spanInputs",
)  # fmt: skip
"""Attributes that hold ``tool_choice``, alone or in a request."""
_DEMANDED: Final = re.compile(
    r""""tool_choice"(?<!\\"tool_choice")\s*:\s*\{(?:\s*"type"\s*:\s*"(?:function|tool)"\s*,)?"""
    r"""(?:\s*"function"\s*:\s*\{)?\s*"name"\s*:\s*"(?P<name>[^"\\]{1,100})\""""
)
_OF_AI_SDK: Final = re.compile(r"""\s*\{\s*"type"\s*:\s*"tool"\s*,\s*"toolName"\s*:\s*"(?P<name>[^"\\]{1,100})\"""")
"""The tool by name that a request demands, in OpenAI's and Anthropic's words, and in the AI SDK's."""
_LISTED: Final = re.compile(r"(llm\.tools|llm\.request\.functions)\.(\d{1,4})\.(.+)")
"""Attributes that hold one definition, or one field of one."""
_MOST_TOOLS: Final = 512
_FIRST: Final = {
    "gen_ai.response.time_to_first_chunk": 1.0, "gen_ai.server.time_to_first_token": 1.0,
    "ai.response.msToFirstChunk": 1e-3,
}  # fmt: skip
"""Attributes that hold the time to the first token, each with its unit in seconds."""
_FIRST_AT: Final = "langfuse.observation.completion_start_time"
"""The attribute that holds when the first token came, as an ISO time, often in quotes."""
_FIRST_EVENT: Final = "First Token Stream Event"
"""OpenInference's event at the first token."""

LANGCHAIN_MODEL: Final = re.compile(
    r'"(?:response_metadata|generationInfo)": ?\{(?:[^{}]|\{[^{}]*+\})*?"model(?:_name)?": ?"([^"\\]{1,100})"'
)
"""The model that answered, in a message that LangChain has serialised."""


@by_names
def _there(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Which keys may report a reason, hold a response, all definitions, one, the time of the first token, a choice."""
    return (
        tuple(key for key in _FINISH if key in names),
        tuple(key for key in _BODIES if key in names),
        tuple(key for key in _TOOLS if key in names),
        tuple(key for key in names if _LISTED.fullmatch(key)),
        tuple(key for key in (*_FIRST, _FIRST_AT) if key in names),
        tuple(key for key in _CHOICES if key in names),
    )


def read(raw: RawSpan, names: tuple[str, ...], found: SpanFields, provenance: dict[str, str]) -> None:
    """Add to a span's fields where it reports them: why it stopped, the tools, and the time of the first token."""
    reasons, bodies, tools, listed, first, choices = _there(names)
    attributes = raw.attributes
    if (demanded := _first_of(attributes, choices, _demanded)) is not None:
        found["demanded_tool"], provenance["demanded_tool"] = demanded
    if (first or raw.events) and (seconds := _first_token_s(raw, first)) is not None:
        found["first_token_s"], provenance["first_token_s"] = seconds
    reason = _first_of(attributes, reasons, _reason) or _first_of(attributes, bodies, _reason_in)
    if reason is not None:
        found["finish_reason"], provenance["finish_reason"] = reason
    if listed:
        found["tool_definitions"] = _listed(attributes, listed)
        provenance["tool_definitions"] = listed[0]
        return
    for key in tools:
        if definitions := _definitions(key, attributes[key]):
            found["tool_definitions"], provenance["tool_definitions"] = definitions, key
            return


def _first_of(
    attributes: Mapping[str, AttributeValue], keys: tuple[str, ...], read_one: Callable[[AttributeValue], str | None]
) -> tuple[str, str] | None:
    """The first value that can be read from these attributes, and its key."""
    for key in keys:
        if (value := read_one(attributes[key])) is not None:
            return value, key
    return None


def _demanded(value: AttributeValue) -> str | None:
    if not isinstance(value, str) or len(value) > _LONGEST_BODY:
        return None
    match = _OF_AI_SDK.match(value) if "toolName" in value else None
    if match is None and "tool_choice" in value:
        match = _DEMANDED.search(value)
    return match["name"] if match else None


def normal_reason(word: str) -> str | None:
    """OpenTelemetry's word for a provider's; an unknown word in lower case; None for none.

    >>> normal_reason("FinishReason.MAX_TOKENS"), normal_reason("end_turn"), normal_reason("null")
    ('length', 'stop', None)
    """
    bare = word.strip().strip('"').rpartition(".")[2].lower()
    return None if bare in ("", "none", "null", "unknown") else _WORDS.get(bare, bare[:40])


def _reason(value: AttributeValue) -> str | None:
    """The first of several choices: the others are alternatives that nobody was shown."""
    held = unwrap.decoded(value) if isinstance(value, str) and value.startswith("[") else value
    if isinstance(held, list):
        held = next((item for item in held if isinstance(item, str) and item), None)
    return normal_reason(held) if isinstance(held, str) and len(held) <= 100 else None


def _reason_in(value: AttributeValue) -> str | None:
    """The first reason in the text of a response; None in a body too long to be searched for every span."""
    if not isinstance(value, str) or len(value) > _LONGEST_BODY:
        return None
    match = _IN_BODY.search(value) if "eason" in value or "incomplete" in value else None
    return normal_reason(match[1]) if match else None


def sole_reason(value: AttributeValue) -> str | None:
    """The reason in a text that holds one, in what LangChain keeps of a response: of several it is unknown whose."""
    if not isinstance(value, str) or len(value) > _LONGEST_BODY or '"response_metadata"' not in value:
        return None
    found = _IN_BODY.findall(value)
    return normal_reason(found[0]) if len(found) == 1 else None


def _first_token_s(raw: RawSpan, keys: tuple[str, ...]) -> tuple[float, str] | None:
    """Seconds from the span's start to the first token, and where that stands; None where nothing reports it."""
    for key in keys:
        value = raw.attributes[key]
        at_ns = read_instant(value.strip('"')) if key == _FIRST_AT and isinstance(value, str) else None
        if at_ns is not None and at_ns >= raw.start_ns:
            return (at_ns - raw.start_ns) / 1e9, key
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf and key in _FIRST:
            return value * _FIRST[key], key
    for event in raw.events:
        if event.name == _FIRST_EVENT and event.time_ns >= raw.start_ns:
            return (event.time_ns - raw.start_ns) / 1e9, f"event {_FIRST_EVENT}"
    return None


def _definitions(key: str, value: AttributeValue) -> tuple[str, ...]:
    """The definitions as texts, not decoded: a later reader decodes each distinct text once."""
    if isinstance(value, list):
        texts = [item if isinstance(item, str) else _json(item) for item in value]
        return tuple(texts[:_MOST_TOOLS])
    if not isinstance(value, str) or unwrap.removed(value):
        return ()
    if key in ("gen_ai.tool.definitions", "llm.openai.tools", "mlflow.chat.tools", "ai.prompt.tools"):
        return (value,)
    return (value,) if '"tools"' in value or "'tools'" in value else ()


def _listed(attributes: Mapping[str, AttributeValue], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Definitions that are flattened into keys: a JSON text each, or a field of each."""
    whole: dict[str, str] = {}
    parts: dict[str, dict[str, AttributeValue]] = {}
    for key in keys:
        match = _LISTED.fullmatch(key)
        if match is None:
            continue
        number, field, value = match[2], match[3].rpartition(".")[2], attributes[key]
        if field == "json_schema" and isinstance(value, str):
            whole[number] = value
        elif field in ("name", "description", "parameters"):
            parts.setdefault(number, {})[field] = value
    # A schema may be without the tool's name, which then stands beside it.
    named = {
        number: _json({"name": held["name"], "parameters": whole.get(number, held.get("parameters"))})
        for number, held in parts.items()
        if isinstance(held.get("name"), str)
    }
    joined = whole | named
    return tuple(joined[n] for n in sorted(joined, key=int)[:_MOST_TOOLS])


def _json(value: object) -> str:
    return orjson.dumps(value, default=str).decode()


_ABSURD = 1e12
"""A trace has no million million tokens; a count beyond it is an error of its sender."""


def whole(value: object) -> int | None:
    """A count: a whole number, or a text that is one; negative, broken and absurd ones are unknown."""
    if type(value) is int:
        return value if 0 <= value < _ABSURD else None
    found = real(value)
    return int(found) if found is not None and 0 <= found < _ABSURD and found == int(found) else None


def real(value: object) -> float | None:
    """A finite number, or a text that is one; truth values are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def usage(prompt: int | None, completion: int | None, cached: int | None, reasoning: int | None) -> Usage | None:
    """Usage from four counts, None when neither of the first two is known: clients count 0 where they know nothing."""
    if (prompt is None and completion is None) or not (prompt or completion or cached):
        return None
    return Usage(input=prompt, output=completion, cached_input=cached or 0, reasoning_output=reasoning or 0)


def from_details(details: Json) -> Usage | None:
    """Usage from an API's own usage object or from named buckets (Langfuse's ``usage_details``).

    ``prompt_tokens`` (OpenAI) includes what was cached. In buckets ``input`` and each ``input_…`` are disjoint, unless
    the given total shows that they are not. Anthropic's ``input_tokens`` leaves cached tokens out, and is known by
    its ``cache_read_input_tokens``.
    """
    if not isinstance(details, Mapping):
        return None
    if "prompt_tokens" in details or "completion_tokens" in details:
        return usage(
            whole(details.get("prompt_tokens")), whole(details.get("completion_tokens")),
            _inner(details, "prompt_tokens_details", "cached_tokens"),
            _inner(details, "completion_tokens_details", "reasoning_tokens"),
        )  # fmt: skip
    if "input_tokens" in details or "output_tokens" in details:
        read, written = whole(details.get("cache_read_input_tokens")), whole(details.get("cache_creation_input_tokens"))
        prompt = whole(details.get("input_tokens"))
        return usage(
            None if prompt is None else prompt + (read or 0) + (written or 0),
            whole(details.get("output_tokens")),
            read if read is not None else _inner(details, "input_tokens_details", "cached_tokens"),
            _inner(details, "output_tokens_details", "reasoning_tokens"),
        )
    return _from_buckets(details)


def _inner(details: Mapping[str, Json], group: str, key: str) -> int | None:
    held = details.get(group)
    return whole(held.get(key)) if isinstance(held, Mapping) else None


def _from_buckets(details: Mapping[str, Json]) -> Usage | None:
    prompt, completion, total = (whole(details.get(key)) for key in ("input", "output", "total"))
    if prompt is None and completion is None:
        return None
    more_in = {key: n for key, raw in details.items() if key.startswith("input_") and (n := whole(raw))}
    more_out = {key: n for key, raw in details.items() if key.startswith("output_") and (n := whole(raw))}
    disjoint = total is None or total != (prompt or 0) + (completion or 0)
    if disjoint:
        prompt = prompt if prompt is None and not more_in else (prompt or 0) + sum(more_in.values())
        completion = completion if completion is None and not more_out else (completion or 0) + sum(more_out.values())
    return usage(
        prompt if disjoint else prompt or 0,
        completion if disjoint else completion or 0,
        sum(n for key, n in more_in.items() if "cache" in key),
        sum(n for key, n in more_out.items() if "reasoning" in key),
    )

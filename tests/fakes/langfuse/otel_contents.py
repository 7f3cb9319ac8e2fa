"""What a Langfuse takes for the input and output of a span, and what it leaves of the other attributes.

Grounded in `extractInputAndOutput` of `packages/shared/src/server/otel/OtelIngestionProcessor.ts` (langfuse/langfuse,
version 4, summer of 2026). The first convention that the span follows gives both, and the contents of **all**
conventions are struck from the attributes that are kept, so what a span says twice is kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from sidejudge.integrations.raw import RawSpan
from tests.fakes.langfuse.otel_values import listed, plain, plained, read, text

STRUCK = frozenset((
    "langfuse.trace.input", "langfuse.trace.output", "langfuse.observation.input", "langfuse.observation.output",
    "ai.prompt.messages", "ai.prompt", "ai.toolCall.args", "ai.response.text", "ai.result.text", "ai.toolCall.result",
    "ai.response.object", "ai.result.object", "ai.response.toolCalls", "ai.result.toolCalls",
    "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_call_args",
    "gcp.vertex.agent.tool_response", "prompt", "all_messages_events", "events", "lk.input_text", "lk.user_transcript",
    "lk.chat_ctx", "lk.user_input", "lk.function_tool.output", "lk.response.text", "mlflow.spanInputs",
    "mlflow.spanOutputs", "traceloop.entity.input", "traceloop.entity.output", "input.value", "output.value",
    "final_result", "pydantic_ai.all_messages", "gen_ai.system_instructions", "input", "output",
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "genkit:input", "genkit:output",
))  # fmt: skip
STRUCK_PREFIXES = ("gen_ai.prompt", "gen_ai.completion", "llm.input_messages", "llm.output_messages",
                   "langfuse.trace.metadata", "langfuse.observation.metadata", "ai.telemetry.metadata")  # fmt: skip
ASKED_EVENTS = tuple(f"gen_ai.{role}.message" for role in ("system", "user", "assistant", "tool"))
DETAILS = "gen_ai.client.inference.operation.details"
PAIRS = (("mlflow.spanInputs", "mlflow.spanOutputs"), ("traceloop.entity.input", "traceloop.entity.output"),
         ("input.value", "output.value"), ("input", "output"))  # fmt: skip
LIVEKIT = (("lk.input_text", "lk.user_transcript", "lk.chat_ctx"), ("lk.function_tool.output", "lk.response.text"))
FLATTENED = (("gen_ai.prompt", "gen_ai.completion"), ("llm.input_messages", "llm.output_messages"))


class Said(NamedTuple):
    """A span's attributes, events and scope, as the server reads them."""

    held: Mapping[str, Any]
    events: list[tuple[str, Mapping[str, Any]]]
    scope: str


Pair: TypeAlias = tuple[Any, Any]
"""Input and output; None for neither."""
Details: TypeAlias = Literal["none", "first", "all"]


def contents_of(span: RawSpan, details: Details = "first") -> Pair:
    """Input and output as the server has them: text as it came, or an object that it made.

    ``details`` is how many events `DETAILS` it reads. Servers before July 2026 know none (langfuse/langfuse#14930);
    which later ones read of several is not established, so they are taken to read the first.
    """
    reported = [plained(event.attributes) for event in span.events if event.name == DETAILS]
    reported = {"none": [], "first": reported[:1], "all": reported}[details]
    merged = {key: value for each in reported for key, value in each.items()}
    events = [(event.name, plained(event.attributes)) for event in span.events if event.name != DETAILS]
    stated = Said(plained(span.attributes), [(DETAILS, merged), *events] if merged else events, span.scope_name)
    return next((pair for rule in RULES if (pair := rule(stated)) is not None), (None, None))


def kept_of(span: RawSpan) -> dict[str, str]:
    """The attributes that stay beside them, as text."""
    return {
        key: text(plain(value))
        for key, value in span.attributes.items()
        if key not in STRUCK and not key.startswith(STRUCK_PREFIXES)
    }


def _own(stated: Said) -> Pair | None:
    pair = (stated.held.get("langfuse.observation.input"), stated.held.get("langfuse.observation.output"))
    return None if pair == (None, None) else pair


def _genkit(stated: Said) -> Pair | None:
    if stated.scope != "genkit-tracer":
        return None
    return _part(stated.held.get("genkit:input"), "messages"), _part(stated.held.get("genkit:output"), "message")


def _vercel(stated: Said) -> Pair | None:
    return _of_vercel(stated.held) if stated.scope == "ai" else None


def _details(stated: Said) -> Pair | None:
    for name, reported in stated.events:
        if name == DETAILS and ("gen_ai.input.messages" in reported or "gen_ai.output.messages" in reported):
            return _instructed(reported), reported.get("gen_ai.output.messages")
    return None


def _events(stated: Said) -> Pair | None:
    requested = [{"role": name[7:-8], **reported} for name, reported in stated.events if name in ASKED_EVENTS]
    chosen = [reported for name, reported in stated.events if name == "gen_ai.choice"]
    return (requested or None, (chosen[0] if len(chosen) == 1 else chosen) or None) if requested or chosen else None


def _pairs(stated: Said, *pairs: tuple[str, str]) -> Pair | None:
    """The first pair of attributes of which either says anything."""
    held = stated.held
    return next(((held.get(one), held.get(other)) for one, other in pairs if held.get(one) or held.get(other)), None)


def _livekit(stated: Said) -> Pair | None:
    requested, answered = (next((stated.held[key] for key in keys if stated.held.get(key)), None) for keys in LIVEKIT)
    return (requested, answered) if requested or answered else None


def _pydantic(stated: Said) -> Pair | None:
    if stated.scope != "pydantic-ai" or _pairs(stated, ("pydantic_ai.all_messages", "final_result")) is None:
        return None
    return _instructed(stated.held, "pydantic_ai.all_messages"), stated.held.get("final_result")


def _flattened(stated: Said) -> Pair | None:
    for one, other in FLATTENED:
        if any(key.startswith((one, other)) for key in stated.held):
            return _unflattened(stated.held, one), _unflattened(stated.held, other)
    return None


def _conventions(stated: Said) -> Pair | None:
    pair = _pairs(stated, ("gen_ai.input.messages", "gen_ai.output.messages"))
    return None if pair is None else (_instructed(stated.held), pair[1])


RULES: tuple[Callable[[Said], Pair | None], ...] = (
    _own, _genkit, _vercel, _details, _events, lambda stated: _of_adk(stated.held),
    lambda stated: _pairs(stated, ("prompt", "all_messages_events")), _livekit,
    lambda stated: _of_logfire_events(stated.held.get("events")), lambda stated: _pairs(stated, *PAIRS), _pydantic,
    lambda stated: _pairs(stated, ("tool_arguments", "tool_response")), _flattened, _conventions,
    lambda stated: _pairs(stated, ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")),
)  # fmt: skip
"""As the server tries them."""


def _of_vercel(held: Mapping[str, Any]) -> tuple[Any, Any]:
    requested = next(
        (held[key] for key in ("ai.prompt.messages", "ai.prompt", "ai.toolCall.args") if key in held), None
    )
    if "ai.response.text" in held and "ai.response.toolCalls" in held:
        stated = {"content": held["ai.response.text"], "tool_calls": held["ai.response.toolCalls"]}
        return requested, text({"role": "assistant", **stated})
    if held.get("ai.response.text"):
        return requested, held["ai.response.text"]
    keys = ("ai.result.text", "ai.toolCall.result", "ai.response.object", "ai.result.object", "ai.response.toolCalls",
            "ai.result.toolCalls")  # fmt: skip
    return requested, next((held[key] for key in keys if key in held), None)


def _part(value: Any, key: str) -> Any:
    """Of Genkit's object the messages, where it has any."""
    whole = read(value)
    return whole.get(key, whole) if isinstance(whole, dict) else whole


def _of_adk(held: Mapping[str, Any]) -> tuple[Any, Any] | None:
    requested, answered = (held.get(f"gcp.vertex.agent.llm_{side}") for side in ("request", "response"))
    if requested in (None, "", "{}"):
        requested = held.get("gcp.vertex.agent.tool_call_args")
    if answered in (None, "", "{}"):
        answered = held.get("gcp.vertex.agent.tool_response")
    return (requested, answered) if requested or answered else None


def _of_logfire_events(value: Any) -> tuple[Any, Any] | None:
    reported = [each for each in listed(read(value)) if isinstance(each, dict)]
    chosen = next((each for each in reported if each.get("event.name") == "gen_ai.choice"), None)
    requested = [each for each in reported if each.get("event.name") != "gen_ai.choice"]
    return (requested or None, chosen) if reported else None


def _instructed(held: Mapping[str, Any], key: str = "gen_ai.input.messages") -> Any:
    """Instructions of the system before the messages, unless one of them is the system's."""
    requested, instructions = held.get(key), held.get("gen_ai.system_instructions")
    stated = read(requested)
    if not requested or not instructions or not isinstance(stated, list):
        return requested
    if any(isinstance(each, dict) and each.get("role") == "system" for each in stated):
        return requested
    parts = read(instructions)
    listed = parts if isinstance(parts, list) else [parts]
    if listed and all(isinstance(each, dict) and "parts" in each for each in listed):
        first = [{"role": "system", **each} for each in listed]
    else:
        texts = [each.get("content") if isinstance(each, dict) else each for each in listed]
        joined = "\n".join(each for each in texts if isinstance(each, str))
        first = [{"role": "system", "content": joined}] if joined else []
    merged = [*first, *stated]
    return text(merged) if isinstance(requested, str) else merged


def _unflattened(held: Mapping[str, Any], prefix: str) -> Any:
    """Dotted keys as the objects that they were; numbers are places of lists."""
    if prefix in held:
        return held[prefix]
    made: dict[str, Any] = {}
    for key, value in held.items():
        if key.startswith(prefix):
            *path, last = key.removeprefix(prefix + ".").split(".")
            at = made
            for step in path:
                at = at.setdefault(step, {})
            at[last] = value
    return _listed(made)


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(each) for key, each in value.items()}
    if inner and all(key.isdigit() for key in inner):
        return [inner.get(str(index)) for index in range(max(map(int, inner)) + 1)]
    return inner

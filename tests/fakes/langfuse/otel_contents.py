"""What a Langfuse takes for the input and output of a span, and what it leaves of the other attributes.

Grounded in `extractInputAndOutput` of `packages/shared/src/server/otel/OtelIngestionProcessor.ts` and in
`normalizeToolMetadataForObservation` beside it (langfuse/langfuse, version 4, summer of 2026). The first convention
that the span follows gives both, and the contents of **all** conventions are struck from the attributes that are kept,
so what a span says twice is kept once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from integrations.raw import AttributeValue, RawSpan

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
FLATTENED = (("gen_ai.prompt", "gen_ai.completion"), ("llm.input_messages", "llm.output_messages"))
_TOOL = re.compile(r"llm\.tools\.(\d+)\.tool\.json_schema")


def contents_of(span: RawSpan, *, details: bool = True) -> tuple[Any, Any]:
    """Input and output as the server has them: text as it came, or an object that it made.

    Servers before July 2026 do not know the event `DETAILS` (langfuse/langfuse#14930); later ones are taken to read
    the first.
    """
    held = {key: plain(value) for key, value in span.attributes.items()}
    told = [(event.name, event.attributes) for event in span.events if details or event.name != DETAILS]
    return _found(held, told, span.scope_name)


def kept_of(span: RawSpan) -> dict[str, str]:
    """The attributes that stay beside them, as text."""
    return {
        key: text(plain(value))
        for key, value in span.attributes.items()
        if key not in STRUCK and not key.startswith(STRUCK_PREFIXES)
    }


def with_tools(asked: Any, kept: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Definitions of tools go from the kept attributes to the input, which becomes an object for them."""
    tools: list[Any] = []
    left = dict(kept)
    for key in ("ai.prompt.tools", "gen_ai.tool.definitions"):
        listed = [read(each) for each in _list(read(kept.get(key)))]
        if listed and all(_is_tool(each) for each in listed):
            tools += listed
            del left[key]
    requested = read(kept.get("model_request_parameters"))
    if isinstance(requested, dict) and (functions := _list(requested.pop("function_tools", None))):
        tools += functions
        left["model_request_parameters"] = text(requested)
    for key in sorted((key for key in kept if _TOOL.fullmatch(key)), key=lambda key: int(_TOOL.fullmatch(key)[1])):  # type: ignore[index]
        if _is_tool(tool := read(kept[key])):
            tools.append(tool)
            del left[key]
    if not tools:
        return asked, dict(kept)
    whole = read(asked)
    if isinstance(whole, list):
        return {"messages": whole, "tools": tools}, left
    if isinstance(whole, dict):
        already = _list(whole.get("tools"))
        names = {_tool_name(each) for each in already}
        return {**whole, "tools": [*already, *(each for each in tools if _tool_name(each) not in names)]}, left
    if whole is None:
        return {"tools": tools}, left
    return ({"prompt": whole, "tools": tools}, left) if isinstance(whole, str) else (asked, dict(kept))


def _found(held: Mapping[str, Any], events: list[tuple[str, Mapping[str, Any]]], scope: str) -> tuple[Any, Any]:  # noqa: C901, PLR0911 - one rule after the other, as the server has them
    if any(held.get(f"langfuse.observation.{side}") is not None for side in ("input", "output")):
        return held.get("langfuse.observation.input"), held.get("langfuse.observation.output")
    if scope == "ai":
        return _of_vercel(held)
    for name, said in events:
        if name == DETAILS and ("gen_ai.input.messages" in said or "gen_ai.output.messages" in said):
            own = {key: plain(value) for key, value in said.items()}
            return _instructed(own), own.get("gen_ai.output.messages")
    asked = [{"role": name[7:-8], **_plain(said)} for name, said in events if name in ASKED_EVENTS]
    chosen = [_plain(said) for name, said in events if name == "gen_ai.choice"]
    if asked or chosen:
        return asked or None, (chosen[0] if len(chosen) == 1 else chosen) or None
    if found := _of_adk(held):
        return found
    if held.get("prompt") or held.get("all_messages_events"):
        return held.get("prompt"), held.get("all_messages_events")
    if found := _of_logfire_events(held.get("events")):
        return found
    for one, other in PAIRS:
        if held.get(one) or held.get(other):
            return held.get(one), held.get(other)
    if scope == "pydantic-ai" and (held.get("pydantic_ai.all_messages") or held.get("final_result")):
        return _instructed(held, "pydantic_ai.all_messages"), held.get("final_result")
    if held.get("tool_arguments") or held.get("tool_response"):
        return held.get("tool_arguments"), held.get("tool_response")
    for one, other in FLATTENED:
        if any(key.startswith((one, other)) for key in held):
            return _unflattened(held, one), _unflattened(held, other)
    if held.get("gen_ai.input.messages") or held.get("gen_ai.output.messages"):
        return _instructed(held), held.get("gen_ai.output.messages")
    return held.get("gen_ai.tool.call.arguments"), held.get("gen_ai.tool.call.result")


def _of_vercel(held: Mapping[str, Any]) -> tuple[Any, Any]:
    asked = next((held[key] for key in ("ai.prompt.messages", "ai.prompt", "ai.toolCall.args") if key in held), None)
    if "ai.response.text" in held and "ai.response.toolCalls" in held:
        said = {"content": held["ai.response.text"], "tool_calls": held["ai.response.toolCalls"]}
        return asked, text({"role": "assistant", **said})
    if held.get("ai.response.text"):
        return asked, held["ai.response.text"]
    keys = ("ai.result.text", "ai.toolCall.result", "ai.response.object", "ai.result.object", "ai.response.toolCalls",
            "ai.result.toolCalls")  # fmt: skip
    return asked, next((held[key] for key in keys if key in held), None)


def _of_adk(held: Mapping[str, Any]) -> tuple[Any, Any] | None:
    asked, answered = (held.get(f"gcp.vertex.agent.llm_{side}") for side in ("request", "response"))
    if asked in (None, "", "{}"):
        asked = held.get("gcp.vertex.agent.tool_call_args")
    if answered in (None, "", "{}"):
        answered = held.get("gcp.vertex.agent.tool_response")
    return (asked, answered) if asked or answered else None


def _of_logfire_events(value: Any) -> tuple[Any, Any] | None:
    told = [each for each in _list(read(value)) if isinstance(each, dict)]
    chosen = next((each for each in told if each.get("event.name") == "gen_ai.choice"), None)
    asked = [each for each in told if each.get("event.name") != "gen_ai.choice"]
    return (asked or None, chosen) if told else None


def _instructed(held: Mapping[str, Any], key: str = "gen_ai.input.messages") -> Any:
    """Instructions of the system before the messages, unless one of them is the system's."""
    asked, instructions = held.get(key), held.get("gen_ai.system_instructions")
    said = read(asked)
    if not asked or not instructions or not isinstance(said, list):
        return asked
    if any(isinstance(each, dict) and each.get("role") == "system" for each in said):
        return asked
    parts = read(instructions)
    listed = parts if isinstance(parts, list) else [parts]
    if listed and all(isinstance(each, dict) and "parts" in each for each in listed):
        first = [{"role": "system", **each} for each in listed]
    else:
        texts = [each.get("content") if isinstance(each, dict) else each for each in listed]
        joined = "\n".join(each for each in texts if isinstance(each, str))
        first = [{"role": "system", "content": joined}] if joined else []
    merged = [*first, *said]
    return text(merged) if isinstance(asked, str) else merged


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


def _is_tool(value: Any) -> bool:
    return isinstance(value, dict) and bool(_tool_name(value))


def _tool_name(value: Any) -> str:
    inner = value.get("function") if isinstance(value.get("function"), dict) else value
    name = inner.get("name")
    return name if isinstance(name, str) else ""


def _plain(attributes: Mapping[str, AttributeValue]) -> dict[str, Any]:
    return {key: plain(value) for key, value in attributes.items()}


def plain(value: AttributeValue) -> Any:
    """A value of OTLP as the server reads it: what is no scalar or list stays as OTLP writes it, as JSON text."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return text(_as_otlp(value)) if value is None or isinstance(value, dict | bytes) else value


def _as_otlp(value: AttributeValue) -> Any:
    if isinstance(value, dict):
        entries: Iterable[Any] = ({"key": key, "value": _as_otlp(each)} for key, each in value.items())
        return {"kvlistValue": {"values": list(entries)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_as_otlp(each) for each in value]}}
    for kind, name in ((bool, "boolValue"), (str, "stringValue"), (float, "doubleValue")):
        if isinstance(value, kind):
            return {name: value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {} if value is None else {"bytesValue": value.hex()}


def read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

"""Origins: where the contents of a row stood on the span that another client than Langfuse's own sent.

Langfuse takes the input and output of a span from the first of the conventions that it follows, and keeps the other
attributes under ``attributes.*`` in the metadata (its ``OtelIngestionProcessor``). They show which convention it was,
so the contents go back to where they were, and the client's own dialect reads the span as if it had come directly. What
Langfuse strikes stays lost: log records, exceptions, and contents that a span holds a second time in another
convention. Each rule of ``contents`` undoes one of those by which Langfuse takes contents (``extractInputAndOutput``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sidejudge.integrations.raw import AttributeValue, RawEvent
from sidejudge.scoring.trace.jsontext import mapping
from sidejudge.scoring.trace.span import Json

from .pages import Row

_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
_ASKED, _ANSWERED = "gen_ai.input.messages", "gen_ai.output.messages"
_DETAILS, _CHOICE = "gen_ai.client.inference.operation.details", "gen_ai.choice"
_ROLES: Final = frozenset(("system", "user", "assistant", "tool"))
_OF_MLFLOW: Final = "mlflow.spanType"
"""MLflow adds it to spans of clients of the conventions too, which keep their contents as they do without it."""
_BY_SIGN: Final = (
    (_OF_MLFLOW, "mlflow.spanInputs", "mlflow.spanOutputs"),
    ("traceloop.span.kind", "traceloop.entity.input", "traceloop.entity.output"),
    ("openinference.span.kind", "input.value", "output.value"),
    ("langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion"),
)
"""A sign that Langfuse leaves on the span, and where the contents stand on spans that bear it; in its own order."""
_BY_SCHEMA: Final = (
    ("prompt", "all_messages_events"), ("input", "output"), ("pydantic_ai.all_messages", "final_result"),
    (_ASKED, _ANSWERED), (_ARGUMENTS, _RESULT),
)  # fmt: skip
"""Where they may stand on spans that list their attributes, as Logfire and Pydantic AI do; in Langfuse's order."""
_CONVENTIONS: Final = (
    "gen_ai.", "openinference.", "traceloop.", "langsmith.", "mlflow.", "gcp.vertex.agent.", "logfire.", "haystack.",
    "llm.",
)  # fmt: skip
"""Prefixes of attributes that one of the dialects reads."""
DEEPEST: Final = 8
"""Levels that are flattened; hostile contents could have thousands."""
_SDK: Final = "langfuse-sdk"


def read(value: Json) -> Json:
    """JSON objects and lists as they are; any other text is one, for an answer ``30`` is a text. Empty is absent."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            found: Json = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found
    return None if value == "" else value


def text(value: object) -> str:
    """The value as it is sent: text, or JSON; "" for a value too deep to write."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Those that are there, as text."""
    return {key: text(value) for key, value in values.items() if value is not None}


class Contents(NamedTuple):
    """Attributes, whose values are not written as text yet (None for none), or events."""

    attributes: Mapping[str, Json]
    events: tuple[RawEvent, ...] = ()


def contents(
    kept: Mapping[str, AttributeValue], scope: str, requested: Json, answered: Json, at_ns: int
) -> Contents | None:
    """The span's attributes that held input and output, given the attributes that Langfuse kept; None if unknown.

    Events get the time ``at_ns``.
    """
    if scope == "ai":
        return Contents(_of_vercel(kept, requested, answered))
    if requested is None and answered is None:
        return Contents({})
    return _of_attributes(kept, requested, answered) or _of_conventions(kept, requested, answered, at_ns)


def reported(kept: Mapping[str, AttributeValue]) -> bool:
    """Whether the kept attributes follow a convention that a dialect reads."""
    return any(key.startswith(_CONVENTIONS) for key in kept)


def _of_attributes(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> Contents | None:
    """Contents in words of the client's own."""
    for sign, one, other in _BY_SIGN:
        if sign in kept and not (sign == _OF_MLFLOW and "gen_ai.operation.name" in kept):
            again = _stated_again(kept, requested, answered) if one == "input.value" else {}
            return Contents({**again, one: requested, other: answered})
    if any(key.startswith("gcp.vertex.agent.") for key in kept):
        return Contents(_of_adk(kept, requested, answered))
    if _numbered(requested) or _numbered(answered):
        events: list[Json] = [
            each for side in (requested, answered) for each in (side if isinstance(side, list) else [side]) if each
        ]
        return Contents({"events": events})
    if "llm.request.type" in kept and all(each is None or _plain(each) for each in (requested, answered)):
        return Contents({**_flat("gen_ai.prompt", requested), **_flat("gen_ai.completion", answered)})
    stated = kept.get("logfire.json_schema")
    schema = read(stated) if isinstance(stated, str) else None
    listed = mapping(mapping(schema).get("properties"))
    there = {key for key, value in listed.items() if value != {"type": "null"}}
    keys = next((pair for pair in _BY_SCHEMA if not there.isdisjoint(pair)), None)
    return None if keys is None else Contents(dict(zip(keys, (requested, answered), strict=True)))


def _stated_again(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> dict[str, Json]:
    """The contents in GenAI attributes; of a framework that wrote OpenInference's too, Langfuse kept only the latter.

    A lone text is a message there.
    """
    if "gen_ai.operation.name" not in kept:
        return {}
    if _is_tool(kept):
        return {_ARGUMENTS: requested, _RESULT: answered}
    sides = ((_ASKED, "user", requested), (_ANSWERED, "assistant", answered))
    return {
        key: [{"role": role, "content": stated}] if isinstance(stated, str) else stated for key, role, stated in sides
    }


def _of_conventions(kept: Mapping[str, AttributeValue], requested: Json, answered: Json, at_ns: int) -> Contents | None:
    """Contents in the words of the GenAI conventions, or in the plain ones of spans that do not follow these."""
    if not any(key.startswith("gen_ai.") for key in kept):
        return Contents({"input": requested, "output": answered}) if reported(kept) else None
    if events := _of_events(requested, answered, at_ns):
        return Contents({}, events)
    stated = {_ASKED: requested, _ANSWERED: answered}
    if not _is_tool(kept):
        return Contents(stated)
    if _messages(requested) or _messages(answered):
        return Contents({}, (RawEvent(name=_DETAILS, time_ns=at_ns, attributes=texts(stated)),))
    return Contents({_ARGUMENTS: requested, _RESULT: answered})


def _numbered(value: Json) -> bool:
    """Whether a value is an event of Logfire or Pydantic AI, or a list of such events."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and "event.name" in first


def _plain(value: Json) -> bool:
    """Whether a value is a list of messages without the conventions' parts, as OpenLLMetry flattened them earlier."""
    return isinstance(value, list) and all(
        isinstance(each, dict) and "role" in each and "parts" not in each for each in value
    )


def _flat(key: str, value: Json, depth: int = DEEPEST) -> dict[str, Json]:
    """Lists and objects, flattened back into dotted keys."""
    if depth and isinstance(value, list | dict):
        inner = enumerate(value) if isinstance(value, list) else value.items()
        return {at: held for step, each in inner for at, held in _flat(f"{key}.{step}", each, depth - 1).items()}
    return {key: value}


def _is_tool(kept: Mapping[str, AttributeValue]) -> bool:
    operation = kept.get("gen_ai.operation.name")
    return operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in kept)


def _of_vercel(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> dict[str, Json]:
    """The AI SDK up to version 6, by the span's operation."""
    operation = str(kept.get("ai.operationId") or "")
    if operation == "ai.toolCall":
        return {"ai.toolCall.args": requested, "ai.toolCall.result": answered}
    found: dict[str, Json] = {"ai.prompt.messages" if ".do" in operation else "ai.prompt": requested}
    if isinstance(answered, dict) and answered.keys() == {"role", "content", "tool_calls"}:
        found |= {"ai.response.text": answered["content"], "ai.response.toolCalls": answered["tool_calls"]}
    elif "Object" in operation:
        found["ai.response.object"] = answered
    else:
        found["ai.response.toolCalls" if isinstance(answered, list) else "ai.response.text"] = answered
    return found


def _of_adk(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> dict[str, Json]:
    """Schema 1 has words of its own for calls and tools; agents and schema 2 keep to the conventions."""
    if _is_tool(kept):
        return {"gcp.vertex.agent.tool_call_args": requested, "gcp.vertex.agent.tool_response": answered}
    if isinstance(requested, dict) or isinstance(answered, dict):
        return {"gcp.vertex.agent.llm_request": requested, "gcp.vertex.agent.llm_response": answered}
    return {_ASKED: requested, _ANSWERED: answered}


def _of_events(requested: Json, answered: Json, at_ns: int) -> tuple[RawEvent, ...]:
    """Contents that Langfuse put together from the older conventions' events, one object an event; else none.

    A choice is given by its ``message`` with what belongs to it beside it.
    """
    chosen = answered if isinstance(answered, list) else [answered]
    spoken = requested if isinstance(requested, list) else []
    choices = [each for each in chosen if isinstance(each, dict) and "message" in each and "role" not in each]
    turns = [each for each in spoken if isinstance(each, dict) and each.get("role") in _ROLES and "parts" not in each]
    if len(choices) < len(chosen) or len(turns) < len(spoken):
        return ()
    events = [(f"gen_ai.{each['role']}.message", {k: v for k, v in each.items() if k != "role"}) for each in turns]
    events += [(_CHOICE, each) for each in choices]
    return tuple(RawEvent(name=name, time_ns=at_ns, attributes=texts(stated)) for name, stated in events)


def _messages(value: Json) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) and "parts" in each for each in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """The rest of a span besides the attributes that Langfuse kept. ``name`` is its own one, None for the row's."""

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    events: tuple[RawEvent, ...] = ()
    name: str | None = None


def origin(row: Row, kept: Mapping[str, AttributeValue], scope: str, at_ns: int) -> RowOrigin | None:
    """The origin of a row with these attributes and this instrumentation scope.

    None for a row of a Langfuse SDK, of a client that used Langfuse's own words, and where nothing shows it: such a row
    is read as Langfuse reads it. Events get the time ``at_ns``.
    """
    if not scope or scope.startswith(_SDK) or any(key.startswith("langfuse.observation.") for key in kept):
        return None
    requested, tools = _without_tools(read(row.get("input")))
    answered = read(row.get("output"))
    found = contents(kept, scope, requested, answered, at_ns)
    if found is None or not (
        found.attributes or found.events or reported(kept) or row.get("type") in (None, "", "SPAN")
    ):
        return None
    more: dict[str, AttributeValue] = {**_cost(row, kept)}
    whole = ((answered, row.get("output")), (requested, row.get("input") if tools is None else None))
    for key, value in found.attributes.items():
        # What was not taken apart is the text that came, to the letter: an answer may be an object.
        came = next((stated for side, stated in whole if side is value and isinstance(stated, str)), None)
        if value is not None:
            more[key] = text(value) if came is None else came
    if tools is not None:
        more["ai.prompt.tools" if scope == "ai" else "gen_ai.tool.definitions"] = text(tools)
    return RowOrigin(attributes=more, events=found.events, name=_name(row, kept))


def _cost(row: Row, kept: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """The cost of a model's call as Langfuse computed it, where the client sent none."""
    total = mapping(row.get("costDetails")).get("total")
    key = "llm.cost.total" if "openinference.span.kind" in kept else "gen_ai.usage.cost"
    if row.get("type") != "GENERATION" or not isinstance(total, int | float) or not reported(kept):
        return {}
    return {} if any("cost" in held for held in kept) else {key: total}


def _name(row: Row, kept: Mapping[str, AttributeValue]) -> str | None:
    """Langfuse names some spans by their message, and keeps their own name as an attribute."""
    for sign, name in (("logfire.msg", "logfire.msg_template"), ("ai.operationId", "ai.operationId")):
        own = kept.get(name)
        if sign in kept and isinstance(own, str) and own and row.get("name") != own:
            return own
    return None


def _without_tools(requested: Json) -> tuple[Json, Json]:
    """Versions from 4 on put the tools that a model was offered into the input, which becomes an object for them."""
    if isinstance(requested, dict) and isinstance(tools := requested.get("tools"), list) and tools:
        others = requested.keys() - {"tools"}
        if not others:
            return None, tools
        if others == {"messages"} and isinstance(requested["messages"], list):
            return requested["messages"], tools
        if others == {"prompt"} and isinstance(requested["prompt"], str):
            return requested["prompt"], tools
    return requested, None

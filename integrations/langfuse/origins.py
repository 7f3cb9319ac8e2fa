"""Origins: where the contents of a row stood on the span that another client sent.

Langfuse takes the input and output of a span from the first of the conventions that it follows, and keeps the other
attributes under ``attributes.*`` in the metadata (its ``OtelIngestionProcessor``). They tell which convention it was,
so the contents go back to where they were, and the client's own dialect reads the span as if it had come directly. What
Langfuse strikes stays lost: log records, exceptions, and what a span said a second time in other words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from integrations.raw import AttributeValue, RawEvent

from .jsontext import read, text, texts
from .observations import Row

_SDK: Final = "langfuse-sdk"
_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
_ASKED, _ANSWERED = "gen_ai.input.messages", "gen_ai.output.messages"
_DETAILS, _CHOICE = "gen_ai.client.inference.operation.details", "gen_ai.choice"
_ROLES: Final = frozenset(("system", "user", "assistant", "tool"))
_BY_SIGN: Final = (
    ("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"),
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
"""What attributes begin with that one of the dialects reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a span had besides the attributes that Langfuse kept. ``name`` is its own one, None for the row's."""

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    events: tuple[RawEvent, ...] = ()
    name: str | None = None


class _Contents(NamedTuple):
    """Attributes whose values are not written as text yet, None for none; or events."""

    attributes: Mapping[str, Any]
    events: tuple[RawEvent, ...] = ()


def origin(row: Row, kept: Mapping[str, AttributeValue], scope: str, at_ns: int) -> Origin | None:
    """The origin of a row with these attributes and this instrumentation scope.

    None for a row of a Langfuse SDK, of a client that used Langfuse's own words, and where nothing tells: such a row is
    read as Langfuse reads it. Events get the time ``at_ns``.
    """
    if not scope or scope.startswith(_SDK) or any(key.startswith("langfuse.observation.") for key in kept):
        return None
    asked, tools = _without_tools(read(row.get("input")))
    answered = read(row.get("output"))
    if scope == "ai":
        found: _Contents | None = _Contents(_of_vercel(kept, asked, answered, tools))
    elif asked is None and answered is None:
        found = _Contents({}) if _told(kept) or row.get("type") in (None, "", "SPAN") else None
    else:
        found = _of_attributes(kept, asked, answered) or _of_conventions(kept, asked, answered, at_ns)
    if found is None:
        return None
    came = [(each, row.get(side)) for each, side in ((asked, "input"), (answered, "output"))]
    whole = {id(each): said for each, said in came if isinstance(each, dict | list) and tools is None}
    # What was not taken apart is the text that came, to the letter: an answer may be an object.
    written = {key: said if isinstance(said := whole.get(id(value)), str) else text(value)
               for key, value in found.attributes.items() if value is not None}  # fmt: skip
    more: dict[str, AttributeValue] = {**_cost(row, kept), **written}
    if tools is not None and scope != "ai":
        more["gen_ai.tool.definitions"] = text(tools)
    return Origin(attributes=more, events=found.events, name=_name(row, kept))


def _cost(row: Row, kept: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """What Langfuse computed that a model's call cost, where the client told nothing of it."""
    details = row.get("costDetails")
    total = details.get("total") if isinstance(details, Mapping) else None
    key = "llm.cost.total" if "openinference.span.kind" in kept else "gen_ai.usage.cost"
    if row.get("type") != "GENERATION" or not isinstance(total, int | float) or not _told(kept):
        return {}
    return {} if any("cost" in held for held in kept) else {key: total}


def _of_attributes(kept: Mapping[str, AttributeValue], asked: Any, answered: Any) -> _Contents | None:
    """Contents in words of the client's own."""
    for sign, one, other in _BY_SIGN:
        if sign in kept:
            again = _said_again(kept, asked, answered) if one == "input.value" else {}
            return _Contents({**again, one: asked, other: answered})
    if any(key.startswith("gcp.vertex.agent.") for key in kept):
        return _Contents(_of_adk(kept, asked, answered))
    if _numbered(asked) or _numbered(answered):
        events = [each for side in (asked, answered) for each in (side if isinstance(side, list) else [side]) if each]
        return _Contents({"events": events})
    schema = read(kept.get("logfire.json_schema"))
    properties = schema.get("properties") if isinstance(schema, dict) else None
    listed = properties if isinstance(properties, dict) else {}
    there = {key for key, value in listed.items() if value != {"type": "null"}}
    keys = next((pair for pair in _BY_SCHEMA if not there.isdisjoint(pair)), None)
    return None if keys is None else _Contents(dict(zip(keys, (asked, answered), strict=True)))


def _said_again(kept: Mapping[str, AttributeValue], asked: Any, answered: Any) -> dict[str, Any]:
    """In the conventions' words: what a framework said in these, and OpenInference beside it, is kept in the latter's.

    A lone text is a message there.
    """
    if "gen_ai.operation.name" not in kept:
        return {}
    if _is_tool(kept):
        return {_ARGUMENTS: asked, _RESULT: answered}
    sides = ((_ASKED, "user", asked), (_ANSWERED, "assistant", answered))
    return {key: [{"role": role, "content": said}] if isinstance(said, str) else said for key, role, said in sides}


def _of_conventions(kept: Mapping[str, AttributeValue], asked: Any, answered: Any, at_ns: int) -> _Contents | None:
    """Contents in the words of the GenAI conventions, or in the plain ones of spans that do not follow these."""
    if not any(key.startswith("gen_ai.") for key in kept):
        return _Contents({"input": asked, "output": answered}) if _told(kept) else None
    if events := _of_events(asked, answered, at_ns):
        return _Contents({}, events)
    said = {_ASKED: asked, _ANSWERED: answered}
    if not _is_tool(kept):
        return _Contents(said)
    if _messages(asked) or _messages(answered):
        return _Contents({}, (RawEvent(name=_DETAILS, time_ns=at_ns, attributes=texts(said)),))
    return _Contents({_ARGUMENTS: asked, _RESULT: answered})


def _told(kept: Mapping[str, AttributeValue]) -> bool:
    """Whether what was kept is of a convention that a dialect reads."""
    return any(key.startswith(_CONVENTIONS) for key in kept)


def _numbered(value: Any) -> bool:
    """Events that Logfire and Pydantic AI put into one list, or one of them."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and "event.name" in first


def _is_tool(kept: Mapping[str, AttributeValue]) -> bool:
    operation = kept.get("gen_ai.operation.name")
    return operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in kept)


def _of_vercel(kept: Mapping[str, AttributeValue], asked: Any, answered: Any, tools: Any) -> dict[str, Any]:
    """The AI SDK up to version 6, by the operation that the span is of."""
    operation = str(kept.get("ai.operationId") or "")
    if operation == "ai.toolCall":
        return {"ai.toolCall.args": asked, "ai.toolCall.result": answered}
    found: dict[str, Any] = {"ai.prompt.messages" if ".do" in operation else "ai.prompt": asked}
    if isinstance(answered, dict) and answered.keys() == {"role", "content", "tool_calls"}:
        found |= {"ai.response.text": answered["content"], "ai.response.toolCalls": answered["tool_calls"]}
    elif "Object" in operation:
        found["ai.response.object"] = answered
    else:
        found["ai.response.toolCalls" if isinstance(answered, list) else "ai.response.text"] = answered
    return {**found, "ai.prompt.tools": tools or None}


def _of_adk(kept: Mapping[str, AttributeValue], asked: Any, answered: Any) -> dict[str, Any]:
    """Schema 1 has words of its own for calls and tools; agents and schema 2 keep to the conventions."""
    if _is_tool(kept):
        return {"gcp.vertex.agent.tool_call_args": asked, "gcp.vertex.agent.tool_response": answered}
    if isinstance(asked, dict) or isinstance(answered, dict):
        return {"gcp.vertex.agent.llm_request": asked, "gcp.vertex.agent.llm_response": answered}
    return {_ASKED: asked, _ANSWERED: answered}


def _of_events(asked: Any, answered: Any, at_ns: int) -> tuple[RawEvent, ...]:
    """Contents that Langfuse put together from the older conventions' events, one object an event; else none.

    A choice is told by its ``message`` with what belongs to it beside it.
    """
    chosen = answered if isinstance(answered, list) else [answered]
    spoken = asked if isinstance(asked, list) else []
    if not all(isinstance(each, dict) and "message" in each and "role" not in each for each in chosen):
        return ()
    if not all(isinstance(each, dict) and each.get("role") in _ROLES and "parts" not in each for each in spoken):
        return ()
    events = [(f"gen_ai.{each['role']}.message", {k: v for k, v in each.items() if k != "role"}) for each in spoken]
    events += [(_CHOICE, each) for each in chosen]
    return tuple(RawEvent(name=name, time_ns=at_ns, attributes=texts(said)) for name, said in events)


def _messages(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) and "parts" in each for each in value)


def _name(row: Row, kept: Mapping[str, AttributeValue]) -> str | None:
    """Langfuse calls some spans by what they say of themselves, and keeps the word that was their name."""
    for sign, name in (("logfire.msg", "logfire.msg_template"), ("ai.operationId", "ai.operationId")):
        own = kept.get(name)
        if sign in kept and isinstance(own, str) and own and row.get("name") != own:
            return own
    return None


def _without_tools(asked: Any) -> tuple[Any, Any]:
    """Versions from 4 on put the tools that a model was offered into the input, which becomes an object for them."""
    if isinstance(asked, dict) and isinstance(tools := asked.get("tools"), list):
        others = asked.keys() - {"tools"}
        if not others:
            return None, tools
        if others == {"messages"} and isinstance(asked["messages"], list):
            return asked["messages"], tools
        if others == {"prompt"} and isinstance(asked["prompt"], str):
            return asked["prompt"], tools
    return asked, None

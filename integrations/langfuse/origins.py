"""Origins: where the contents of a row stood on the span that another client sent.

Langfuse takes the input and output of a span from the first of the conventions that it follows, and keeps the other
attributes under ``attributes.*`` in the metadata (its ``OtelIngestionProcessor``). They show which convention it was,
so the contents go back to where they were, and the client's own dialect reads the span as if it had come directly. What
Langfuse strikes stays lost: log records, exceptions, and contents that a span holds a second time in another
convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sidejudge.integrations.langfuse.contents import read, text
from sidejudge.integrations.raw import AttributeValue, RawEvent
from sidejudge.scoring.trace.span import Json

from .contents import contents, reported
from .pages import Row

_SDK: Final = "langfuse-sdk"


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
    details = row.get("costDetails")
    total = details.get("total") if isinstance(details, Mapping) else None
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

"""Contents of a model call in events of the GenAI conventions, whether they came with the span or in log records.

Two forms: to 1.36 an event a message, named after its role, and ``gen_ai.choice`` for an answer; since then one event
``gen_ai.client.inference.operation.details`` with the same attributes that a span may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue, RawEvent
from sidejudge.scoring.trace.span import Json, Message

from . import messages, unwrap
from .reading import SpanReading

DETAILS = "gen_ai.client.inference.operation.details"
TOOL, CHOICE = "gen_ai.tool.message", "gen_ai.choice"
MESSAGES_IN, MESSAGES_OUT = "gen_ai.input.messages", "gen_ai.output.messages"
INSTRUCTIONS = "gen_ai.system_instructions"
CONTENT = "gen_ai.event.content"

_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    TOOL: "tool",
}  # fmt: skip
_MESSAGE_KEYS = frozenset({"role", "content", "tool_calls", "parts"})


class EventContents(Struct, frozen=True, kw_only=True):
    """Messages in and out, and the instructions (a list of parts, or text) where they stand apart from them."""

    requested: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    instructions: Json = None


def listed(value: AttributeValue) -> tuple[RawEvent, ...]:
    """Events that stand in an attribute, as a list of maps with the event's name in each."""
    found = unwrap.decoded(value)
    items: list[Any] = found if isinstance(found, list) else []
    return tuple(
        RawEvent(name=str(item.get("event.name", "")), time_ns=0, attributes=item)
        for item in items if isinstance(item, dict)
    )  # fmt: skip


def read(reading: SpanReading, events: Iterable[RawEvent], source: str = "event") -> EventContents:
    """Read contents from events; of two details events with the same contents the later one is taken.

    ``source`` is what the provenance calls them, before the name of each.
    """
    requested: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    instructions: Json = None
    old_in: list[Message] = []
    old_out: list[Message] = []
    for event in map(_opened, events):
        if event.name == DETAILS:
            # One event may hold both, or one the question and another the answer.
            if found := _details(reading, "input", event.attributes.get(MESSAGES_IN)):
                requested = found
            if found := _details(reading, "output", event.attributes.get(MESSAGES_OUT)):
                answered = found
            instructions = unwrap.decoded(event.attributes.get(INSTRUCTIONS)) or instructions
        elif (role := _ROLES.get(event.name)) is not None:
            if stated := _stated(_message(event.attributes, role)):
                old_in += stated
                reading.note("input", f"{source} {event.name}")
        elif event.name == CHOICE and (stated := _stated(_choice(event.attributes))):
            old_out += stated
            reading.note("output", f"{source} {event.name}")
    return EventContents(
        requested=requested or tuple(old_in), answered=answered or tuple(old_out), instructions=instructions
    )


def _opened(event: RawEvent) -> RawEvent:
    """The event with what Azure's libraries put into one attribute of it as JSON."""
    held = unwrap.decoded(event.attributes.get(CONTENT))
    return replace(event, attributes={**event.attributes, **held}) if isinstance(held, dict) else event


def _details(reading: SpanReading, field: str, value: AttributeValue) -> tuple[Message, ...]:
    found = messages.read(unwrap.decoded(value))
    if found:
        reading.note(field, f"event {DETAILS}")
    return found


def _message(attributes: Mapping[str, AttributeValue], role: str) -> Json:
    """An event's attributes are the message, apart from the role, which is in the event's name."""
    content = messages.content(attributes.get("content"))
    if role == "tool":
        return {"role": role, "content": content, "tool_call_id": unwrap.plain(attributes.get("id"))}
    calls = unwrap.decoded(attributes.get("tool_calls"))
    return {"role": role, "content": content, "tool_calls": calls, "name": unwrap.plain(attributes.get("name"))}


def _choice(attributes: Mapping[str, AttributeValue]) -> Json:
    """The answer stands under ``message``, as a message or as what is its content; else beside the choice's index."""
    held = unwrap.decoded(attributes.get("message"))
    if isinstance(held, dict) and not _MESSAGE_KEYS.isdisjoint(held):
        return {**held, "role": "assistant"}
    if "message" in attributes:
        return {"role": "assistant", "content": messages.content(attributes["message"])}
    return _message(attributes, "assistant")


def _stated(message: Json) -> tuple[Message, ...]:
    """The messages, without those whose contents the client left out: events are sent for them all the same."""
    return tuple(m for m in messages.read(message) if m.text or m.tool_calls)

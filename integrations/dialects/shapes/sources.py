"""Where a span may hold contents: its attributes, lists spread over numbered keys, and attributes of events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from sidejudge.integrations.contents_in_logs import is_call, is_message
from sidejudge.integrations.dialects import genai, messages, unwrap
from sidejudge.integrations.dialects.fields import map_at
from sidejudge.integrations.dialects.reading import SpanReading
from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.lexical.memory import by_names
from sidejudge.scoring.trace.span import Message

from . import kinds, speech, values
from .words import Meaning, directness, foreign, meaning, words

_NUMBERED: Final = re.compile(r"(.+?)[.:\[_](\d{1,4})(?:\]?[.:](.+)|\]?)")
_NAMED: Final = re.compile(r"(.*\b(?:inputs|outputs))\.([^.]+)")
"""A function's arguments, and what it returned, an attribute each: ``data.inputs.city``."""
_STEPS: Final = re.compile(r"[.:]|\[(?=\d)|\](?:\.|\Z)")
_MOST_EVENTS: Final = 256
_SPEAKERS: Final = frozenset({"system", "user", "assistant", "tool"})
_NO_EVENTS: Final = frozenset({"exception"})
_RETURNING: Final = frozenset(
    {"result", "response", "output", "end", "ended", "finished", "returned", "error", "failed"}
)
_TOOL_NAMES: Final = ("tool_name", "toolName", "tool", "name", "function")
_CALL_IDS: Final = ("tool_call_id", "call_id", "toolCallId", "id")
_PIECES: Final = frozenset({"chunk", "delta", "token", "stream", "partial", "piece", "streaming"})
"""Words in the name of an event that adds to an answer."""
_STREAMED: Final = frozenset({"content", "output", None})
_DEEPEST: Final = 10
_LONGEST: Final = 1 << 20
_MAYBE_WHOLE: Final = (None, "content", "kind")
_WENT_IN: Final = frozenset({
    "request", "input", "inputs", "prompt", "messages", "question", "query", "arguments", "args",
})  # fmt: skip
_CAME_OUT: Final = frozenset({"response", "output", "outputs", "completion", "reply", "answer", "result", "error"})
_CAME: Final = re.compile(f'"(?:{"|".join(sorted(_CAME_OUT))})": ?')
_ANOTHERS: Final = frozenset({"role", "choices", "candidates", "object", "description"})
"""Keys of a message, a response or a definition, which are no whole call."""


class NamedValue(Struct, frozen=True, kw_only=True):
    """One value, the meaning of its name, and how directly the name states it. Provenance shows ``name``.

    ``attribute``: it is one of the span's own, and not of an event.
    """

    name: str
    meaning: Meaning | None
    value: AttributeValue
    directness: int = 0
    attribute: bool = True


TURNS: Final = NamedValue(
    name="an event for each message", meaning="content", value=None, directness=2, attribute=False
)


class Plan(Struct, frozen=True, kw_only=True):
    """The meaning of a span's attribute names: single ones, and lists that are spread over several."""

    single: tuple[tuple[str, Meaning | None, int], ...]
    spread: tuple[tuple[str, Meaning | None, int, tuple[str, ...]], ...]


@by_names
def plan(keys: tuple[str, ...]) -> Plan:
    """The attributes of these names that may hold anything, foreign ones left out."""
    single: list[tuple[str, Meaning | None, int]] = []
    spread: dict[str, list[str]] = {}
    for key in keys:
        if foreign(key):
            continue
        if (numbered := _NUMBERED.fullmatch(key)) is not None:
            if not foreign(numbered[1]):  # a list of offered tools holds names, which alone may be anything
                spread.setdefault(numbered[1], []).append(key)
        elif (named := _NAMED.fullmatch(key)) is not None and meaning(key) is None:
            spread.setdefault(named[1], []).append(key)
        else:
            single.append((key, meaning(key), directness(key)))
    lists = ((prefix, meaning(prefix), directness(prefix), tuple(under)) for prefix, under in spread.items())
    return Plan(single=tuple(single), spread=tuple(lists))


def sources(raw: RawSpan, names: tuple[str, ...]) -> list[NamedValue]:
    """All sources of a span, attributes first."""
    planned, attributes = plan(names), raw.attributes
    found: list[NamedValue] = []
    for key, says, direct in planned.single:
        if (value := attributes[key]) is None:
            continue
        if says in _MAYBE_WHOLE and (whole := _whole_call(value)):
            found += _entries(key, whole)
            continue
        found.append(NamedValue(name=key, meaning=says, value=value, directness=direct))
        if says is None and isinstance(value, dict):  # a map of inputs and outputs
            found += _entries(key, value)
    for prefix, says, direct, keys in planned.spread:
        value = gathered(prefix, {key: attributes[key] for key in keys})
        found.append(NamedValue(name=f"{prefix}.*", meaning=says, value=value, directness=direct))
    if raw.events:
        found += of_events(raw.events)
        found += streamed(raw.events)
        if any(map(_is_turn, raw.events)):
            found.append(TURNS)
    return found


def _whole_call(value: AttributeValue) -> Mapping[str, AttributeValue]:
    """The entries of a value that is a call with its result, as JSON; none for another value."""
    if not isinstance(value, str) or value[:1] != "{" or len(value) > _LONGEST:
        return {}
    if _CAME.search(value) is None or not isinstance(held := unwrap.decoded(value), dict):
        return {}
    whole = not _WENT_IN.isdisjoint(held) and not _CAME_OUT.isdisjoint(held) and _ANOTHERS.isdisjoint(held)
    return cast("dict[str, AttributeValue]", held) if whole else {}  # JSON is such a value


def _entries(key: str, value: Mapping[str, AttributeValue]) -> Iterator[NamedValue]:
    for inner, held in value.items():
        path = f"{key}.{inner}"
        if held is not None and not foreign(path):
            says: Meaning | None = "name" if inner == "name" else meaning(path)
            yield NamedValue(name=path, meaning=says, value=held, directness=directness(inner))


def of_events(events: Sequence[RawEvent]) -> Iterator[NamedValue]:
    """The sources in events: an event's name stands before the names of its attributes."""
    others = (
        event for event in events if event.name not in _NO_EVENTS and not _is_turn(event) and not _is_piece(event)
    )
    for event in islice(others, _MOST_EVENTS):
        for key, value in event.attributes.items():
            if value is None or foreign(key) or (isinstance(value, str) and value.endswith(event.name)):
                continue
            path = key if key.startswith(event.name) else f"{event.name}.{key}"
            yield NamedValue(
                name=f"event {event.name}: {key}", meaning=meaning(path), value=value, directness=directness(key),
                attribute=False,
            )  # fmt: skip


def streamed(events: Sequence[RawEvent]) -> Iterator[NamedValue]:
    """The texts that came piece by piece, an event each, put together."""
    pieces: dict[tuple[str, str], list[AttributeValue]] = {}
    for event in filter(_is_piece, events):
        for key, value in event.attributes.items():
            if meaning(f"{event.name}.{key}") in _STREAMED and value not in (None, ""):
                pieces.setdefault((event.name, key), []).append(value)
    for (name, key), given in pieces.items():
        if (text := values.joined_pieces(given)) is not None:
            yield NamedValue(name=f"events {name}: {key}", meaning="output", value=text, directness=1, attribute=False)


def _is_piece(event: RawEvent) -> bool:
    return not _PIECES.isdisjoint(words(event.name))


def turns(raw: RawSpan) -> tuple[Message, ...]:
    """The messages of a chat with an event for each: by the event's name (``acme.user.message``), else by its role."""
    spoken = named_turns(raw)
    if spoken:
        found = genai.read_events(SpanReading(raw), spoken)
        return (*found.requested, *found.answered)
    return tuple(m for event in raw.events if _is_turn(event) for m in _spoken(event))


def named_turns(raw: RawSpan) -> list[RawEvent]:
    """Events named after the speaker. On a tool's span, such a message may be its arguments or its result."""
    return [
        replace(event, name=f"gen_ai.{named}") for event in raw.events if (named := _speaker(event.name)) is not None
    ]


def _is_turn(event: RawEvent) -> bool:
    """Whether an event is a message, the call of a tool that a model made, or what such a call returned."""
    return is_message(_in_roles(event.attributes)) or is_call(event.attributes) or _is_returned(event)


def _in_roles(entries: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
    """The entries with the role that another word for a speaker stands for: of ``bot`` the assistant's."""
    role = speech.speaker(entries.get("role"))
    return entries if role is None or role == entries["role"] else {**entries, "role": role}


def last_turn(raw: RawSpan) -> Mapping[str, AttributeValue]:
    """The entries of the last event that is a message or a call; none without any."""
    return next((_in_roles(event.attributes) for event in reversed(raw.events) if _is_turn(event)), {})


def _is_returned(event: RawEvent) -> bool:
    named = set(words(event.name))
    return "tool" in named and not _RETURNING.isdisjoint(named) and any(key in event.attributes for key in _TOOL_NAMES)


def _spoken(event: RawEvent) -> tuple[Message, ...]:
    """The messages of one event; the call of a tool may have its result beside it."""
    entries = _in_roles(event.attributes)
    said = entries.get("content", entries.get("text"))
    body = {key: unwrap.decoded(value) for key, value in entries.items()} | {"content": messages.content(said)}
    if is_message(entries):
        return messages.stated(body)
    called = next((held for key in _TOOL_NAMES if isinstance(held := body.get(key), str) and held), None)
    named = called is None or kinds.stated(called) is None  # a word for any tool is the name of none
    calls = messages.calls([body | {"name": called}]) if named and is_call(entries) else ()
    failed = body.get("error") or None
    given = (held for key in ("result", "output", "response", "content") if (held := body.get(key)) is not None)
    result = messages.joined(failed if isinstance(failed, str) else next(given, None))
    call_id = next((held for key in _CALL_IDS if isinstance(held := body.get(key), str) and held), None)
    answer = Message(role="tool", text=result, name=called, tool_call_id=call_id, error=failed is not None)
    asked = (Message(role="assistant", tool_calls=calls),) if calls else ()
    return (*asked, answer) if result or failed else asked


def with_results(spoken: Sequence[Message]) -> tuple[Message, ...]:
    """The calls of tools in messages, each with what the next message of its tool returned."""
    answers = [message for message in spoken if message.role == "tool"]
    found = []
    for call in (call for message in spoken for call in message.tool_calls):
        own = next((m for m in answers if m.name in (None, call.name) and m.tool_call_id in (None, call.call_id)), None)
        if own is not None:
            answers.remove(own)
            error = (own.text or "error") if own.error else None
            call = replace(call, error=error, result=None if error else own.text)  # noqa: PLW2901  # the same call, whole
        found.append(call)
    return (Message(role="assistant", tool_calls=tuple(found)),) if found else ()


def _speaker(event: str) -> str | None:
    named = words(event)
    if named[-1:] == ("choice",):
        return "choice"
    return f"{named[-2]}.message" if named[-1:] == ("message",) and named[-2:-1] and named[-2] in _SPEAKERS else None


def gathered(prefix: str, entries: Mapping[str, AttributeValue]) -> list[AttributeValue] | dict[str, AttributeValue]:
    """The list that was spread over keys such as ``prefix.0.role`` and ``prefix.0.parts.1.text``."""
    root: dict[str, AttributeValue] = {}
    for key, value in entries.items():
        path = key[len(prefix) :]
        *above, last = [step for step in _STEPS.split(f".{path[1:]}") if step][:_DEEPEST]
        if (node := map_at(root, above)) is not None:
            node.setdefault(last, value)
    return _listed(root)


def _listed(node: dict[str, AttributeValue]) -> list[AttributeValue] | dict[str, AttributeValue]:
    """Maps whose keys are all numbers as lists, in the order of the numbers."""
    node = {key: _listed(held) if isinstance(held, dict) else held for key, held in node.items()}
    if node and all(key.isdecimal() and len(key) < 10 for key in node):
        return [node[key] for key in sorted(node, key=int)]
    return node

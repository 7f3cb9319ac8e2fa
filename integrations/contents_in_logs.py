"""Contents that travel as log records, brought back to the spans they belong to.

Several instrumentations record the messages to a model as events, and send those as log records rather than with the
span (OpenTelemetry's GenAI conventions to 1.36, and later ones where so configured). On the span these become span
events; dialects read both alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from sidejudge.scoring.trace.jsontext import decoded

from .raw import EVALUATION, AttributeValue, RawEvent, RawLogRecord, RawSpan

_RESPONSE: Final = "gen_ai.response.id"
UNNAMED: Final = "log record"
"""Our name for the event of a record without one."""
_OF_A_CHAT: Final = (
    r"""(?:(?:_?role|message\.role|lc|choices|generations|candidates)["']"""
    r"""|type["']: ?["'](?:human|ai|USER|AI|function_call|\w{2,30}Message)["'])"""
)
CHAT: Final = re.compile(rf""""{_OF_A_CHAT}|'{_OF_A_CHAT}|role=|Message\(""")
"""Parts that every chat contains. The text is searched for them, so that other JSON is not read as messages.

Each begins with one character, not one of a set: such a pattern is found many times as fast.
"""
MAY_SHOW: Final = re.compile(
    rb"role|choices|candidates|generations|arguments|args|[iI]nput|prompt|Message|human|[\"']lc"
)
"""Bytes in all records with contents; records without them need not be decoded."""
_LONGEST: Final = 1 << 20
_ROLES: Final = frozenset({"user", "assistant", "system", "tool", "human", "ai", "model", "developer"})
_CONTENT_KEYS: Final = frozenset({"content", "parts", "text", "tool_calls"})
_CALLED: Final = frozenset({"name", "tool_name", "toolName", "tool", "function"})
_TOOLS: Final = _CALLED - {"name", "function"}
_GIVEN: Final = frozenset({"args", "input", "tool_input", "toolInput"})
_ANSWERED: Final = frozenset({"completion", "response", "answer", "output"})


def join(spans: Iterable[RawSpan], records: Iterable[RawLogRecord]) -> list[RawSpan]:
    """The spans, with each named event that belongs to one of them among its events, in order of time.

    A record without a name counts as an event if its shape shows contents. Records of other spans, plain log lines, and
    records that were delivered twice are left out. An evaluation that names no span belongs to the model call whose
    response it names, else to the trace's root.
    """
    spans = list(spans)
    by_span: dict[tuple[str, str], list[RawEvent]] = {}
    apart: list[RawLogRecord] = []
    for record in records:
        if (record.event or shows_contents(record)) and record.trace_id is not None and record.span_id is not None:
            by_span.setdefault((record.trace_id, record.span_id), []).append(_event(record))
        elif record.event == EVALUATION and record.trace_id is not None:
            apart.append(record)
    if apart:
        roots, responses = _evaluated(spans)
        for record in apart:
            key = (record.trace_id or "", str(record.attributes.get(_RESPONSE)))
            if (place := responses.get(key) or roots.get(key[0])) is not None:
                by_span.setdefault((key[0], place), []).append(_event(record))
    return [
        _with_events(span, added) if (added := by_span.get((span.trace_id, span.span_id))) else span for span in spans
    ]


def shows_contents(record: RawLogRecord) -> bool:
    """Whether a record shows by its shape that it holds a message, an answer or a call of a tool."""
    entries = _entries(record)
    return is_message(entries) or is_call(entries) or _is_exchange(entries) or any(map(_is_chat, entries.values()))


def is_message(entries: Mapping[str, AttributeValue]) -> bool:
    """Whether a map is a message: a speaker and a text."""
    role = entries.get("role")
    return isinstance(role, str) and role.lower() in _ROLES and not _CONTENT_KEYS.isdisjoint(entries)


def is_call(entries: Mapping[str, AttributeValue]) -> bool:
    """Whether a map is a call of a tool: its name and its arguments. The definition of a tool is no call."""
    if "description" in entries or _CALLED.isdisjoint(entries):
        return False
    given = _GIVEN | {"arguments"} if not _TOOLS.isdisjoint(entries) else {"arguments"}
    held = (entries[key] for key in given & entries.keys())
    return any(isinstance(decoded(value) if isinstance(value, str) else value, dict) for value in held)


def _is_exchange(entries: Mapping[str, AttributeValue]) -> bool:
    return "prompt" in entries and not _ANSWERED.isdisjoint(entries)


def _is_chat(value: AttributeValue) -> bool:
    if isinstance(value, str):
        return value[:1] in ("[", "{") and len(value) <= _LONGEST and CHAT.search(value) is not None
    return isinstance(value, list | dict) and CHAT.search(str(value)) is not None


def _evaluated(spans: Sequence[RawSpan]) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """The root of each trace, and the spans by their trace and the id of the model's response."""
    roots: dict[str, str] = {}
    responses: dict[tuple[str, str], str] = {}
    for span in spans:
        if span.parent_id is None:
            roots.setdefault(span.trace_id, span.span_id)
        if isinstance(response := span.attributes.get(_RESPONSE), str):
            responses.setdefault((span.trace_id, response), span.span_id)
    return roots, responses


def _event(record: RawLogRecord) -> RawEvent:
    return RawEvent(name=record.event or UNNAMED, time_ns=record.time_ns, attributes=_entries(record))


def _entries(record: RawLogRecord) -> dict[str, AttributeValue]:
    """The attributes of a record and, if its body is a map or the JSON of one, the entries of the body."""
    body = record.body
    entries: object = decoded(body) if isinstance(body, str) else body
    if not isinstance(entries, dict):
        entries = {} if body is None else {"body": body}
    return {**record.attributes, **entries}


def _with_events(span: RawSpan, added: list[RawEvent]) -> RawSpan:
    events = list(span.events)
    seen = {(event.name, event.time_ns, repr(event.attributes)) for event in events}
    for event in added:
        identity = (event.name, event.time_ns, repr(event.attributes))
        if identity not in seen:
            seen.add(identity)
            events.append(event)
    return replace(span, events=tuple(sorted(events, key=lambda event: event.time_ns)))

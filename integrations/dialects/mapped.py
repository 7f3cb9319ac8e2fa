"""Mapped attributes: ``sources.attributes`` of the configuration states which attribute holds which field.

A mapping by hand takes precedence over what a dialect reads and what shapes show. A name is the name of an attribute,
or names an attribute of an event as the report of unread contents does: ``event acme.answer: body``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue, MappedField, RawSpan
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall

from . import messages, unwrap
from .labels import is_no_id, tags_of
from .model_call import usage, whole
from .shapes import kinds, values
from .span_fields import SpanFields

_TEXTS: Final = ("system_prompt", "agent", "model", "requested_model", "session_id", "user_id")
_IDS: Final = ("session_id", "user_id")
_EVENT: Final = "event "

_mapped: Mapping[str, MappedField] = {}


def map_attributes(fields: Mapping[str, MappedField]) -> None:
    """Replace the mapping. Of several names for one field, the first that a span has counts."""
    global _mapped  # noqa: PLW0603  # set when a process starts, and when its configuration is read again
    _mapped = dict(fields)


def apply(raw: RawSpan, span: Span) -> Span:
    """The span with the fields that its attributes are mapped to."""
    if not _mapped:
        return span
    there: dict[str, tuple[str, AttributeValue]] = {}
    for name, field in _mapped.items():
        if field in there or (value := _value(raw, name)) is None:
            continue
        if not (field in _IDS and isinstance(value, str) and is_no_id(value)):
            there[field] = name, value
    return _Mapping(span, there).span() if there else span


def _value(raw: RawSpan, name: str) -> AttributeValue:
    if not name.startswith(_EVENT):
        return raw.attributes.get(name)
    event, _, key = name.removeprefix(_EVENT).partition(": ")
    held = (each.attributes.get(key) for each in raw.events if each.name == event)
    return next((value for value in held if value is not None), None)


class _Mapping:
    """One span and the values that are mapped for it."""

    def __init__(self, span: Span, there: Mapping[str, tuple[str, AttributeValue]]) -> None:
        self._span, self._there = span, there
        self._fields: SpanFields = {}

    def span(self) -> Span:
        """The span with its mapped fields."""
        kind = self._kind()
        for field in _TEXTS:
            if (text := self._text(field)) is not None:
                self._fields[field] = text
        self._contents(kind)
        self._counts()
        if kind is SpanKind.TOOL:
            self._tool()
        elif (error := self._text("error")) is not None:
            self._fields["error"] = error
        if "documents" in self._there:
            self._fields["documents"] = unwrap.documents(self._there["documents"][1])
        if "tags" in self._there:
            self._fields["tags"] = tags_of(self._there["tags"][1])
        noted = {field: f"{name} (sources.attributes)" for field, (name, _) in self._there.items()}
        provenance = {**self._span.provenance, **noted, **({"kind": noted["tool"]} if "tool" in noted else {})}
        return replace(self._span, **{**self._fields, "kind": kind, "provenance": provenance})

    def _text(self, field: str) -> str | None:
        value = unwrap.plain(self._there[field][1]) if field in self._there else None
        text = value.strip().strip('"') if isinstance(value, str) else None if value is None else str(value)
        return text or None

    def _kind(self) -> SpanKind:
        stated = kinds.stated(self._text("kind"))
        undecided = self._span.kind in (SpanKind.OTHER, SpanKind.CHAIN)
        return stated or (SpanKind.TOOL if "tool" in self._there and undecided else self._span.kind)

    def _contents(self, kind: SpanKind) -> None:
        if "input" in self._there and (seen := values.look(self._there["input"][1])) is not None:
            if kind is SpanKind.LLM:
                self._fields["input_messages"] = seen.messages
            self._fields["input"] = messages.last_text(seen.messages, "user") or unwrap.task(seen.value)
        if "output" in self._there and (seen := values.look(self._there["output"][1])) is not None:
            answer = messages.last_text(seen.messages, "assistant") if seen.messages else unwrap.answer(seen.value)
            if kind is SpanKind.LLM:
                plain = (Message(role="assistant", text=answer),) if isinstance(answer, str) else ()
                self._fields["output_messages"] = seen.messages or plain
            self._fields["output"] = answer

    def _counts(self) -> None:
        counts = [whole(self._there[field][1]) if field in self._there else None
                  for field in ("input_tokens", "output_tokens")]  # fmt: skip
        if (found := usage(counts[0], counts[1], None, None)) is not None:
            self._fields["usage"] = found

    def _tool(self) -> None:
        tool = self._span.tool or ToolCall(name=self._text("tool") or self._span.name, error=self._span.error)
        tool = replace(tool, name=self._text("tool") or tool.name, error=self._text("error") or tool.error)
        given = self._there.get("arguments") or self._there.get("input")
        returned = self._there.get("result") or self._there.get("output")
        if given is not None:
            tool = replace(tool, arguments=unwrap.arguments(given[1]))
        if returned is not None and tool.error is None:
            outcome = unwrap.result(returned[1])
            tool = replace(tool, result=outcome.result, error=outcome.error)
        self._fields |= {"tool": tool, "input": tool.arguments, "output": tool.result, "error": tool.error}

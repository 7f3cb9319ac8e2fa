"""Labels that the application gives a trace: session, user, tags, metadata, service, environment.

The keys differ by family but never contradict each other, and one family's context travels on another's spans, so
they are read alike for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json

from . import feedback, reported, unwrap
from .by_names import by_names
from .label_keys import NOISE, OF_PROCESS, LabelKeys, TraceLabel, label_keys, process_keys
from .span_fields import SpanFields

_OWN_TAGS = ("seq:step:", "graph:step:", "map:key:", "langsmith:")
"""How tags begin that LangChain and LangGraph add."""
_IN_METADATA: Final[Mapping[TraceLabel, tuple[str, ...]]] = {
    "session_id": ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId"),
    "user_id": ("user_id", "userId"),
}
_MODERN = re.compile(r"([5-9]|\d\d)\.")


def read(raw: RawSpan, names: tuple[str, ...], provenance: dict[str, str]) -> SpanFields:
    """The shared fields of a span, whose attributes have these names, as keyword arguments.

    What was read is noted in ``provenance``.
    """
    attributes = raw.attributes
    own = label_keys(names)
    found: SpanFields = {"root_hint": attributes.get("langfuse.internal.is_app_root") is True}
    for field, keys in own.of_trace:
        found[field] = _first(field, keys, attributes, provenance)
    _of_process(own, raw, found, provenance)
    trace_metadata: dict[str, Json] = {}
    metadata: dict[str, Json] = {}
    tags, sources = _listed(raw, own, trace_metadata, metadata, provenance) if own.listed else ((), ())
    if metadata:
        _from_langchain(metadata, found, provenance)
        _from_metadata(metadata, found, provenance)
        left = tags_of(metadata.pop("langfuse_tags", None))
        if left and not tags:
            tags = left
            provenance["tags"] = "langfuse.observation.metadata.langfuse_tags"
        for name in ("labels", "tags"):
            if not tags and isinstance(held := metadata.get(name), list) and (tags := tags_of(held)):
                provenance["tags"] = f"metadata: {name}"
    if own.feedback or raw.events:
        stated = (feedback.in_attributes(attributes) if own.feedback else None) or feedback.in_events(raw.events)
        if stated is not None and "feedback" not in metadata:
            provenance["feedback"], metadata["feedback"] = stated
    if raw.events and (scores := tuple(reported.reported(raw.events, raw.span_id))):
        found["reported"] = scores
    if sources:
        provenance["metadata"] = ", ".join(sources)
    found["trace_metadata"], found["metadata"], found["tags"] = trace_metadata, metadata, tags
    return found


def _of_process(own: LabelKeys, raw: RawSpan, found: SpanFields, provenance: dict[str, str]) -> None:
    """The labels of the resource that the span itself lacks."""
    process = _resources.process(raw.resource)
    if not own.of_process:
        found |= process.fields
        provenance |= process.provenance
        return
    for field in OF_PROCESS:
        named = _first(field, own.of_process[field], raw.attributes, provenance) if field in own.of_process else None
        if named is not None:
            found[field] = named
        elif field in process.fields:
            found[field], provenance[field] = process.fields[field], process.provenance[field]


@dataclass(frozen=True, slots=True)
class _Process:
    """The labels of a resource, and the attribute that each was read from."""

    fields: SpanFields
    provenance: dict[str, str]


class _Resources:
    """What resources hold. The spans of a process have one in common: the last one is remembered."""

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: tuple[Mapping[str, AttributeValue], _Process] | None = None

    def process(self, resource: Mapping[str, AttributeValue]) -> _Process:
        latest = self._latest
        if latest is None or latest[0] is not resource:
            latest = self._latest = (resource, _read_resource(resource))
        return latest[1]


_resources = _Resources()


def _read_resource(resource: Mapping[str, AttributeValue]) -> _Process:
    found = _Process({}, {})
    for field, there in process_keys(tuple(resource.keys())):
        if (value := _first(field, there, resource, found.provenance)) is not None:
            found.fields[field] = value
    return found


def _listed(
    raw: RawSpan, keys: LabelKeys, of_trace: dict[str, Json], of_span: dict[str, Json], provenance: dict[str, str]
) -> tuple[tuple[str, ...], list[str]]:
    """Fill the metadata of the trace and of the span; returns the tags, and which attributes held metadata."""
    # Langfuse from version 5 writes every metadata value as JSON, numbers and texts alike; before, texts are bare.
    scalars = raw.scope_name == "langfuse-sdk" and bool(_MODERN.match(raw.scope_version))
    tags: tuple[str, ...] = ()
    sources: list[str] = []
    for key, may_be_tags, place in keys.listed:
        value = raw.attributes[key]
        if may_be_tags and not tags:
            tags = tags_of(value)
            provenance["tags"] = key
        elif place is not None:
            target = of_trace if place.of_trace else of_span
            if place.name is not None:
                target[place.name] = unwrap.decoded(value, scalars=scalars and place.sdk)
                sources.append(key)
            elif kept := _entries(value):
                target |= kept
                sources.append(key)
    return tags, sources


def _entries(value: AttributeValue) -> dict[str, Json]:
    """The entries of a map of metadata, as text or as it is, but for what frameworks write there themselves."""
    found = unwrap.decoded(value)
    if not isinstance(found, dict):
        return {}
    return {key: unwrap.decoded(found[key]) for key in _own_entries(tuple(found))}


@by_names
def _own_entries(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of metadata that the application chose."""
    return tuple(key for key in keys if not NOISE.match(key))


def _from_langchain(metadata: dict[str, Json], found: SpanFields, provenance: dict[str, str]) -> None:
    """Langfuse's LangChain handler leaves a lone model call's session and user among the metadata."""
    for field in ("session_id", "user_id"):
        value = metadata.pop(f"langfuse_{field}", None)
        if found.get(field) is None and isinstance(value, str) and value:
            found[field] = value
            provenance[field] = f"langfuse.observation.metadata.langfuse_{field}"


def _from_metadata(metadata: dict[str, Json], found: SpanFields, provenance: dict[str, str]) -> None:
    """Who it was for and in which session, where that stands nowhere but in a map of metadata, or in a map in it."""
    for field, names in _IN_METADATA.items():
        if found.get(field) is not None:
            continue
        for held in (metadata, *[inner for inner in metadata.values() if isinstance(inner, dict)]):
            value = next((held[name] for name in names if isinstance(held.get(name), str) and held[name]), None)
            if isinstance(value, str) and not value.startswith(unwrap.REDACTED):
                found[field], provenance[field] = value, f"metadata: {field}"
                break


def _first(
    field: str, keys: tuple[str, ...], attributes: Mapping[str, AttributeValue], provenance: dict[str, str]
) -> str | None:
    for key in keys:
        value = attributes[key]
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value and not value.startswith(unwrap.REDACTED):
            provenance[field] = key
            return value
    return None


def tags_of(value: unwrap.Content) -> tuple[str, ...]:
    """Tags from an array, from JSON text, or from text with commas; those that LangGraph adds are left out."""
    if value is None:
        return ()
    found = unwrap.decoded(value)
    if isinstance(found, str):
        found = [part.strip() for part in found.split(",")]
    tags = [str(tag) for tag in found if tag] if isinstance(found, list) else []
    return tuple(dict.fromkeys([tag for tag in tags if not tag.startswith(_OWN_TAGS)]))

"""Labels that the application gives a trace: session, user, tags, metadata, service, environment.

The keys differ by family but never contradict each other, and one family's context travels on another's spans, so
they are read alike for all. Only the keys that a span has are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.lexical.memory import by_names
from sidejudge.scoring.trace.span import Json

from . import reported, unwrap
from .span_fields import SpanFields

TraceLabel: TypeAlias = Literal["session_id", "user_id", "trace_name"]
ProcessLabel: TypeAlias = Literal["environment", "release", "service"]

_SESSION = (
    "session.id", "langfuse.session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId", "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id", "gcp.vertex.agent.session_id", "langwatch.thread.id", "thread_id",
    "session_id",
)  # fmt: skip
_USER = (
    "user.id", "langfuse.user.id", "enduser.id", "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId", "ai.settings.context.userId", "langsmith.metadata.user_id", "user_id",
    "llm.user",
)  # fmt: skip
OF_TRACE: Final[Mapping[TraceLabel, tuple[str, ...]]] = {
    "session_id": _SESSION,
    "user_id": _USER,
    "trace_name": ("langfuse.trace.name",),
}
OF_PROCESS: Final[Mapping[ProcessLabel, tuple[str, ...]]] = {
    "environment": ("langfuse.environment", "deployment.environment.name", "deployment.environment"),
    "release": ("langfuse.release", "service.version"),
    "service": ("service.name",),
}

_TRACE_METADATA = ("langfuse.trace.metadata", "ai.telemetry.metadata", "ai.settings.context",
                   "traceloop.association.properties", "mlflow.traceTag")  # fmt: skip
_SPAN_METADATA = ("langfuse.observation.metadata", "langsmith.metadata", "metadata")
METADATA: Final = (*_TRACE_METADATA, *_SPAN_METADATA)
"""Attributes that hold metadata as a map, or begin the names of those that hold one entry each."""
_CONTAINER = re.compile(f"({'|'.join(map(re.escape, METADATA))})(?:[.]|\\Z)")
_EXPECTED = "langfuse.experiment.item.expected_output"
_NAMED = {
    _EXPECTED: _EXPECTED,
    "langfuse.observation.prompt.name": "prompt_name",
    "langfuse.observation.prompt.version": "prompt_version",
    "traceloop.prompt.key": "prompt_name",
    "traceloop.prompt.version": "prompt_version",
    "llm.prompt_template.version": "prompt_version",
}
"""Attributes that are metadata under a name of their own."""

_OWN_METADATA = re.compile(r"(?:[\w-]+[.:])+?(?:metadata|association\.properties)[.:](?:metadata\.)?(?=.)")
_LLAMAINDEX = re.compile(r"llamaindex\.(?!step\.|run_id\Z)(.+)")
"""Its tags of a run stand beside its own words."""
_MAP = re.compile(r"(?:[\w-]+[.:])+metadata")
_ANY_SESSION = re.compile(r"(?:.*[.:])?(?:(?:session|conversation)[._]?id|thread_?id)", re.IGNORECASE)
_ANY_USER = re.compile(r"(?:.*[.:])?(?:end)?user[._]?id", re.IGNORECASE)
_OF_SYSTEM = re.compile(r"(?:process|host|os|db|messaging|container|http|net|rpc|server|client|mcp)\.")
"""Namespaces whose ids do not identify an application's users and sessions."""
_TAGS = re.compile(r"(?!(?:[\w-]+\.)*metadata\.)(?:[\w-]+\.)*tags")
_TAGS_IN_METADATA = frozenset({"ai.telemetry.metadata.tags"})
_CONTEXT = frozenset((*_SESSION, *_USER))
"""Keys that are read for their meaning, and so are no metadata even if found among it."""
NOISE = re.compile(
    r"ls_|lc_|LANGSMITH_|LANGCHAIN_|langgraph_|checkpoint_|__|mlflow\.|is_langchain_root$|resourceAttributes|scope\."
    r"|gen_ai\.|server\.|agent_framework\."
)
"""Frameworks write their own bookkeeping beside the application's metadata; it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Where one attribute belongs: it is the entry ``name``, or (``name`` None) a map of entries.

    ``sdk``: its SDK wrote it, which from some version on writes every value as JSON.
    """

    name: str | None
    of_trace: bool = False
    sdk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelKeys:
    """The keys among a span's attributes that may hold a label: by label, the most trusted first.

    ``of_trace`` stand on spans; ``of_process`` on spans too, though mostly on the resource, which alone names the
    service.
    ``listed`` are, in the order of the attributes, those that may hold tags, metadata, or tags where no other holds
    some and metadata otherwise. ``feedback``: any of them may hold a user's feedback on an answer.
    """

    of_trace: tuple[tuple[TraceLabel, tuple[str, ...]], ...]
    of_process: dict[ProcessLabel, tuple[str, ...]]
    listed: tuple[tuple[str, bool, Metadata | None], ...]
    feedback: bool


@by_names
def label_keys(keys: tuple[str, ...]) -> LabelKeys:
    """The labels among these keys of a span."""
    there = {field: (*_among(keys, names), *_alike(keys, field)) for field, names in OF_TRACE.items()}
    of_trace = ((field, tuple(dict.fromkeys(named))) for field, named in there.items())
    context = _CONTEXT.union(there["session_id"], there["user_id"])
    places = ((key, _holds_tags(key), _metadata(key)) for key in keys if key not in context)
    of_process = ((field, _among(keys, names)) for field, names in OF_PROCESS.items() if field != "service")
    return LabelKeys(
        of_trace=tuple((field, there) for field, there in of_trace if there),
        of_process={field: there for field, there in of_process if there},
        listed=tuple((key, tags, metadata) for key, tags, metadata in places if tags or metadata),
        feedback=reported.may_hold(keys),
    )


@by_names
def process_keys(keys: tuple[str, ...]) -> tuple[tuple[ProcessLabel, tuple[str, ...]], ...]:
    """The labels among these keys of a resource, by field."""
    found = ((field, _among(keys, names)) for field, names in OF_PROCESS.items())
    return tuple((field, there) for field, there in found if there)


def _among(keys: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name in keys)


def _alike(keys: tuple[str, ...], field: TraceLabel) -> tuple[str, ...]:
    """Keys of unknown clients that end like the key of a session or of a user."""
    form = {"session_id": _ANY_SESSION, "user_id": _ANY_USER}.get(field)
    return () if form is None else tuple(key for key in keys if form.fullmatch(key) and not _OF_SYSTEM.match(key))


def _holds_tags(key: str) -> bool:
    return key.endswith("tags") and (key in _TAGS_IN_METADATA or _TAGS.fullmatch(key) is not None)


def _metadata(key: str) -> Metadata | None:
    if key in _NAMED:
        return Metadata(name=_NAMED[key])
    if found := _CONTAINER.match(key):
        of_trace = found[1] in _TRACE_METADATA
        if found.end() == len(found[1]):
            return Metadata(name=None, of_trace=of_trace)
        name = key[found.end() :]
        return None if NOISE.match(name) else Metadata(name=name, of_trace=of_trace, sdk=True)
    if (own := _LLAMAINDEX.fullmatch(key)) is not None:
        return Metadata(name=own[1])
    if _MAP.fullmatch(key):
        return Metadata(name=None)
    own = _OWN_METADATA.match(key)
    return Metadata(name=key[own.end() :]) if own and not NOISE.match(key, own.end()) else None


_OWN_TAGS = ("seq:step:", "graph:step:", "map:key:", "langsmith:")
"""How tags begin that LangChain and LangGraph add."""
_IN_METADATA: Final[Mapping[TraceLabel, tuple[str, ...]]] = {
    "session_id": ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId"),
    "user_id": ("user_id", "userId"),
}
_NO_IDS = frozenset({"", "unknown", "none", "null", "undefined"})
"""What clients, NeMo Agent Toolkit among them, and programs send of a session or a user that they do not know."""
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
        stated = (reported.in_attributes(attributes) if own.feedback else None) or reported.in_events(raw.events)
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
    """The entries of a map of metadata, given as text or as a map, without the frameworks' own entries."""
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
        if found.get(field) is None and isinstance(value, str) and not is_no_id(value):
            found[field] = value
            provenance[field] = f"langfuse.observation.metadata.langfuse_{field}"


def _from_metadata(metadata: dict[str, Json], found: SpanFields, provenance: dict[str, str]) -> None:
    """User and session, where only a map of metadata, or a map within it, has them."""
    for field, names in _IN_METADATA.items():
        if found.get(field) is not None:
            continue
        for held in (metadata, *[inner for inner in metadata.values() if isinstance(inner, dict)]):
            value = next((held[name] for name in names if isinstance(held.get(name), str) and held[name]), None)
            if isinstance(value, str) and _states_one(field, value):
                found[field], provenance[field] = value, f"metadata: {field}"
                break


def _first(
    field: str, keys: tuple[str, ...], attributes: Mapping[str, AttributeValue], provenance: dict[str, str]
) -> str | None:
    for key in keys:
        value = attributes[key]
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value and _states_one(field, value):
            provenance[field] = key
            return value
    return None


def _states_one(field: str, value: str) -> bool:
    """Whether a label has a value."""
    return not (is_no_id(value) if field in _IN_METADATA else unwrap.removed(value))


def is_no_id(value: str) -> bool:
    """Whether this is a placeholder, not a session or user: as an id it would join unrelated traces."""
    return unwrap.removed(value) or value.strip('" \t\r\n').casefold() in _NO_IDS


def tags_of(value: unwrap.Content) -> tuple[str, ...]:
    """Tags from an array, from JSON text, or from text with commas, without the tags that LangGraph adds."""
    if value is None:
        return ()
    found = unwrap.decoded(value)
    if isinstance(found, str):
        found = [part.strip() for part in found.split(",")]
    tags = [str(tag) for tag in found if tag] if isinstance(found, list) else []
    return tuple(dict.fromkeys([tag for tag in tags if not tag.startswith(_OWN_TAGS)]))

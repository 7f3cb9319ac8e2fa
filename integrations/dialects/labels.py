"""What the application says about a trace: session, user, tags, metadata, service, environment.

The keys differ by family but never contradict each other, and one family's context travels on another's spans, so
they are read alike for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from integrations.raw import AttributeValue, RawSpan
from scoring.span import Json

from . import feedback, unwrap

_SESSION = (
    "session.id", "langfuse.session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId", "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id", "gcp.vertex.agent.session_id", "thread_id", "session_id",
)  # fmt: skip
_USER = (
    "user.id", "langfuse.user.id", "enduser.id", "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId", "ai.settings.context.userId", "langsmith.metadata.user_id", "user_id",
    "llm.user",
)  # fmt: skip
_ENVIRONMENT = ("langfuse.environment", "deployment.environment.name", "deployment.environment")
_RELEASE = ("langfuse.release", "service.version")
_TRACE_NAME = ("langfuse.trace.name",)

_TRACE_METADATA = ("langfuse.trace.metadata", "ai.telemetry.metadata", "ai.settings.context",
                   "traceloop.association.properties", "mlflow.traceTag")  # fmt: skip
_SPAN_METADATA = ("langfuse.observation.metadata", "langsmith.metadata", "metadata")
_CONTAINER = re.compile(f"({'|'.join(map(re.escape, (*_TRACE_METADATA, *_SPAN_METADATA)))})(?:[.]|\\Z)")
EXPECTED = "langfuse.experiment.item.expected_output"

_OWN_METADATA = re.compile(r"[\w-]+\.metadata\.(?=.)")
_TAGS = re.compile(r"(?!(?:[\w-]+\.)*metadata\.)(?:[\w-]+\.)*tags")
_TAGS_IN_METADATA = frozenset({"ai.telemetry.metadata.tags"})
_CONTEXT = frozenset((*_SESSION, *_USER))
"""Keys that are read for what they say, and so are no metadata, though some stand among it."""
_OWN_TAG = re.compile(r"(?:seq:step|graph:step|map:key|langsmith):")
_NOISE = re.compile(
    r"ls_|lc_|LANGSMITH_|LANGCHAIN_|langgraph_|checkpoint_|__|mlflow\.|is_langchain_root$|resourceAttributes|scope\.|gen_ai\.|server\.|agent_framework\."
)
_MODERN = re.compile(r"([5-9]|\d\d)\.")


def read(raw: RawSpan, provenance: dict[str, str]) -> dict[str, Any]:
    """The shared fields of a span, as keyword arguments; what was read is noted in ``provenance``."""
    attributes, resource = raw.attributes, raw.resource
    found: dict[str, Any] = {
        "session_id": _first("session_id", _SESSION, attributes, provenance),
        "user_id": _first("user_id", _USER, attributes, provenance),
        "trace_name": _first("trace_name", _TRACE_NAME, attributes, provenance),
        "environment": _first("environment", _ENVIRONMENT, attributes, provenance)
        or _first("environment", _ENVIRONMENT, resource, provenance),
        "release": _first("release", _RELEASE, attributes, provenance)
        or _first("release", _RELEASE, resource, provenance),
        "service": _first("service", ("service.name",), resource, provenance),
        "root_hint": attributes.get("langfuse.internal.is_app_root") is True,
    }
    # Langfuse from version 5 writes every metadata value as JSON, numbers and texts alike; before, texts are bare.
    scalars = raw.scope_name == "langfuse-sdk" and bool(_MODERN.match(raw.scope_version))
    trace_metadata: dict[str, Json] = {}
    metadata: dict[str, Json] = {}
    tags: tuple[str, ...] = ()
    sources: list[str] = []
    for key, value in attributes.items():
        if key in _CONTEXT:
            continue
        if key.endswith("tags") and not tags and (key in _TAGS_IN_METADATA or _TAGS.fullmatch(key)):
            tags = tags_of(value)
            provenance["tags"] = key
        elif "metadata" in key or key.startswith(_TRACE_METADATA):
            if _collect(key, value, trace_metadata, metadata, scalars=scalars):
                sources.append(key)
        elif key == EXPECTED:
            metadata[EXPECTED] = unwrap.decoded(value)
            sources.append(key)
    _from_langchain(metadata, found, provenance)
    left = tags_of(metadata.pop("langfuse_tags", None))
    if left and not tags:
        tags = left
        provenance["tags"] = "langfuse.observation.metadata.langfuse_tags"
    said = feedback.feedback(raw)
    if said is not None and "feedback" not in metadata:
        provenance["feedback"], metadata["feedback"] = said
    if sources:
        provenance["metadata"] = ", ".join(sources)
    return found | {"trace_metadata": trace_metadata, "metadata": metadata, "tags": tags}


def _from_langchain(metadata: dict[str, Json], found: dict[str, Any], provenance: dict[str, str]) -> None:
    """Langfuse's LangChain handler leaves a lone model call's session and user among the metadata."""
    for field in ("session_id", "user_id"):
        value = metadata.pop(f"langfuse_{field}", None)
        if found[field] is None and isinstance(value, str) and value:
            found[field] = value
            provenance[field] = f"langfuse.observation.metadata.langfuse_{field}"


def _first(
    field: str, keys: tuple[str, ...], attributes: Mapping[str, AttributeValue], provenance: dict[str, str]
) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value and not value.startswith(unwrap.REDACTED):
            provenance[field] = key
            return value
    return None


def _collect(
    key: str, value: AttributeValue, of_trace: dict[str, Json], of_span: dict[str, Json], *, scalars: bool
) -> bool:
    """Put one attribute where it belongs: a whole container (as JSON), or one entry of it (by dotted key).

    Returns whether anything was taken from it.
    """
    if found := _CONTAINER.match(key):
        target = of_trace if found[1] in _TRACE_METADATA else of_span
        if found.end() == len(found[1]):
            entries = unwrap.decoded(value)
            return isinstance(entries, dict) and _keep(target, entries)
        name = key[found.end() :]
        return not _NOISE.match(name) and _keep(target, {name: unwrap.decoded(value, scalars=scalars)})
    own = _OWN_METADATA.match(key)
    return own is not None and _keep(of_span, {key[own.end() :]: unwrap.decoded(value)})


def _keep(target: dict[str, Json], entries: Mapping[str, Json]) -> bool:
    """Frameworks write their own bookkeeping beside the application's metadata; it is left out."""
    kept = {key: value for key, value in entries.items() if not _NOISE.match(key)}
    target.update(kept)
    return bool(kept)


def tags_of(value: unwrap.Content) -> tuple[str, ...]:
    """Tags from an array, from JSON text, or from text with commas; those that LangGraph adds are left out."""
    found = unwrap.decoded(value)
    if isinstance(found, str):
        found = [part.strip() for part in found.split(",")]
    return (
        tuple(dict.fromkeys(str(tag) for tag in found if tag and not _OWN_TAG.match(str(tag))))
        if isinstance(found, list)
        else ()
    )

"""Which attributes are labels: what the application states about a trace, under the keys of each family.

The keys alone decide, so that only the keys that a span has are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from . import feedback
from .by_names import by_names

TraceLabel: TypeAlias = Literal["session_id", "user_id", "trace_name"]
ProcessLabel: TypeAlias = Literal["environment", "release", "service"]

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
_OF_TRACE: Final[Mapping[TraceLabel, tuple[str, ...]]] = {
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
_CONTAINER = re.compile(f"({'|'.join(map(re.escape, (*_TRACE_METADATA, *_SPAN_METADATA)))})(?:[.]|\\Z)")
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
"""Namespaces whose ids are not those of an application's users and sessions."""
_TAGS = re.compile(r"(?!(?:[\w-]+\.)*metadata\.)(?:[\w-]+\.)*tags")
_TAGS_IN_METADATA = frozenset({"ai.telemetry.metadata.tags"})
_CONTEXT = frozenset((*_SESSION, *_USER))
"""Keys that are read for their meaning, and so are no metadata, though some stand among it."""
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
    """The keys that are there, for each field those that may hold it, the most trusted first.

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
    there = {field: (*_among(keys, names), *_alike(keys, field)) for field, names in _OF_TRACE.items()}
    of_trace = ((field, tuple(dict.fromkeys(named))) for field, named in there.items())
    context = _CONTEXT.union(there["session_id"], there["user_id"])
    places = ((key, _holds_tags(key), _metadata(key)) for key in keys if key not in context)
    of_process = ((field, _among(keys, names)) for field, names in OF_PROCESS.items() if field != "service")
    return LabelKeys(
        of_trace=tuple((field, there) for field, there in of_trace if there),
        of_process={field: there for field, there in of_process if there},
        listed=tuple((key, tags, metadata) for key, tags, metadata in places if tags or metadata),
        feedback=feedback.may_hold(keys),
    )


@by_names
def process_keys(keys: tuple[str, ...]) -> tuple[tuple[ProcessLabel, tuple[str, ...]], ...]:
    """The labels among these keys of a resource, by field."""
    found = ((field, _among(keys, names)) for field, names in OF_PROCESS.items())
    return tuple((field, there) for field, there in found if there)


def _among(keys: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name in keys)


def _alike(keys: tuple[str, ...], field: TraceLabel) -> tuple[str, ...]:
    """Keys of unknown clients that end as those of a session or of a user do."""
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

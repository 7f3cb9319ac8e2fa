"""Normalise: turns a row of Langfuse back into its span.

So rows are processed like all spans: the same dialects read them, and the same assembler decides whether they are
complete. A row of a Langfuse SDK gets the attributes that the SDK sends. Of what other clients sent, Langfuse keeps the
attributes it did not read in the metadata (``attributes.*``); these come back as attributes, and the contents where
they were (``origins``). What a row has lost: exceptions of spans, times below a millisecond, whether a number was a
text, and whether metadata was the trace's or the observation's.

*LangGraph by way of Langfuse 4*, where one agent calls another. Langfuse's LangChain handler writes an agent's name
(``lc_agent_name``) into the metadata of all its steps, and that of the outermost agent into the trace's. Version 4
keeps one map of both, in which the trace's entry covers the step's: so all steps seem to be the outermost agent's.
Which graph a step belongs to is given by its checkpoint namespace as well, ``tools:ID|model:ID`` for a step ``model``
of a graph that a step ``tools`` called; that graph's own span has the namespace of the step that called it, and bears
the name that the agent was given.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from sidejudge.integrations.raw import OBSERVATION_ID, AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json

from .observations import instant_ns
from .origins import DEEPEST, RowOrigin, origin, text
from .pages import Row

_METADATA: Final = "langfuse.observation.metadata."
_AGENT, _NAMESPACE = f"{_METADATA}lc_agent_name", f"{_METADATA}langgraph_checkpoint_ns"
_UNNAMED: Final = "LangGraph"
"""The default name of a graph."""
_HIGHEST: Final = 50
"""Levels from a step up to its graph that are looked at; between the two lie a few wrappers."""


def with_agents(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """The spans of a trace, the steps of graphs within graphs under the names of these.

    Spans that name different agents, or none, are left as they are: nothing covers them.
    """
    if len({_text(span.attributes.get(_AGENT)) for span in spans if _AGENT in span.attributes}) != 1:
        return list(spans)
    by_id = {span.span_id: span for span in spans}
    namespaces = {span.span_id: _text(span.attributes.get(_NAMESPACE)) for span in spans}
    agents: dict[str, str] = {}
    for span in spans:
        called, inner, _ = namespaces[span.span_id].rpartition("|")
        above = islice(_above(span, by_id), _HIGHEST) if inner else iter(())
        graph = next((each for each in above if namespaces[each.span_id] == called), None)
        if graph is not None and graph.name not in ("", _UNNAMED) and _AGENT in graph.attributes:
            agents[span.span_id] = agents[graph.span_id] = graph.name
    return [_named(span, agents[span.span_id]) if span.span_id in agents else span for span in spans]


def _above(span: RawSpan, by_id: Mapping[str, RawSpan]) -> Iterator[RawSpan]:
    """The ancestors of a span; a circle ends where it begins to repeat."""
    seen = {span.span_id}
    while (parent := by_id.get(span.parent_id or "")) is not None and parent.span_id not in seen:
        span = parent
        seen.add(span.span_id)
        yield span


def _text(value: AttributeValue) -> str:
    """A text, or the text that is written as JSON (SDKs from version 5 on)."""
    if not isinstance(value, str):
        return ""
    try:
        read = json.loads(value) if value.startswith('"') else value
    except ValueError:
        return value
    return read if isinstance(read, str) else value


def _named(span: RawSpan, agent: str) -> RawSpan:
    quoted = str(span.attributes.get(_AGENT)).startswith('"')
    return replace(span, attributes={**span.attributes, _AGENT: json.dumps(agent) if quoted else agent})


NO_ENVIRONMENT: Final = "default"
"""Langfuse's name for no environment."""
_TRACE_ID, _SPAN_ID = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_OBSERVATION: Final = "langfuse.observation."
_TRACE: Final = "langfuse.trace."
_LABELS: Final = (
    ("userId", "user.id"), ("sessionId", "session.id"), ("traceName", "langfuse.trace.name"),
    ("release", "langfuse.release"), ("version", "langfuse.version"),
)  # fmt: skip
_AS_THEY_ARE: Final = (
    ("statusMessage", "langfuse.observation.status_message"), ("level", "langfuse.observation.level"),
    ("input", "langfuse.observation.input"), ("output", "langfuse.observation.output"),
    ("promptName", "langfuse.observation.prompt.name"), ("promptVersion", "langfuse.observation.prompt.version"),
)  # fmt: skip
_AS_JSON: Final = (
    ("usageDetails", "langfuse.observation.usage_details"), ("costDetails", "langfuse.observation.cost_details"),
    ("modelParameters", "langfuse.observation.model.parameters"),
)  # fmt: skip
_MODERN: Final = re.compile(r"([5-9]|\d\d)\.")


def is_trace_id(trace_id: object) -> bool:
    """Whether Langfuse's id of a trace is one of OpenTelemetry; SDKs before version 3 made ids of other kinds."""
    return isinstance(trace_id, str) and _TRACE_ID.fullmatch(trace_id) is not None and trace_id.strip("0") != ""


def raw_spans(rows: Iterable[Row]) -> list[RawSpan]:
    """The spans of a trace's rows; a row without a start or with a foreign trace id is none."""
    return with_agents([span for row in rows if (span := raw_span(row)) is not None])


def raw_span(row: Row) -> RawSpan | None:
    """One row as a span; None for a row that cannot be one."""
    start_ns = instant_ns(row.get("startTime"))
    if start_ns is None or not is_trace_id(row.get("traceId")) or not row.get("id"):
        return None
    metadata = row.get("metadata")
    stated, sent, resource, scope = _sorted(metadata if isinstance(metadata, Mapping) else {})
    scope_name, scope_version = (str(scope.get(key) or "") for key in ("name", "version"))
    parent = row.get("parentObservationId")
    reported = origin(row, sent, scope_name, start_ns)
    # What Langfuse reads of its own words stands in the columns.
    attributes = {key: value for key, value in sent.items() if not key.startswith("langfuse.")}
    attributes |= _labels(row) if reported else _attributes(row)
    modern = scope_name == "langfuse-sdk" and _MODERN.match(scope_version) is not None
    domain = _TRACE if sent else _OBSERVATION
    for key, value in stated.items():
        # From version 5 on texts are JSON too, and read as such.
        as_sent = json.dumps(value, ensure_ascii=False) if modern and isinstance(value, str) else value
        attributes[f"{domain}metadata.{key}"] = as_sent
    reported = reported or RowOrigin()
    attributes |= reported.attributes
    if row.get("isRootObservation") is True and parent:
        attributes["langfuse.internal.is_app_root"] = True
    own_id = span_id(str(row["id"]))
    if own_id != row["id"]:
        attributes[OBSERVATION_ID] = str(row["id"])
    failed = row.get("level") == "ERROR"
    return RawSpan(
        trace_id=str(row["traceId"]),
        span_id=own_id,
        parent_id=span_id(str(parent)) if parent else None,
        name=reported.name or str(row.get("name") or ""),
        start_ns=start_ns,
        end_ns=max(start_ns, instant_ns(row.get("endTime")) or start_ns),
        attributes=attributes,
        events=reported.events,
        status_code=2 if failed else 0,
        status_message=str(row.get("statusMessage") or "") if failed else "",
        scope_name=scope_name,
        scope_version=scope_version,
        resource=resource,
    )


def span_id(observation_id: str) -> str:
    """An observation's id if it is a span id of OpenTelemetry, else a span id that is derived from it."""
    if _SPAN_ID.fullmatch(observation_id) and observation_id.strip("0"):
        return observation_id
    return hashlib.sha256(observation_id.encode("utf-8", "replace")).hexdigest()[:16]


def _attributes(row: Row) -> dict[str, AttributeValue]:
    """The SDK's attributes for the columns of the row; "" counts as null."""
    found: dict[str, AttributeValue] = {f"{_OBSERVATION}type": str(row.get("type") or "SPAN").lower()}
    found |= _columns(row, _AS_THEY_ARE)
    for column, key in _AS_JSON:
        value = row.get(column)
        if isinstance(value, Mapping) and value:
            found[key] = text(value)
    # The wire has `model`, the description of the interface `providedModelName`.
    model = row.get("model") or row.get("providedModelName")
    if isinstance(model, str):
        found[f"{_OBSERVATION}model.name"] = model
    return found | _labels(row)


def _labels(row: Row) -> dict[str, AttributeValue]:
    """The attributes of the trace, whoever sent the span."""
    found = _columns(row, _LABELS)
    for key in ("user.id", "session.id"):
        # Langfuse takes them from metadata as well, which SDKs from version 5 on write as JSON.
        if key in found:
            found[key] = _text(found[key])
    environment = row.get("environment")
    if isinstance(environment, str) and environment not in ("", NO_ENVIRONMENT):
        found["langfuse.environment"] = environment
    tags = row.get("tags")
    if isinstance(tags, list) and tags:
        found["langfuse.trace.tags"] = [str(tag) for tag in tags]
    return found


def _columns(row: Row, columns: Iterable[tuple[str, str]]) -> dict[str, AttributeValue]:
    reported = ((key, row.get(column)) for column, key in columns)
    return {key: text(value) for key, value in reported if value not in (None, "")}


def _sorted(
    metadata: Mapping[str, Any],  # JSON is made of attribute values, but lists of types are invariant
) -> tuple[dict[str, Any], dict[str, AttributeValue], dict[str, AttributeValue], dict[str, AttributeValue]]:
    """Metadata of the application, attributes that Langfuse kept, the resource's, and the scope.

    In v2 all of it is one flat map with dotted keys; the legacy reads nest it.
    """
    stated: dict[str, Json] = {}
    kept: dict[str, dict[str, AttributeValue]] = {"attributes": {}, "resourceAttributes": {}, "scope": {}}
    for key, value in metadata.items():
        head, _, rest = key.partition(".")
        if head in kept and rest:
            kept[head][rest] = value
        elif head in kept and isinstance(value, Mapping):
            kept[head].update(value)
        else:
            stated[key] = value
    sent = {key: _as_sent(value) for key, value in kept["attributes"].items()}
    return nested(stated), sent, kept["resourceAttributes"], kept["scope"]


def _as_sent(value: AttributeValue) -> AttributeValue:
    """Restore JSON texts: objects were texts, and lists too, unless of texts and numbers alone."""
    nests = isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
    return text(value) if nests else value


def nested(flat: Mapping[str, Json]) -> dict[str, Json]:
    """Dotted keys as the objects that they were; the value of the undotted key itself goes before.

    Objects whose keys count from 0 were lists.

    >>> nested({"a.b": 1, "a.c.0": "x", "d": {"e": 2}})
    {'d': {'e': 2}, 'a': {'b': 1, 'c': ['x']}}
    """
    whole = {key: value for key, value in flat.items() if "." not in key}
    made = _Nest()
    for key, value in flat.items():
        head, *rest = key.split(".", DEEPEST)
        if not rest or head in whole:
            continue
        at: Json = made.setdefault(head, _Nest())
        for step in rest[:-1]:
            at = at.setdefault(step, _Nest()) if isinstance(at, _Nest) else _Nest()
        if isinstance(at, _Nest):
            at.setdefault(rest[-1], value)
    return {**whole, **{key: _listed(value) for key, value in made.items()}}


class _Nest(dict[str, Json]):
    """An object made of dotted keys, as against one that was a value: values may be of any depth."""


def _listed(value: Json) -> Json:
    if not isinstance(value, _Nest):
        return value
    inner = {key: _listed(each) for key, each in value.items()}
    if inner and set(inner) == {str(index) for index in range(len(inner))}:
        return [inner[str(index)] for index in range(len(inner))]
    return inner

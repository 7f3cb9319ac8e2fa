"""Normalise: a row of Langfuse as the span that it was.

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

*Origins* are where the contents of a row stood on the span that another client sent. Langfuse takes the input and
output of a span from the first of the conventions that it follows, and keeps the other attributes under
``attributes.*`` in the metadata (its ``OtelIngestionProcessor``). They show which convention it was, so the contents go
back to where they were, and the client's own dialect reads the span as if it had come directly. What Langfuse strikes
stays lost: log records, exceptions, and contents that a span holds a second time in another convention. Each rule of
``contents`` undoes one of those by which Langfuse takes contents (``extractInputAndOutput``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from sidejudge.integrations.raw import OBSERVATION_ID, AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.trace.span import Json

from .observations import instant_ns
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


_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
_ASKED, _ANSWERED = "gen_ai.input.messages", "gen_ai.output.messages"
_DETAILS, _CHOICE = "gen_ai.client.inference.operation.details", "gen_ai.choice"
_ROLES: Final = frozenset(("system", "user", "assistant", "tool"))
_BY_SIGN: Final = (
    ("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"),
    ("traceloop.span.kind", "traceloop.entity.input", "traceloop.entity.output"),
    ("openinference.span.kind", "input.value", "output.value"),
    ("langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion"),
)
"""A sign that Langfuse leaves on the span, and where the contents stand on spans that bear it; in its own order."""
_BY_SCHEMA: Final = (
    ("prompt", "all_messages_events"), ("input", "output"), ("pydantic_ai.all_messages", "final_result"),
    (_ASKED, _ANSWERED), (_ARGUMENTS, _RESULT),
)  # fmt: skip
"""Where they may stand on spans that list their attributes, as Logfire and Pydantic AI do; in Langfuse's order."""
_CONVENTIONS: Final = (
    "gen_ai.", "openinference.", "traceloop.", "langsmith.", "mlflow.", "gcp.vertex.agent.", "logfire.", "haystack.",
    "llm.",
)  # fmt: skip
"""Prefixes of attributes that one of the dialects reads."""
_DEEPEST: Final = 8
"""Levels that are flattened; hostile contents could have thousands."""
_SDK: Final = "langfuse-sdk"


def read(value: Json) -> Json:
    """JSON objects and lists as they are; any other text is one, for an answer ``30`` is a text. Empty is absent."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            found: Json = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found
    return None if value == "" else value


def text(value: object) -> str:
    """The value as it is sent: text, or JSON; "" for what is too deep to write."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Those that are there, as text."""
    return {key: text(value) for key, value in values.items() if value is not None}


class Contents(NamedTuple):
    """Attributes, whose values are not written as text yet (None for none), or events."""

    attributes: Mapping[str, Json]
    events: tuple[RawEvent, ...] = ()


def contents(
    kept: Mapping[str, AttributeValue], scope: str, requested: Json, answered: Json, at_ns: int
) -> Contents | None:
    """Where input and output stood on a span of which Langfuse kept these attributes; None where that is unknown.

    Events get the time ``at_ns``.
    """
    if scope == "ai":
        return Contents(_of_vercel(kept, requested, answered))
    if requested is None and answered is None:
        return Contents({})
    return _of_attributes(kept, requested, answered) or _of_conventions(kept, requested, answered, at_ns)


def reported(kept: Mapping[str, AttributeValue]) -> bool:
    """Whether the kept attributes follow a convention that a dialect reads."""
    return any(key.startswith(_CONVENTIONS) for key in kept)


def _of_attributes(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> Contents | None:
    """Contents in words of the client's own."""
    for sign, one, other in _BY_SIGN:
        if sign in kept:
            again = _stated_again(kept, requested, answered) if one == "input.value" else {}
            return Contents({**again, one: requested, other: answered})
    if any(key.startswith("gcp.vertex.agent.") for key in kept):
        return Contents(_of_adk(kept, requested, answered))
    if _numbered(requested) or _numbered(answered):
        events: list[Json] = [
            each for side in (requested, answered) for each in (side if isinstance(side, list) else [side]) if each
        ]
        return Contents({"events": events})
    if "llm.request.type" in kept and all(each is None or _plain(each) for each in (requested, answered)):
        return Contents({**_flat("gen_ai.prompt", requested), **_flat("gen_ai.completion", answered)})
    stated = kept.get("logfire.json_schema")
    schema = read(stated) if isinstance(stated, str) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    listed = properties if isinstance(properties, dict) else {}
    there = {key for key, value in listed.items() if value != {"type": "null"}}
    keys = next((pair for pair in _BY_SCHEMA if not there.isdisjoint(pair)), None)
    return None if keys is None else Contents(dict(zip(keys, (requested, answered), strict=True)))


def _stated_again(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> dict[str, Json]:
    """The contents in GenAI attributes; of a framework that wrote OpenInference's too, Langfuse kept only the latter.

    A lone text is a message there.
    """
    if "gen_ai.operation.name" not in kept:
        return {}
    if _is_tool(kept):
        return {_ARGUMENTS: requested, _RESULT: answered}
    sides = ((_ASKED, "user", requested), (_ANSWERED, "assistant", answered))
    return {
        key: [{"role": role, "content": stated}] if isinstance(stated, str) else stated for key, role, stated in sides
    }


def _of_conventions(kept: Mapping[str, AttributeValue], requested: Json, answered: Json, at_ns: int) -> Contents | None:
    """Contents in the words of the GenAI conventions, or in the plain ones of spans that do not follow these."""
    if not any(key.startswith("gen_ai.") for key in kept):
        return Contents({"input": requested, "output": answered}) if reported(kept) else None
    if events := _of_events(requested, answered, at_ns):
        return Contents({}, events)
    stated = {_ASKED: requested, _ANSWERED: answered}
    if not _is_tool(kept):
        return Contents(stated)
    if _messages(requested) or _messages(answered):
        return Contents({}, (RawEvent(name=_DETAILS, time_ns=at_ns, attributes=texts(stated)),))
    return Contents({_ARGUMENTS: requested, _RESULT: answered})


def _numbered(value: Json) -> bool:
    """Events that Logfire and Pydantic AI put into one list, or one of them."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and "event.name" in first


def _plain(value: Json) -> bool:
    """Messages that are not in the conventions' parts: of OpenLLMetry, which flattened them before it had those."""
    return isinstance(value, list) and all(
        isinstance(each, dict) and "role" in each and "parts" not in each for each in value
    )


def _flat(key: str, value: Json, depth: int = _DEEPEST) -> dict[str, Json]:
    """Lists and objects as the dotted keys that they were."""
    if depth and isinstance(value, list | dict):
        inner = enumerate(value) if isinstance(value, list) else value.items()
        return {at: held for step, each in inner for at, held in _flat(f"{key}.{step}", each, depth - 1).items()}
    return {key: value}


def _is_tool(kept: Mapping[str, AttributeValue]) -> bool:
    operation = kept.get("gen_ai.operation.name")
    return operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in kept)


def _of_vercel(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> dict[str, Json]:
    """The AI SDK up to version 6, by the operation that the span is of."""
    operation = str(kept.get("ai.operationId") or "")
    if operation == "ai.toolCall":
        return {"ai.toolCall.args": requested, "ai.toolCall.result": answered}
    found: dict[str, Json] = {"ai.prompt.messages" if ".do" in operation else "ai.prompt": requested}
    if isinstance(answered, dict) and answered.keys() == {"role", "content", "tool_calls"}:
        found |= {"ai.response.text": answered["content"], "ai.response.toolCalls": answered["tool_calls"]}
    elif "Object" in operation:
        found["ai.response.object"] = answered
    else:
        found["ai.response.toolCalls" if isinstance(answered, list) else "ai.response.text"] = answered
    return found


def _of_adk(kept: Mapping[str, AttributeValue], requested: Json, answered: Json) -> dict[str, Json]:
    """Schema 1 has words of its own for calls and tools; agents and schema 2 keep to the conventions."""
    if _is_tool(kept):
        return {"gcp.vertex.agent.tool_call_args": requested, "gcp.vertex.agent.tool_response": answered}
    if isinstance(requested, dict) or isinstance(answered, dict):
        return {"gcp.vertex.agent.llm_request": requested, "gcp.vertex.agent.llm_response": answered}
    return {_ASKED: requested, _ANSWERED: answered}


def _of_events(requested: Json, answered: Json, at_ns: int) -> tuple[RawEvent, ...]:
    """Contents that Langfuse put together from the older conventions' events, one object an event; else none.

    A choice is given by its ``message`` with what belongs to it beside it.
    """
    chosen = answered if isinstance(answered, list) else [answered]
    spoken = requested if isinstance(requested, list) else []
    choices = [each for each in chosen if isinstance(each, dict) and "message" in each and "role" not in each]
    turns = [each for each in spoken if isinstance(each, dict) and each.get("role") in _ROLES and "parts" not in each]
    if len(choices) < len(chosen) or len(turns) < len(spoken):
        return ()
    events = [(f"gen_ai.{each['role']}.message", {k: v for k, v in each.items() if k != "role"}) for each in turns]
    events += [(_CHOICE, each) for each in choices]
    return tuple(RawEvent(name=name, time_ns=at_ns, attributes=texts(stated)) for name, stated in events)


def _messages(value: Json) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) and "parts" in each for each in value)


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
    """One row as a span; None for what cannot be one."""
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
    """The id itself where it is one of OpenTelemetry, else one derived from it."""
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
        value = found.get(key)
        if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
            found[key] = value[1:-1]
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
        if head not in kept:
            stated[key] = value
        elif rest:
            kept[head][rest] = value
        elif isinstance(value, Mapping):
            kept[head].update(value)
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
        head, *rest = key.split(".", _DEEPEST)
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

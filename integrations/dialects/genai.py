"""OpenTelemetry's GenAI conventions, in their current form and in the older one (to 1.36).

Contents are off by default. Where they are on, messages stand on the span (JSON text or structured), on a span
event, or in log records, which are joined to their spans as events before any dialect sees them. Events have two
forms: to 1.36 one for each message, named after its role, and ``gen_ai.choice`` for an answer; since then
``gen_ai.client.inference.operation.details`` with the same attributes that a span may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Usage

from . import messages, unwrap
from .fields import Fields, real, text, tokens
from .reading import Dialect, OwnMetadata, SpanReading, failure
from .shapes import kinds
from .span_fields import SpanFields

NAME = "genai"
SWITCH = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only "
    "with OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
)
_MASK = "[redacted]"
"""What LangChain's tracer for Azure puts in the place of each text that it keeps back, and of an empty answer.

In words of other clients it may stand for what the operator's patterns match, the whole of a text.
"""
_OTHER_SWITCHES = (
    ("@opentelemetry/", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"),
    ("opentelemetry.instrumentation.boto", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, and logs sent"),
    ("com.anthropic.sdk.", "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content"),
    ("azure.core.tracing.", "AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true"),
)
"""Clients that know another, by the beginning of their scopes: packages for Node.js and for Bedrock know true and
false alone."""

_KINDS = {
    "chat": SpanKind.LLM, "generate_content": SpanKind.LLM, "text_completion": SpanKind.LLM,
    "embeddings": SpanKind.EMBEDDING, "invoke_agent": SpanKind.AGENT, "execute_tool": SpanKind.TOOL,
    "retrieval": SpanKind.RETRIEVER, "search_memory": SpanKind.RETRIEVER, "create_agent": SpanKind.OTHER,
}  # fmt: skip
"""The kinds of spans by ``gen_ai.operation.name``. An unlisted operation may name a kind of ``_BY_WORD``; else the span
is a step."""
_BY_WORD = (SpanKind.LLM, SpanKind.AGENT, SpanKind.EMBEDDING)
_KEYS = (
    ("gen_ai.tool.name", SpanKind.TOOL),
    ("gen_ai.request.model", SpanKind.LLM),
    ("gen_ai.response.model", SpanKind.LLM),
)
"""Other attributes that show a span's kind if it does not name its operation."""
_LEAVE_OUT_EMPTY = (
    "agent_framework", "opentelemetry.instrumentation.ag2", "opentelemetry.instrumentation.anthropic",
    "amazon.opentelemetry.distro.instrumentation.openai_agents",
)  # fmt: skip
"""Scopes of clients that leave out an answer only where it is empty: AG2, OpenLLMetry for Anthropic, and streams of
Microsoft's Agent Framework and of OpenAI's agents through AWS's distribution."""
_NUMBERED = ("opentelemetry.instrumentation.google_genai", "opentelemetry.instrumentation.vertexai")
"""Scopes of clients that give what has no id one of the tool's name and its place in the message: ``lookup_0``."""
_AG2_TYPE = "ag2.span.type"
"""AG2's own span type. ``usage`` records a call's tokens, beside the call's span or in place of one."""
_MCP, _MCP_CALL = "mcp.method.name", "tools/call"
MERGED_TOOLS = "(merged tools)"
"""ADK's name, in ``gen_ai.tool.name``, for the span that merges the results of tools that ran in parallel."""

_FIELDS = Fields(
    agent=text("gen_ai.agent.name"),
    model=text("gen_ai.response.model"),
    requested_model=text("gen_ai.request.model"),
    response_id=text("gen_ai.response.id"),
    usage=tokens(
        prompt=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        completion=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        cached=("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        reasoning=("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
    ),
    cost_usd=real("operation.cost", "gen_ai.usage.cost", "gen_ai.cost.total_cost"),
)
"""Input tokens include cached ones, as the conventions define."""

_NO_RUNS = ("create_agent", "invoke_workflow")
"""Operations whose spans may name an agent that they do not run: to make one, and what runs several."""
_NO_ROLE = (None, "", "unknown")

_DETAILS = "gen_ai.client.inference.operation.details"
_TOOL, _CHOICE = "gen_ai.tool.message", "gen_ai.choice"
_MESSAGES_IN, _MESSAGES_OUT = "gen_ai.input.messages", "gen_ai.output.messages"
INSTRUCTIONS, _FINISHED = "gen_ai.system_instructions", "gen_ai.response.finish_reasons"
_CONTENT = "gen_ai.event.content"

_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    _TOOL: "tool",
}  # fmt: skip
_OF_A_CHOICE = frozenset({_CONTENT, "index", "finish_reason", "event.name", "gen_ai.system", "gen_ai.provider.name"})
"""What an event of a choice may have beside the answer itself."""
_MESSAGE_KEYS = frozenset({"role", "content", "tool_calls", "parts"})


def speaks(raw: RawSpan) -> bool:
    """Whether the span carries any attribute or event of the conventions."""
    return any(key.startswith("gen_ai.") and key != "gen_ai.conversation.id" for key in raw.attributes) or any(
        event.name.startswith("gen_ai.") for event in raw.events
    )


Adapt: TypeAlias = Callable[[SpanReading, SpanKind, SpanFields], SpanKind]
"""Corrects, in place, the fields that were read of a span, and returns the span's true kind."""


def normalise(
    raw: RawSpan,
    *,
    name: str = NAME,
    switch: str | None = SWITCH,
    adapt: Adapt | None = None,
    own_metadata: OwnMetadata | None = None,
) -> Span:
    """A GenAI span in normal form; ``adapt`` is how a dialect that builds on the conventions departs from them."""
    reading = SpanReading(raw, own_metadata)
    operation = reading.text("kind", "gen_ai.operation.name")
    kind = _kind(reading, operation)
    contents = EventContents() if kind is SpanKind.TOOL and _own_events(raw) else _read(reading)
    if kind is SpanKind.LLM and contents.requested and not contents.answered and raw.status_code != 2:
        contents = _answered_last(contents, raw)
    requested, answered = contents.requested, contents.answered
    fields = _FIELDS.read(reading)
    if operation in _NO_RUNS:
        reading.no_agent(fields)
    fields |= messages.asked(requested) | _answer(answered, reading)
    if instructions := system_text(contents.instructions):
        fields["system_prompt"] = instructions
    if operation == "invoke_agent" and not fields["agent"] and (named := raw.name.removeprefix(operation).strip()):
        fields["agent"] = named
        reading.note("agent", "span name")
    if kind is SpanKind.CHAIN:  # a workflow's state stands in its messages as JSON
        fields["input"] = messages.stated_in(unwrap.task(fields["input"]), "user")
    if kind is SpanKind.TOOL:
        fields |= _tool(reading)
    if kind is SpanKind.RETRIEVER:
        fields |= _retrieval(reading)
    if adapt is not None:
        kind = adapt(reading, kind, fields)
    if kind in {SpanKind.LLM, SpanKind.TOOL} and _is_silent(fields):
        others = [other for scope, other in _OTHER_SWITCHES if raw.scope_name.startswith(scope)]
        fields["capture_switch"] = others[0] if others and switch is SWITCH else switch
    return reading.span(name, kind, **fields)


def _is_silent(fields: SpanFields) -> bool:
    if fields.get("input") is not None or fields.get("output") is not None:
        return False
    given = (*fields.get("input_messages", ()), *fields.get("output_messages", ()))
    return not given or all(message.withheld for message in given)


def _kind(reading: SpanReading, operation: str | None) -> SpanKind:
    if reading.attributes.get(_MCP) == _MCP_CALL and "gen_ai.tool.name" in reading.attributes:
        reading.note("kind", _MCP)
        return SpanKind.TOOL
    if reading.attributes.get("gen_ai.tool.name") == MERGED_TOOLS:
        return SpanKind.CHAIN
    if operation is not None:
        if (listed := _KINDS.get(operation)) is not None:
            return listed
        unlisted = kinds.stated(operation)
        return unlisted if unlisted in _BY_WORD else SpanKind.CHAIN
    if reading.attributes.get(_AG2_TYPE) == "usage":
        reading.note("kind", _AG2_TYPE)
        return SpanKind.OTHER
    for key, kind in _KEYS:
        if key in reading.attributes:
            reading.note("kind", key)
            return kind
    reading.note("kind", "no operation")
    return SpanKind.OTHER


def _read(reading: SpanReading) -> EventContents:
    """Messages from the span, else from its events; instructions from wherever they are."""
    stated, spoken = reading.value("input", _MESSAGES_IN), reading.value("output", _MESSAGES_OUT)
    requested = () if stated is None else messages.read(unwrap.decoded(stated))
    answered = () if spoken is None else messages.read(_spoken(unwrap.decoded(spoken)))
    contents = EventContents(requested=requested, answered=answered)
    if not requested and not answered and reading.raw.events:
        contents = read_events(reading, reading.raw.events)
    if reading.raw.scope_name in _NUMBERED:
        requested, answered = _unnumbered(contents.requested, contents.answered)
        contents = replace(contents, requested=requested, answered=answered)
    requested, answered = _unmasked(contents.requested), _unmasked(contents.answered)
    of_azure = answered is not contents.answered and isinstance(reading.attributes.get(_FINISHED), str)
    if of_azure and not any(message.withheld and message.role == "user" for message in requested):
        answered = _beside(requested, answered)
    if requested is not contents.requested or answered is not contents.answered:
        contents = replace(contents, requested=requested, answered=answered)
    instructions = unwrap.decoded(reading.value("system_prompt", INSTRUCTIONS))
    return replace(contents, instructions=instructions) if instructions else contents


def _unmasked(found: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, withheld where a mask is all of a text or of a call's arguments; these very ones without any."""
    for message in found:
        if message.text == _MASK or any(map(_is_masked, message.tool_calls)):
            return tuple(map(_without_mask, found))
    return found


def _is_masked(call: ToolCall) -> bool:
    return call.arguments == _MASK


def _without_mask(message: Message) -> Message:
    text = "" if message.text == _MASK else message.text
    calls = tuple(replace(call, arguments=None) if _is_masked(call) else call for call in message.tool_calls)
    masked = text != message.text or calls != message.tool_calls
    return replace(message, text=text, tool_calls=calls, withheld=not text) if masked else message


def _answer(answered: tuple[Message, ...], reading: SpanReading) -> SpanFields:
    fields = messages.answered(answered)
    if answered == (_EMPTY,):  # else what stands in the place of an empty answer is read by its shape
        logs = (event.name for event in reading.raw.events if moved(event))
        if (log := next(logs, None)) is not None:
            reading.note("output", f"event {log}: output")
        if log is not None or _MASK in str(reading.attributes.get(_MESSAGES_OUT)):
            fields["output"] = ""
    return fields


def _answered_last(contents: EventContents, raw: RawSpan) -> EventContents:
    """The contents with the assistant's last turns as the answer, for which Azure's libraries have no event."""
    if raw.scope_name in _LEAVE_OUT_EMPTY and _FINISHED in raw.attributes:
        return replace(contents, answered=(_EMPTY,))
    turns = contents.requested
    first = len(turns)
    while first and turns[first - 1].role == "assistant":
        first -= 1
    return replace(contents, requested=turns[:first], answered=turns[first:])


def _unnumbered(*of: tuple[Message, ...]) -> Iterator[tuple[Message, ...]]:
    """Messages whose calls and answers lack ids that are the tool's name with a number: each turn has the same ones.

    Gemini often gives no ids, and Google's SDK leaves them out of answers when it runs tools by itself.
    """
    called = {call.name for held in of for message in held for call in message.tool_calls}

    def numbered(call_id: str | None) -> str | None:
        name, _, number = (call_id or "").rpartition("_")
        return name if name in called and number.isdecimal() else None

    def bare(message: Message) -> Message:
        if (name := numbered(message.tool_call_id)) is not None:
            return replace(message, tool_call_id=None, name=name)
        made = [replace(each, call_id=None) if numbered(each.call_id) else each for each in message.tool_calls]
        return replace(message, tool_calls=tuple(made)) if made else message

    return (tuple(map(bare, held)) for held in of)


def _spoken(stated: Json) -> Json:
    """A message without a role in a model's output is the assistant's."""
    if not isinstance(stated, list):
        return stated
    return [
        {**item, "role": "assistant"}
        if isinstance(item, dict) and item.get("role") in _NO_ROLE and "message" not in item  # of a choice of OpenAI's
        else item
        for item in stated
    ]


def system_text(instructions: Json) -> str | None:
    """``gen_ai.system_instructions``: a list of parts, or text."""
    if isinstance(instructions, str):
        return instructions
    parts = messages.read({"role": "system", "parts": instructions}) if isinstance(instructions, list) else ()
    return messages.system_text(tuple(parts))


def _tool(reading: SpanReading) -> SpanFields:
    given = reading.value("tool.arguments", "gen_ai.tool.call.arguments")
    returned = reading.value("tool.result", "gen_ai.tool.call.result")
    error = failure(reading.raw)
    for event in reading.raw.events:
        if given is None and event.name == _TOOL:
            given = event.attributes.get("content")
            reading.note("tool.arguments", f"event {event.name}")
        elif returned is None and error is None and event.name == _CHOICE:  # of a failure it is the error again
            returned = event.attributes.get("message")
            reading.note("tool.result", f"event {event.name}")
    name = reading.text("tool.name", "gen_ai.tool.name") or reading.raw.name.removeprefix("execute_tool").strip()
    call_id = reading.text("tool.call_id", "gen_ai.tool.call.id")
    fields = reading.tool_run(name or reading.raw.name, given, returned, error=error, call_id=call_id)
    if not _is_masked(tool := fields["tool"]):
        return fields
    tool = replace(tool, arguments=None, result=None if tool.result == _MASK else tool.result)
    return {"tool": tool, "input": None, "output": tool.result}


def complete_tool(reading: SpanReading, fields: SpanFields, given: str, returned: str) -> None:
    """Fill in a tool's fields that the conventions' attributes left open, from a dialect's own attributes."""
    tool: ToolCall = fields["tool"]
    if tool.arguments is None:
        tool = replace(tool, arguments=unwrap.arguments(reading.value("tool.arguments", given)))
    if tool.result is None and tool.error is None:
        outcome = unwrap.result(reading.value("tool.result", returned))
        tool = replace(tool, result=outcome.result, error=outcome.error, call_id=tool.call_id or outcome.call_id)
    fields |= {"tool": tool, "input": tool.arguments, "output": tool.result}


def with_cached(reading: SpanReading, used: Usage) -> Usage:
    """Usage whose input tokens exclude cache reads and writes, as Anthropic counts them."""
    if used.input is None:
        return used
    written = reading.whole("usage.cache_creation", "gen_ai.usage.cache_creation.input_tokens") or 0
    return replace(used, input=used.input + used.cached_input + written)


def _own_events(raw: RawSpan) -> bool:
    """Whether a tool's own span reports its run by the older form's events.

    There they are no conversation: the tool's message is the input, the choice is the output.
    """
    return any(event.name in (_TOOL, _CHOICE) for event in raw.events)


def _retrieval(reading: SpanReading) -> SpanFields:
    held = reading.value("documents", "gen_ai.retrieval.documents")
    return {
        "input": reading.text("input", "gen_ai.retrieval.query.text"),
        "documents": unwrap.documents(held) if held is not None else (),
    }


class EventContents(Struct, frozen=True, kw_only=True):
    """Messages in and out, and the instructions (a list of parts, or text) where they stand apart from them."""

    requested: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    instructions: Json = None


def events_in(value: AttributeValue) -> tuple[RawEvent, ...]:
    """Events that stand in an attribute, as a list of maps with the event's name in each."""
    found = unwrap.decoded(value)
    items: list[Any] = found if isinstance(found, list) else []
    return tuple(
        RawEvent(name=str(item.get("event.name", "")), time_ns=0, attributes=item)
        for item in items if isinstance(item, dict)
    )  # fmt: skip


_WITHHELD, _EMPTY = Message(role="assistant", withheld=True), Message(role="assistant")


def read_events(reading: SpanReading, events: Iterable[RawEvent], source: str = "event") -> EventContents:
    """Read contents from events; of two details events with the same contents the later one is taken.

    ``source`` is what the provenance calls them, before the name of each.
    """
    requested: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    instructions: Json = None
    old_in: list[Message] = []
    old_out: list[Message] = []
    for event in map(_opened, events):
        if event.name == _DETAILS:
            # One event may hold both, or one the question and another the answer.
            if found := _details(reading, "input", event.attributes.get(_MESSAGES_IN)):
                requested = found
            if found := _details(reading, "output", event.attributes.get(_MESSAGES_OUT)):
                answered = found
            instructions = unwrap.decoded(event.attributes.get(INSTRUCTIONS)) or instructions
        elif (role := _ROLES.get(event.name)) is not None:
            if stated := messages.stated(_event_message(event.attributes, role)):
                old_in += stated
                reading.note("input", f"{source} {event.name}")
        elif event.name == _CHOICE:
            if stated := messages.stated(_choice(event.attributes)):
                old_out += stated
                reading.note("output", f"{source} {event.name}")
            else:
                old_out += _wordless(event.attributes, old_in)
    return EventContents(
        requested=requested or tuple(old_in),
        answered=answered or _beside(old_in, old_out),
        instructions=instructions,
    )


def _is_bare(message: Json) -> bool:
    """Whether a message states at most who speaks, and nothing under any other key."""
    return isinstance(message, dict) and not any(held for key, held in message.items() if key not in {"role", "name"})


def _wordless(attributes: Mapping[str, AttributeValue], asked: Sequence[Message]) -> list[Message]:
    """A choice without words: of an empty stream Azure's library states only that it ended by itself."""
    if _is_bare(unwrap.decoded(attributes.get("message"))):
        return [_WITHHELD]
    ended = unwrap.plain(attributes.get("finish_reason")) == "stop" and _OF_A_CHOICE.issuperset(attributes)
    return [_EMPTY] if ended and _in_words(asked) and asked[-1].role != "assistant" else []


def _beside(requested: Sequence[Message], answered: Sequence[Message]) -> tuple[Message, ...]:
    """The answers; one without words beside a question in words is empty, for contents are kept back of both."""
    asked = _in_words(requested)
    return tuple(_EMPTY if asked and message == _WITHHELD else message for message in answered)


def _in_words(found: Iterable[Message]) -> bool:
    return any(message.text for message in found)


def _opened(event: RawEvent) -> RawEvent:
    """The event with what Azure's libraries put into one attribute of it as JSON, or that AWS's distribution moved."""
    if details := moved(event):
        return replace(event, name=_DETAILS, attributes=details)
    held = unwrap.decoded(event.attributes.get(_CONTENT))
    return replace(event, attributes={**event.attributes, **held}) if isinstance(held, dict) else event


def logged(value: AttributeValue) -> list[tuple[str, AttributeValue]]:
    """The role and the content of each message that the record holds for one direction."""
    listed = value.get("messages") if isinstance(value, dict) else None
    found = listed if isinstance(listed, list) else []
    stated = [each for each in found if isinstance(each, dict)]
    return [(role if isinstance(role := each.get("role"), str) else "", each.get("content")) for each in stated]


def moved(event: RawEvent) -> dict[str, AttributeValue]:
    """The span's attributes that are texts of messages in one log record, as AWS's distribution moves them there."""
    found: dict[str, AttributeValue] = {}
    for key, side in ((_MESSAGES_IN, "input"), (_MESSAGES_OUT, "output")):
        for role, body in logged(event.attributes.get(side)):
            if not messages.are_moved(unwrap.plain(body)):
                return {}  # a record of messages, of which one holds such a text
            found[INSTRUCTIONS if role == "system" else key] = body
    return found


def _details(reading: SpanReading, field: str, value: AttributeValue) -> tuple[Message, ...]:
    found = messages.read(unwrap.decoded(value))
    if found:
        reading.note(field, f"event {_DETAILS}")
    return found


def _event_message(attributes: Mapping[str, AttributeValue], role: str) -> Json:
    """The message is the event's attributes; its role is in the event's name."""
    content = messages.content(attributes.get("content", attributes.get("text")))
    if role == "tool" and isinstance(returned := unwrap.decoded(attributes.get("tool_call_outputs")), list):
        held = [each for each in returned if isinstance(each, dict)]
        return [{"role": role, "content": each.get("output"), "tool_call_id": each.get("id")} for each in held]
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
    return _event_message(attributes, "assistant")


def dialect(
    name: str,
    speaks: Callable[[RawSpan], bool],
    adapt: Adapt | None = None,
    *,
    switch: str | None = None,
    by_names: bool = True,
    reads: str = "",
) -> Dialect:
    """A dialect that keeps to the conventions but where ``adapt`` departs from them."""

    def read(raw: RawSpan) -> Span:
        return normalise(raw, name=name, switch=switch, adapt=adapt)

    return Dialect(name=name, speaks=speaks, by_names=by_names, normalise=read, switch=switch, reads=reads)


DIALECT = Dialect(name=NAME, speaks=speaks, normalise=normalise, switch=SWITCH)

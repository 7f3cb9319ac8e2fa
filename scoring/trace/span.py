"""Span: one step of an application, in the normal form that every dialect is normalised into.

Nothing here depends on the emitter. A field that a dialect did not find is ``None`` (or empty), never guessed;
``provenance`` names the attribute behind each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from .reported import ReportedScore

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A decoded JSON value: contents without their wrappers."""
JsonRecord: TypeAlias = Mapping[str, Any]
"""A JSON object that this program wrote, in this version or another. Its types are unchecked: readers convert each
field, and raise ``KeyError``, ``TypeError`` or ``ValueError`` for another shape.
"""

COMPLETED: Final = "completed"
"""All that some providers state of a tool that they ran themselves."""


class SpanKind(StrEnum):
    """The kind of a span's work, under any emitter's name."""

    AGENT = "agent"
    LLM = "llm"
    TOOL = "tool"
    RETRIEVER = "retriever"
    EMBEDDING = "embedding"
    CHAIN = "chain"
    EVALUATOR = "evaluator"
    GUARDRAIL = "guardrail"
    OTHER = "other"


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool call and its outcome: in a span, in a model's message, or in a case.

    ``arguments`` is decoded JSON where it was JSON. ``result`` and ``error`` are ``None`` when unknown;
    ``handoff`` marks pseudo-tools by which one agent passes the work to another.
    """

    name: str
    arguments: Json = None
    result: Json = None
    error: str | None = None
    call_id: str | None = None
    handoff: bool = False


class Message(Struct, frozen=True, kw_only=True):
    """One message to or from a model; ``text`` joins its text parts, ``tool_calls`` are the model's requests.

    A message with role ``tool`` answers the call ``tool_call_id``; its ``text`` is the result, or the error message
    when ``error`` is set. ``withheld``: only the kinds of its parts were sent, and the names of tools, no contents;
    the ``text`` of a tool's may then be ``COMPLETED``.
    """

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    error: bool = False
    withheld: bool = False


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one span. ``input`` includes ``cached_input``, ``output`` includes ``reasoning_output``.

    Of ``input`` and ``output`` one may be None: it was not reported.
    ``own``: it covers only the span's own calls, without those of such spans below; otherwise the usage of a span with
    usage below it counts as a roll-up.
    """

    input: int | None
    output: int | None
    cached_input: int = 0
    reasoning_output: int = 0
    own: bool = False


class Unread(Struct, frozen=True, kw_only=True):
    """Contents that were sent and that no dialect understood, with their place and shape.

    ``source`` is an attribute (``acme.completion``) or an event's (``event acme.answer: body``). ``shape`` describes
    its value without contents. ``field`` is the field that its name suggests, "" for either. ``client`` is the sending
    instrumentation, by the name of its scope. ``cut``: a limit of the client left a part of it.
    """

    source: str
    shape: str
    field: Literal["input", "output", ""] = ""
    client: str = ""
    cut: bool = False


class Span(Struct, frozen=True, kw_only=True):
    """One span in normal form. Times are ns since the epoch, ``cost_usd`` is US dollars.

    ``root_hint`` marks the topmost span that the emitter exported, whose parent will never come. ``parent_raises``: it
    failed, and its emitter never ends a span that raises, such as that above it if nothing went on. ``capture_switch``
    names the setting that would capture contents, when they were not captured; ``unread`` are values that look like
    contents where the span lacks an input or an output, and were not understood. ``reported`` are others' scores of it.
    ``finish_reason`` is why a model stopped, in OpenTelemetry's words (``stop``, ``length``, ``tool_calls``,
    ``content_filter``, ``error``; else as it was sent). ``tool_definitions`` are the tools that a model was offered,
    each text as it was sent (JSON of one definition or of several), and ``demanded_tool`` the one that it had to call,
    by the request's ``tool_choice``. ``dropped_attributes`` counts attributes that
    the SDK dropped. ``from_queue``: it took a message up, whose sender did not wait. ``first_token_s`` is the time
    to the first token of a model's answer, in s. ``trace_input`` and ``trace_output`` are the application's values
    for the whole trace, on whichever span. ``observation_id`` is the id
    by which Langfuse knows it, None where that is ``span_id``.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: SpanKind
    dialect: str
    start_ns: int
    end_ns: int
    error: str | None = None
    root_hint: bool = False
    parent_raises: bool = False
    agent: str | None = None
    tool: ToolCall | None = None
    input: Json = None
    output: Json = None
    input_messages: tuple[Message, ...] = ()
    output_messages: tuple[Message, ...] = ()
    system_prompt: str | None = None
    documents: tuple[str, ...] = ()
    model: str | None = None
    requested_model: str | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    tool_definitions: tuple[str, ...] = ()
    demanded_tool: str | None = None
    dropped_attributes: int = 0
    from_queue: bool = False
    first_token_s: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    trace_name: str | None = None
    trace_input: Json = None
    trace_output: Json = None
    session_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    trace_metadata: Mapping[str, Json] = field(default_factory=dict)
    service: str | None = None
    environment: str | None = None
    release: str | None = None
    trace_state: str = ""
    observation_id: str | None = None
    capture_switch: str | None = None
    unread: tuple[Unread, ...] = ()
    reported: tuple[ReportedScore, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)


Completion: TypeAlias = Literal[
    "root_ended", "pseudo_root", "idle", "deadline", "pressure", "shutdown", "torn", "batch"
]
"""Why a trace was closed.

``pseudo_root``: idle, and only a caller in another process is missing; ``torn``: another monitor may hold spans
of it and did not answer; ``batch``: a recorded delivery that is declared complete.
"""

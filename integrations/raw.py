"""Spans and log records as they were sent, decoded but not yet understood. Sources produce them, dialects read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

AttributeValue: TypeAlias = "bool | int | float | str | bytes | list[AttributeValue] | dict[str, AttributeValue] | None"
"""Any OTLP AnyValue: scalars, bytes, lists (mixed, nested), maps, or None for an empty one."""


MappedField: TypeAlias = Literal[
    "input", "output", "system_prompt", "documents", "kind", "agent", "tool", "arguments", "result", "error", "model",
    "requested_model", "input_tokens", "output_tokens", "session_id", "user_id", "tags",
]  # fmt: skip
"""The fields that an attribute may be mapped to by hand (``sources.attributes``).

``arguments``, ``result``, ``error`` are a tool's; ``kind`` is what a span did (``llm``, ``tool``, ``agent``, …).
"""

OBSERVATION_ID: Final = "sidejudge.observation.id"
"""The attribute that holds Langfuse's id of a span, where that is none of OpenTelemetry's."""
EVALUATION: Final = "gen_ai.evaluation.result"
"""The event with which others report a verdict; one about a whole trace names no span."""


class RawEvent(Struct, frozen=True, kw_only=True):
    """A span event: name, time in ns since the epoch, attributes."""

    name: str
    time_ns: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


class RawSpan(Struct, frozen=True, kw_only=True):
    """One span as received. Ids are lower-case hex; ``parent_id`` None means that none was named.

    ``status_code`` is OTLP's (0 unset, 1 ok, 2 error); times are ns since the epoch. ``dropped_attributes`` is how many
    attributes the client's SDK left out, for its own limits.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    trace_state: str = ""
    kind: int = 0
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    events: tuple[RawEvent, ...] = ()
    status_code: int = 0
    status_message: str = ""
    scope_name: str = ""
    scope_version: str = ""
    dropped_attributes: int = 0
    resource: Mapping[str, AttributeValue] = field(default_factory=dict)


class RawLogRecord(Struct, frozen=True, kw_only=True):
    """One log record as received; ids are lower-case hex, None where the record belongs to no span.

    ``event`` is the event's name, from the record's own field or from the attribute ``event.name``, "" for a plain line
    of a log. ``time_ns`` is when it happened, else when it was observed.
    """

    trace_id: str | None
    span_id: str | None
    time_ns: int
    event: str = ""
    body: AttributeValue = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

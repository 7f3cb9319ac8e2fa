"""Span fields: what a dialect reads of a span, by the fields of ``Span``. None stands for nothing found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, TypedDict, get_args

from sidejudge.scoring.trace.reported import ReportedScore
from sidejudge.scoring.trace.span import Json, Message, ToolCall, Unread, Usage

Contents: TypeAlias = Literal["input", "output", "input_messages", "output_messages"]
CONTENTS: Final[tuple[Contents, ...]] = get_args(Contents)
"""The fields that hold what went into a step and what came out."""


class SpanFields(TypedDict, total=False):
    """Of ``Span``, all but its identity, place and times. A plain ``dict`` at run time, made for every span."""

    error: str | None
    root_hint: bool
    parent_raises: bool
    agent: str | None
    tool: ToolCall
    input: Json
    output: Json
    input_messages: tuple[Message, ...]
    output_messages: tuple[Message, ...]
    reported: tuple[ReportedScore, ...]
    system_prompt: str | None
    documents: tuple[str, ...]
    model: str | None
    requested_model: str | None
    response_id: str | None
    finish_reason: str | None
    tool_definitions: tuple[str, ...]
    demanded_tool: str | None
    first_token_s: float | None
    usage: Usage | None
    cost_usd: float | None
    trace_name: str | None
    trace_input: Json
    trace_output: Json
    session_id: str | None
    user_id: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Json]
    trace_metadata: Mapping[str, Json]
    service: str | None
    environment: str | None
    release: str | None
    capture_switch: str | None
    unread: tuple[Unread, ...]

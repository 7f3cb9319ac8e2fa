"""Reading a raw span: values by attribute key, each remembered with the key that it came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar, Unpack

from sidejudge.integrations.raw import OBSERVATION_ID, AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json, Span, SpanKind, ToolCall, Usage

from . import labels, model_call, unwrap
from .model_call import real, usage, whole
from .span_fields import SpanFields
from .unwrap import Content, ToolResult

_TAKEN_FROM = (("system_prompt", "input"), ("documents", "output"))
_TRACEBACK = "Traceback (most recent call last)"
LONGEST_ERROR: Final = 2000
"""Characters of an error's message."""
_LONGEST_STACK: Final = 16_000
"""Above what a person is asked to decide, which LangChain JS writes twice."""
_CONSUMER: Final = 5
"""OTLP's kind of a span that takes a message up."""
_NO_ERROR = frozenset({"", "none", "null", "no_error", "ok", "unset", "false", "0"})
"""Values of ``error.type`` that clients write where nothing failed."""
_CONTROL_FLOW = re.compile(
    r"(?:langgraph\.errors\.)?(?:ParentCommand|GraphBubbleUp|GraphInterrupt|NodeInterrupt|GraphDrained)"
    r"|(?:pydantic_ai\.exceptions\.)?(?:CallDeferred|ApprovalRequired)|(?:builtins\.)?GeneratorExit|ToolInterruptError"
)
"""What is raised to go elsewhere: to another graph, to a person who decides, back to a reader who has read enough."""
_ABANDONED: Final = "abandoned stream"
"""How OpenTelemetry's own GenAI instrumentations word that a reader left; they name no class beside it."""
_RAISED: Final = re.compile(r"(?P<kind>[\w.]+)(?:[(:].*)?", re.DOTALL)
"""A message that opens with the class of what was raised, as Python prints it, or that is the class alone."""
_PRINTED = re.compile(r"(\w+)\((?:'([^'\\]+)'|\"([^\"\\]+)\"),?\)")
"""An exception as Python prints it: ``ValueError('no such order')``."""
_VAGUE: Final = re.compile(r"(?:Base)?Exception|Error|[a-z_0-9]+")
"""A kind that names no particular class: the base of all exceptions, or a client's own category (``tool_error``)."""
_CLASSED: Final = re.compile(r"\w+(?:Error|Exception)\b(?=[:(])")
_STACK: Final = re.compile(r"(?:(?P<message>.+?)\n\n(?P<kind>\w+): (?P=message)|(?P<bare>\w+))\n\s+at\s.*", re.DOTALL)
"""What LangChain JS writes of an error: its message if it has one, then its stack, which opens with the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One instrumentation family. ``speaks`` recognises its spans, ``normalise`` brings one into normal form.

    A yes of ``speaks`` from the name of the scope and the keys of the attributes, without their values, is final; with
    ``by_names`` it uses nothing else, so that a no is final too. ``switch`` is the setting that makes the family send
    contents, None where it always does. ``reads`` is its text on the reference page; "" stands for the first line of
    the module of ``speaks``.
    """

    name: str
    speaks: Callable[[RawSpan], bool]
    normalise: Callable[[RawSpan], Span]
    by_names: bool = False
    switch: str | None = None
    reads: str = ""


Number = TypeVar("Number", int, float)
OwnMetadata: TypeAlias = Callable[[Mapping[str, Json]], Mapping[str, Json]]


class SpanReading:
    """One raw span being read. Every getter notes, under the field's name, which attribute answered.

    ``own_metadata`` removes the client's own bookkeeping from a span's metadata.
    """

    __slots__ = ("attributes", "names", "own_metadata", "provenance", "raw")

    def __init__(self, raw: RawSpan, own_metadata: OwnMetadata | None = None) -> None:
        self.raw = raw
        self.own_metadata = own_metadata
        self.attributes: Mapping[str, AttributeValue] = raw.attributes
        self.names = tuple(raw.attributes)
        self.provenance: dict[str, str] = {}

    def value(self, field: str, *keys: str) -> AttributeValue:
        """The first of the attributes that is there and was not redacted."""
        for key in keys:
            found = self.attributes.get(key)
            if found is not None and not (isinstance(found, str) and unwrap.removed(found)):
                self.provenance[field] = key
                return found
        return None

    def text(self, field: str, *keys: str) -> str | None:
        """The first attribute that is a text with something in it; numbers are taken as their digits."""
        for key in keys:
            found = self.attributes.get(key)
            if found is None:
                continue
            if not isinstance(found, str):
                if isinstance(found, bool) or not isinstance(found, int | float):
                    continue
                found = str(found)
            if found and not found.isspace() and not unwrap.removed(found):
                self.provenance[field] = key
                return found
        return None

    def whole(self, field: str, *keys: str) -> int | None:
        """The first attribute that is a count."""
        return self._number(field, keys, whole)

    def real(self, field: str, *keys: str) -> float | None:
        """The first attribute that is a finite number."""
        return self._number(field, keys, real)

    def _number(self, field: str, keys: tuple[str, ...], read: Callable[[object], Number | None]) -> Number | None:
        for key in keys:
            held = self.attributes.get(key)
            if held is not None and (found := read(held)) is not None:
                self.provenance[field] = key
                return found
        return None

    def tokens(self, field: str, *counts: tuple[str, ...]) -> Usage | None:
        """Usage from the attributes that count prompt, completion, cached and reasoning tokens."""
        prompt, completion, cached, reasoning = counts
        return usage(
            self.whole(field, *prompt),
            self.whole(field, *completion),
            self.whole(f"{field}.cached_input", *cached) if cached else None,
            self.whole(f"{field}.reasoning_output", *reasoning) if reasoning else None,
        )

    def model_requested_for(self, fields: SpanFields) -> None:
        """Count the model that was read as the requested one; the answering one is unknown there."""
        fields["requested_model"], fields["model"] = fields.get("requested_model") or fields.get("model"), None
        if (source := self.provenance.pop("model", None)) is not None:
            self.provenance.setdefault("requested_model", source)

    def note(self, field: str, source: str) -> None:
        """Remember a source that is not one attribute."""
        self.provenance[field] = source

    def span_name(self, field: str) -> str:
        """The span's name, noted as the source of the field."""
        self.provenance[field] = "span name"
        return self.raw.name

    def no_agent(self, fields: SpanFields) -> None:
        """Drop a value that was read as the agent's name and is none."""
        fields["agent"] = None
        self.provenance.pop("agent", None)

    def tool_run(
        self,
        name: str,
        given: Content,
        returned: Content | ToolResult,
        *,
        error: str | None = None,
        call_id: str | None = None,
    ) -> SpanFields:
        """The fields of a tool's span: its call, unwrapped. Without an ``error`` the span's own is taken."""
        outcome = returned if isinstance(returned, ToolResult) else unwrap.result(returned)
        tool = ToolCall(
            name=name,
            arguments=unwrap.arguments(given),
            result=outcome.result,
            error=error or failure(self.raw) or outcome.error,
            call_id=call_id or outcome.call_id,
        )
        return {"tool": tool, "input": tool.arguments, "output": tool.result}

    def span(self, dialect: str, kind: SpanKind, **fields: Unpack[SpanFields]) -> Span:
        """The span in normal form: ``fields`` as the dialect read them, the rest from what all dialects share."""
        provenance = self.provenance
        found = labels.read(self.raw, self.names, provenance)
        if (failed := failure(self.raw)) is not None:
            found["error"] = failed
        if kind is SpanKind.LLM or kind is SpanKind.AGENT:
            model_call.read(self.raw, self.names, found, provenance)
        if self.own_metadata is not None:
            found["metadata"] = self.own_metadata(found["metadata"])
        for name, value in fields.items():
            if value is not None:
                found[name] = value  # type: ignore[literal-required]  # the names of one dictionary in another
        # What has no attribute of its own stands where the contents do that it was taken from.
        if "error" in found:
            provenance.setdefault("error", "status" if self.raw.status_code == 2 else "error.type")
        for field, source in _TAKEN_FROM:
            if found.get(field) and source in provenance:
                provenance.setdefault(field, provenance[source])
        return self._span(dialect, kind, found)

    def bare(self, dialect: str, kind: SpanKind = SpanKind.OTHER) -> Span:
        """The span's identity, place and times, without any reading."""
        return self._span(dialect, kind, {})

    def _span(self, dialect: str, kind: SpanKind, fields: SpanFields) -> Span:
        raw = self.raw
        observation_id = raw.attributes.get(OBSERVATION_ID)
        return Span(
            trace_id=raw.trace_id,
            span_id=raw.span_id,
            parent_id=raw.parent_id,
            name=raw.name,
            kind=kind,
            dialect=dialect,
            start_ns=raw.start_ns,
            end_ns=raw.end_ns,
            trace_state=raw.trace_state,
            observation_id=observation_id if isinstance(observation_id, str) else None,
            dropped_attributes=raw.dropped_attributes,
            from_queue=raw.kind == _CONSUMER,
            provenance=self.provenance,
            **fields,
        )


def failure(raw: RawSpan) -> str | None:
    """``Type: message`` of a span that failed, from its exception event, status and ``error.type``.

    It failed if its status is an error or, without a status, if it has an ``error.type``, which OpenTelemetry's
    conventions give only to failed operations, or an exception left it. A recorded and caught exception is no failure.
    None for control flow by exceptions: a hand-off to another graph, a pause for a person, a stream that its reader
    left. And for the question by which MCP's clients begin and which servers of older versions do not know: they are
    greeted in the older way then, which has a span of its own.
    """
    if raw.status_code == 1 or raw.attributes.get("mcp.method.name") == "server/discover":
        return None
    stated = raw.attributes.get("error.type")
    if raw.status_code != 2 and stated is None and not raw.events:
        return None
    named = "" if stated is None or is_no_error(str(stated)) else str(stated).strip()
    exception = _exception(raw)
    if raw.status_code != 2 and not named and str(exception.get("exception.escaped", "")).lower() != "true":
        return None
    return _worded(raw.status_message, named, exception)


def recorded(raw: RawSpan) -> str | None:
    """``Type: message`` of the exception that a span recorded and whose status says nothing; None without one."""
    exception = _exception(raw)
    return _worded(raw.status_message, "", exception) if exception and raw.status_code != 1 else None


def worded(stated: str) -> str | None:
    """An error as a client words it, without its stack; None for control flow by exceptions."""
    return _worded(stated, "", {})


def is_no_error(stated: str) -> bool:
    """Whether a client writes this where nothing failed: ``none``, ``ok``, ``false``."""
    return stated.strip().lower() in _NO_ERROR


def _exception(raw: RawSpan) -> Mapping[str, AttributeValue]:
    return next((event.attributes for event in raw.events if event.name == "exception"), {})


def _worded(status: str, named: str, exception: Mapping[str, AttributeValue]) -> str | None:
    kind = _string(exception.get("exception.type")) or ("" if named == "_OTHER" else named)
    message = status or _string(exception.get("exception.message")) or ""
    message = message.partition(_TRACEBACK)[0].strip()[:_LONGEST_STACK]
    if "\n" in message and (stack := _STACK.fullmatch(message)) is not None:
        kind, message = stack["kind"] or stack["bare"], stack["message"] or ""
    message = message[:LONGEST_ERROR]
    raised = _RAISED.fullmatch(message) if not kind or _VAGUE.fullmatch(kind) else None
    if _CONTROL_FLOW.fullmatch(kind if raised is None else raised["kind"]) or (not kind and message == _ABANDONED):
        return None
    if _VAGUE.fullmatch(kind) and (classed := _CLASSED.match(message)) is not None:
        kind = classed[0]  # the message names what was raised
    if kind and (printed := _PRINTED.fullmatch(message)) and kind.rpartition(".")[2] == printed[1]:
        message = f"{printed[1]}: {printed[2] or printed[3]}"
    if kind and kind.rpartition(".")[2] not in message.partition(":")[0]:
        message = f"{kind}: {message}" if message else kind
    return message or "error"


def _string(value: AttributeValue) -> str:
    return value if isinstance(value, str) else ""

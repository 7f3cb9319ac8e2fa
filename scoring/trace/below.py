"""What the spans below a span decide of it: whether an agent is one, and whether a model call failed.

A client may call every request an agent's run: it is one where its models were offered tools. Another ends a model call
as successful though no attempt at it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Final

from msgspec.structs import replace

from .span import Message, Span, SpanKind

IF_OFFERED: Final = "gen_ai.operation.name (where tools are offered)"
"""The provenance of the kind of such an agent."""
OF_NEXT_CALL: Final = "the messages of the next call"
"""The provenance of an answer whose calls the next call's history shows."""


def with_true_agents(spans: Mapping[str, Span]) -> Mapping[str, Span]:
    """The spans by id; such an agent that shows what was asked or answered, and no tool, is a step without a name."""
    open_ = {span.span_id for span in spans.values() if _in_question(span)}
    if not open_:
        return spans
    nearest: dict[str, str | None] = {}
    shown: set[str] = set()
    with_tools: set[str] = set()
    for span in spans.values():
        if (agent := _nearest(span.span_id, spans, open_, nearest)) is not None:
            if _shows_tools(span):
                with_tools.add(agent)
            elif span.output_messages or (span.kind is SpanKind.LLM and span.input_messages):
                shown.add(agent)
    steps = shown - with_tools
    return {span_id: _step(span) if span_id in steps else span for span_id, span in spans.items()}


def _in_question(span: Span) -> bool:
    return span.kind is SpanKind.AGENT and span.provenance.get("kind") == IF_OFFERED


def _shows_tools(span: Span) -> bool:
    called = any(message.tool_calls for message in span.output_messages)
    return called or span.kind is SpanKind.TOOL or bool(span.tool_definitions)


def _nearest(
    span_id: str, spans: Mapping[str, Span], open_: Collection[str], known: dict[str, str | None]
) -> str | None:
    """The agent in question that a span is, or lies below. Each span is passed once: a trace may be very deep."""
    passed: list[str] = []
    at: str | None = span_id
    found: str | None = None
    while at is not None and at in spans:
        if at in open_ or at in known:
            found = at if at in open_ else known[at]
            break
        known[at] = None  # which ends the walk in a cycle of parents
        passed.append(at)
        at = spans[at].parent_id
    known |= dict.fromkeys(passed, found)
    return found


def _step(span: Span) -> Span:
    read = {field: source for field, source in span.provenance.items() if field != "agent"}
    return replace(span, kind=SpanKind.CHAIN, agent=None, provenance=read)


def with_failed_attempts(spans: Mapping[str, Span]) -> Mapping[str, Span]:
    """The spans by id; a model call that shows nothing of an answer has the last error of its attempts, if all failed.

    LiveKit ends such a call as successful, with a reason why the model stopped. One plain step below it that is sound
    may hold the answer, which need not be in the telemetry.
    """
    attempts: dict[str, list[Span]] = {span.span_id: [] for span in spans.values() if _is_silent(span)}
    if not attempts:
        return spans
    for span in spans.values():
        if span.parent_id in attempts:
            attempts[span.parent_id].append(span)
    changed: dict[str, Span] = {}
    for call, steps in attempts.items():
        last = max(steps, key=lambda step: (step.end_ns, step.span_id), default=None)
        all_failed = all(step.kind is SpanKind.OTHER and step.error is not None for step in steps)
        if last is not None and all_failed:
            read = {**spans[call].provenance, "error": "the last step below"}
            changed[call] = replace(spans[call], error=last.error, provenance=read)
    return {span_id: changed.get(span_id, span) for span_id, span in spans.items()}


def with_answers_of_histories(spans: Mapping[str, Span]) -> Mapping[str, Span]:
    """The spans by id; tool calls that a model call does not show are taken from the next model call beside it.

    The messages of that one are the messages of the first, its answer with the calls, and the tools' results.
    """
    beside: dict[str | None, list[Span]] = {}
    for span in spans.values():
        if span.kind is SpanKind.LLM and span.input_messages:
            beside.setdefault(span.parent_id, []).append(span)
    changed: dict[str, Span] = {}
    for calls in beside.values():
        calls.sort(key=lambda call: (call.start_ns, call.span_id))
        for call, after in itertools.pairwise(calls):
            place = len(call.input_messages)
            found = after.input_messages[place : place + 1]
            if _may_be_answer(call, found) and after.input_messages[:place] == call.input_messages:
                read = {**call.provenance, "output": OF_NEXT_CALL}
                changed[call.span_id] = replace(call, output_messages=found, output=found[0].text, provenance=read)
    return {span_id: changed.get(span_id, span) for span_id, span in spans.items()} if changed else spans


def _may_be_answer(call: Span, found: tuple[Message, ...]) -> bool:
    """Whether a message calls tools, and the model call has no answer, or its text alone."""
    if call.error is not None or not found or found[0].role != "assistant" or not found[0].tool_calls:
        return False
    own = [message for message in call.output_messages if message.text or message.tool_calls]
    shown = "".join(message.text for message in own) or call.output
    return not any(message.tool_calls for message in own) and shown in (None, "", found[0].text)


def _is_silent(span: Span) -> bool:
    if span.kind is not SpanKind.LLM or span.output_messages:
        return False
    return all(each is None for each in (span.error, span.output, span.usage, span.response_id))

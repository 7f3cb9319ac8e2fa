"""Which tools were called: tool spans, completed by and merged with the calls in the models' messages.

A tool span tells that a tool ran; a model's message tells with what it was asked to. Where only the message exists (no
tool span is made for it), the message that answers the call gives the result.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from .jsontext import decoded
from .span import Json, Message, Span, SpanKind, ToolCall
from .trace import Trace

_HANDOFF = re.compile(r"(transfer[_\W]to|delegate|hand[_\W]?off)(?:[_\W]|$)", re.IGNORECASE)
_VERBS = re.compile(r"^(ask|call|consult|run|invoke|query|use|delegate_to|transfer_to|hand_?off_to)_|_(agent|tool)$")


_NOT_WORDS = re.compile(r"[\W_]+")
_TWIN_WITHIN = 4
"""Steps up within which another span that tells of the same call is looked for."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call in a message, when it was made, and the message that answers it."""

    call: ToolCall
    at_ns: int
    answer: Message | None


def tool_calls(trace: Trace, runs: tuple[Span, ...]) -> tuple[ToolCall, ...] | None:
    """Every tool call in order of time, hand-offs flagged; None where models answered without contents being captured.

    A hand-off is a pseudo-tool by which one agent passes the work to another: named like one (``transfer_to_…``,
    ``handoff``, ``delegate_…``), or with a run of an agent right below it, or named after an agent that ran.
    """
    spans, twins = _without_twins(trace)
    asked = _asked(trace)
    if not spans and not asked:
        return None if _contents_unknown(trace) else ()
    matched = _match(spans, asked)
    agents = {run.agent.lower().replace(" ", "_") for run in runs if run.agent}
    above_runs = (_nearest(trace, run) for run in runs)
    delegating = {twins.get(above.span_id, above.span_id) for above in above_runs if above is not None}
    found: list[tuple[int, ToolCall]] = []
    for index, span in enumerate(spans):
        call = _merge(span, matched.get(index))
        handoff = call.handoff or _is_handoff(call, agents) or span.span_id in delegating
        found.append((span.start_ns, _flagged(call, handoff)))
    used = {id(ask) for ask in matched.values()}
    for ask in asked:
        if id(ask) not in used:
            call = _completed(ask)
            found.append((ask.at_ns, _flagged(call, call.handoff or _is_handoff(call, agents))))
    return tuple(call for _, call in sorted(found, key=lambda pair: pair[0]))


def _without_twins(trace: Trace) -> tuple[list[Span], dict[str, str]]:
    """The tool spans, each call once: a framework and an instrumentation of it may both make a span of it.

    The upper one is kept and completed from the lower one, which knows whether the tool raised. Also returns, by the id
    of each span that was left out, the id of the one that stands for it.
    """
    kept: dict[str, Span] = {}
    twins: dict[str, str] = {}
    for span in trace.from_top:
        if span.kind is not SpanKind.TOOL or span.tool is None:
            continue
        upper = next((above for above in islice(trace.ancestors(span), _TWIN_WITHIN) if above.tool is not None), None)
        held = kept.get(twins.get(upper.span_id, upper.span_id)) if upper is not None else None
        if held is None or held.tool is None or not _same_call(held.tool, span.tool):
            kept[span.span_id] = span
            continue
        twins[span.span_id] = held.span_id
        error = held.tool.error or span.tool.error
        kept[held.span_id] = replace(held, tool=replace(
            held.tool,
            arguments=span.tool.arguments if held.tool.arguments is None else held.tool.arguments,
            result=None if error else span.tool.result if held.tool.result is None else held.tool.result,
            error=error,
            call_id=held.tool.call_id or span.tool.call_id,
        ))  # fmt: skip
    return [kept[span.span_id] for span in trace.spans if span.span_id in kept], twins


def _same_call(upper: ToolCall, lower: ToolCall) -> bool:
    """Whether nothing that the two tell contradicts it: a tool that calls itself gives itself other arguments."""
    ids = {upper.call_id, lower.call_id} - {None}
    if upper.name != lower.name or len(ids) > 1:
        return False
    a, b = upper.arguments, lower.arguments
    return a is None or b is None or a == b or (a,) == _sole(b) or (b,) == _sole(a)


def _contents_unknown(trace: Trace) -> bool:
    calls = trace.models
    return bool(calls) and not any(span.output_messages or span.output is not None for span in calls)


def _asked(trace: Trace) -> list[_Asked]:
    """Calls that models made in this trace: those in their answers, not those in the history they were given."""
    speaking = [span for span in trace.spans if span.output_messages]
    asking = [span for span in speaking if any(message.tool_calls for message in span.output_messages)]
    if not asking:
        return []
    answers = _answers(trace)
    covered = _above_models(trace)
    found: list[_Asked] = []
    seen: set[tuple[str, str, str]] = set()
    made: set[tuple[str, str]] = set()
    for span in sorted(asking, key=lambda s: s.end_ns):
        # A step's messages count only where no model call below it has them at first hand.
        if span.kind is not SpanKind.LLM and span.span_id in covered:
            continue
        calls = [call for message in span.output_messages for call in message.tool_calls]
        ids = {call.call_id for call in calls}
        history = (call for message in span.input_messages for call in message.tool_calls)
        known = {_identity(call) for call in history if call.call_id in ids}
        for call in calls:
            identity = _identity(call)
            if call.call_id is not None and (identity in known or identity in seen):
                continue
            # A model call around another one tells its calls again, some without their ids.
            if call.call_id is None and span.span_id in covered and identity[1:] in made:
                continue
            seen.add(identity)
            made.add(identity[1:])
            found.append(_Asked(call, span.end_ns, answers.get(call.call_id) if call.call_id else None))
    return found


def _above_models(trace: Trace) -> set[str]:
    """Ids of all spans with a model call below them."""
    found: set[str] = set()
    for span in trace.models:
        for above in trace.ancestors(span):
            if above.span_id in found:
                break
            found.add(above.span_id)
    return found


def _identity(call: ToolCall) -> tuple[str, str, str]:
    return (call.call_id or "", call.name, _canonical(call.arguments))


_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=str).encode
"""Arguments as text that is the same for the same arguments."""


def _answers(trace: Trace) -> dict[str | None, Message]:
    """Tool messages by the call they answer; the first one said stays."""
    found: dict[str | None, Message] = {}
    for span in trace.spans:
        for message in (*span.input_messages, *span.output_messages):
            if message.role == "tool" and message.tool_call_id is not None:
                found.setdefault(message.tool_call_id, message)
    return found


def _match(spans: list[Span], asked: list[_Asked]) -> dict[int, _Asked]:
    """Which message call each tool span carried out: by call id, else by name and arguments, else by name, in order.

    At last by name and arguments where a model is told another spelling: many accept only letters, digits and ``_``.
    """
    matched: dict[int, _Asked] = {}
    taken: set[int] = set()
    for keys in (_by_id, _by_arguments, _by_name, _by_words):
        if len(matched) == min(len(spans), len(asked)):
            break
        free: dict[tuple[str, ...], deque[int]] = {}
        for index, ask in enumerate(asked):
            for key in keys(ask.call, asked=True) if index not in taken else ():
                free.setdefault(key, deque()).append(index)
        for number, span in enumerate(spans):
            for key in keys(span.tool, asked=False) if span.tool and number not in matched else ():
                waiting = free.get(key, deque())
                while waiting and waiting[0] in taken:
                    waiting.popleft()
                if waiting:
                    taken.add(waiting[0])
                    matched[number] = asked[waiting.popleft()]
    return matched


def _by_id(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    del asked
    return [(call.call_id,)] if call.call_id is not None else []


def _by_arguments(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    """A call also goes by its only argument's value: some clients send that bare."""
    keys = [(call.name, _canonical(call.arguments))]
    return [*keys, *((call.name, _canonical(value)) for value in _sole(call.arguments) if asked)]


def _by_name(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    """The name alone suffices where one of the two has no arguments to compare."""
    none = call.arguments in (None, {})
    if asked:
        return [("any", call.name), *([("bare", call.name)] if none else [])]
    return [("any" if none else "bare", call.name)]


def _by_words(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    name = _NOT_WORDS.sub("_", call.name).casefold()
    return _by_arguments(replace(call, name=name), asked=asked) if call.arguments else []


def _sole(arguments: Json) -> tuple[Json, ...]:
    """The value of a call's only argument: some clients send it bare."""
    return tuple(arguments.values()) if isinstance(arguments, dict) and len(arguments) == 1 else ()


def _merge(span: Span, ask: _Asked | None) -> ToolCall:
    """The span knows what happened, the message what was asked."""
    tool = span.tool or ToolCall(name=span.name)
    if ask is None:
        return tool
    asked = _completed(ask)
    keep = asked.arguments if tool.arguments is None or _sole(asked.arguments) == (tool.arguments,) else tool.arguments
    unknown = tool.result is None and tool.error is None
    return replace(
        tool,
        arguments=keep,
        result=asked.result if unknown else tool.result,
        error=asked.error if unknown else tool.error,
        call_id=asked.call_id or tool.call_id,
    )


def _completed(ask: _Asked) -> ToolCall:
    if ask.answer is None:
        return ask.call
    if ask.answer.error:
        return replace(ask.call, error=ask.answer.text or "error")
    return replace(ask.call, result=_result(ask.answer.text))


def _result(text: str) -> Json:
    """A result that is a JSON object or list, decoded; any other text as it is."""
    return decoded(text) if text[:1] in {"{", "["} else text


def _flagged(call: ToolCall, handoff: bool) -> ToolCall:  # noqa: FBT001  # what it is flagged with
    return call if call.handoff == handoff else replace(call, handoff=handoff)


def _is_handoff(call: ToolCall, agents: set[str]) -> bool:
    if _HANDOFF.match(call.name):
        return True
    if not agents:
        return False
    name = call.name.lower()
    stripped = _VERBS.sub("", _VERBS.sub("", name))
    return not agents.isdisjoint({name, stripped})


def _nearest(trace: Trace, run: Span) -> Span | None:
    """The tool or agent right above a run: when it is a tool, that tool is how the work was passed on."""
    kinds = (SpanKind.TOOL, SpanKind.AGENT)
    above: Iterator[Span] = trace.ancestors(run)
    return next((span for span in above if span.kind in kinds), None)

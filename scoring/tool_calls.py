"""Which tools were called: tool spans, completed by and merged with the calls in the models' messages.

A tool span tells that a tool ran; a model's message tells with what it was asked to. Where only the message exists (no
tool span is made for it), the message that answers the call gives the result.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .jsontext import decoded
from .span import Json, Span, SpanKind, ToolCall
from .told import Told
from .tool_answers import Answers, Asked, canonical, identity
from .tool_spans import sole, tool_spans
from .trace import Trace

_HANDOFF = re.compile(r"(transfer[_\W]to|delegate|hand[_\W]?off)(?:[_\W]|$)", re.IGNORECASE)
_VERBS = re.compile(r"^(ask|call|consult|run|invoke|query|use|delegate_to|transfer_to|hand_?off_to)_|_(agent|tool)$")
_NOT_WORDS = re.compile(r"[\W_]+")


def tool_calls(trace: Trace, told: Told, runs: tuple[Span, ...]) -> tuple[ToolCall, ...] | None:
    """Every tool call in order of time, hand-offs flagged; None where models answered without contents being captured.

    A hand-off is a pseudo-tool by which one agent passes the work to another: named like one (``transfer_to_…``,
    ``handoff``, ``delegate_…``), or with a run of an agent right below it, or named after an agent that ran.
    """
    spans, twins = tool_spans(trace, told.tools)
    asked = _asked(trace, told.asking)
    if not spans and not asked:
        return None if _contents_unknown(trace) else ()
    matched = _match(spans, asked)
    if not _all_told(spans, asked, matched):
        asked = Answers(trace).to(asked)
    agents = {run.agent.lower().replace(" ", "_") for run in runs if run.agent}
    above_runs = (_nearest(trace, run) for run in runs)
    delegating = {twins.get(above.span_id, above.span_id) for above in above_runs if above is not None}
    found: list[tuple[int, ToolCall]] = []
    for index, span in enumerate(spans):
        call = _merge(span, asked[matched[index]] if index in matched else None)
        handoff = call.handoff or _is_handoff(call, agents) or span.span_id in delegating
        found.append((span.start_ns, _flagged(call, handoff)))
    used = set(matched.values())
    for index, ask in enumerate(asked):
        if index not in used:
            call = _completed(ask)
            found.append((ask.at_ns, _flagged(call, call.handoff or _is_handoff(call, agents))))
    return tuple(call for _, call in sorted(found, key=lambda pair: pair[0]))


def _contents_unknown(trace: Trace) -> bool:
    calls = trace.models
    return bool(calls) and not any(span.output_messages or span.output is not None for span in calls)


def _asked(trace: Trace, asking: Sequence[Span]) -> list[Asked]:
    """Calls that models made in this trace: those in their answers, not those in the history they were given."""
    if not asking:
        return []
    covered = _above_models(trace)
    found: list[Asked] = []
    seen: set[tuple[str, str, str]] = set()
    made: set[tuple[str, str]] = set()
    for span in sorted(asking, key=lambda s: s.end_ns):
        # A step's messages count only where no model call below it has them at first hand.
        if span.kind is not SpanKind.LLM and span.span_id in covered:
            continue
        calls = [call for message in span.output_messages for call in message.tool_calls]
        ids = {call.call_id for call in calls}
        history = (call for message in span.input_messages for call in message.tool_calls)
        known = {identity(call) for call in history if call.call_id in ids}
        for call in calls:
            told = identity(call)
            if call.call_id is not None and (told in known or told in seen):
                continue
            # A model call around another one tells its calls again, some without their ids.
            if call.call_id is None and span.span_id in covered and told[1:] in made:
                continue
            seen.add(told)
            made.add(told[1:])
            found.append(Asked(call, span.end_ns, None))
    return found


def _above_models(trace: Trace) -> set[str]:
    """Ids of all spans with a model call below them."""
    found: set[str] = set()
    for span in trace.models:
        above = trace.parent(span)
        while above is not None and above is not span and above.span_id not in found:
            found.add(above.span_id)
            above = trace.parent(above)
    return found


def _match(spans: Sequence[Span], asked: Sequence[Asked]) -> dict[int, int]:
    """Which message call each tool span carried out: by call id, else by name and arguments, else by name, in order.

    At last by name and arguments where a model is told another spelling: many accept only letters, digits and ``_``.
    """
    matched: dict[int, int] = {}
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
                    matched[number] = waiting.popleft()
    return matched


def _all_told(spans: Sequence[Span], asked: Sequence[Asked], matched: Mapping[int, int]) -> bool:
    """Whether the spans themselves tell what came of every call: then no message has to be looked for."""
    return len(matched) == len(asked) and not any(_untold(spans[number]) for number in matched)


def _untold(span: Span) -> bool:
    return span.tool is None or (span.tool.result is None and span.tool.error is None)


def _by_id(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    del asked
    return [(call.call_id,)] if call.call_id is not None else []


def _by_arguments(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    """A call also goes by its only argument's value: some clients send that bare."""
    keys = [(call.name, canonical(call.arguments))]
    return [*keys, *((call.name, canonical(value)) for value in sole(call.arguments) if asked)]


def _by_name(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    """The name alone suffices where one of the two has no arguments to compare."""
    none = call.arguments in (None, {})
    if asked:
        return [("any", call.name), *([("bare", call.name)] if none else [])]
    return [("any" if none else "bare", call.name)]


def _by_words(call: ToolCall, *, asked: bool) -> list[tuple[str, ...]]:
    name = _NOT_WORDS.sub("_", call.name).casefold()
    return _by_arguments(replace(call, name=name), asked=asked) if call.arguments else []


def _merge(span: Span, ask: Asked | None) -> ToolCall:
    """The span knows what happened, the message what was asked."""
    tool = span.tool or ToolCall(name=span.name)
    if ask is None:
        return tool
    asked = ask.call
    keep = asked.arguments if tool.arguments is None or sole(asked.arguments) == (tool.arguments,) else tool.arguments
    told = _completed(ask) if _untold(span) else tool
    return ToolCall(
        name=tool.name,
        arguments=keep,
        result=told.result,
        error=told.error,
        call_id=asked.call_id or tool.call_id,
        handoff=tool.handoff,
    )


def _completed(ask: Asked) -> ToolCall:
    if ask.answer is None:
        return ask.call
    if ask.answer.error:
        return replace(ask.call, error=ask.answer.text or "error")
    return replace(ask.call, result=_result(ask.answer.text))


def _result(text: str) -> Json:
    """A result that is a JSON object or list, decoded; any other text as it is.

    Off comes the object into which a result has to be wrapped for APIs that take no other.
    """
    match decoded(text) if text[:1] in {"{", "["} else text:
        case {"result": held, **others} | {"output": held, **others} if not others:
            return held
        case found:
            return found


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

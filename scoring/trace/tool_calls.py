"""Tool calls: tool spans, merged with the calls in the models' messages.

A tool span records that a tool ran; a model's message records the requested arguments. Where only the message exists
(no tool span is made for it), the message that answers the call gives the result. Found are the message call that each
tool span carried out, and the order of the calls. With some tools an agent gives its answer: ``final_answer``,
``submit``, ``finish``.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from .agent_runs import NAMED_BY_SPAN
from .jsontext import decoded
from .span import Json, Span, SpanKind, ToolCall
from .tool_spans import (
    RequestedCall,
    ToolAnswers,
    call_identity,
    error_below,
    identity,
    sole,
    tool_spans,
    without_requests,
)
from .trace import Trace, clock_corrections, speaking
from .trace_index import TraceIndex

_NOT_WORDS = re.compile(r"[\W_]+")
_NO_NAMES: Final = frozenset({
    "executetool", "toolcall", "toolexecution", "calltool", "runtool", "functioncall",
    "dynamicstructuredtool", "dynamictool", "structuredtool",
})  # fmt: skip
"""What a tool is called, as ``plain`` has it, whose span names the operation or LangChain's class alone: the model's
message names it.
"""
_OF_A_CLASS: Final = ".__call__"
"""How the name of a span ends that names the class of a tool alone, as MLflow's of smolagents."""
_STEPS: Final = frozenset({SpanKind.OTHER, SpanKind.CHAIN})
_ANSWERING: Final = frozenset({*_STEPS, SpanKind.AGENT})
_MOST_LEFT: Final = 100
"""Most spans, and most calls, that are compared argument by argument."""


def is_nameless(name: str) -> bool:
    """Whether a tool's name is no more than that some tool ran."""
    return plain(name) in _NO_NAMES or name.endswith(_OF_A_CLASS)


def match(spans: Sequence[Span], requested: Sequence[RequestedCall]) -> dict[int, int]:
    """The message call that each tool span carried out: by call id, else by name and arguments, else by name, in order.

    At last by name and arguments in another spelling: many models accept only letters, digits and ``_``; or by the name
    and the requested arguments among those that the tool ran with, beside its defaults. Of more equal calls than spans,
    a span carried out the latest that was made before it: some clients send no span of a tool that raises.
    """
    matched: dict[int, int] = {}
    taken: set[int] = set()
    for keys in (_by_id, _by_arguments, _by_name, _by_words):
        if len(matched) == min(len(spans), len(requested)):
            break
        free: dict[tuple[str, ...], deque[int]] = {}
        for index, ask in enumerate(requested):
            for key in keys(ask.call, requested=True) if index not in taken else ():
                free.setdefault(key, deque()).append(index)
        ran = [
            (number, span, key)
            for number, span in enumerate(spans) if span.tool and number not in matched
            for key in keys(span.tool, requested=False)  # one at most
        ]  # fmt: skip
        sought = Counter(key for _, _, key in ran)
        for number, span, key in ran:
            waiting = free.get(key, deque())
            while waiting and (
                waiting[0] in taken or (len(waiting) > sought[key] and _made_again(requested, waiting, span))
            ):
                waiting.popleft()
            sought[key] -= 1
            if waiting:
                taken.add(waiting[0])
                matched[number] = waiting.popleft()
    return matched | _with_defaults(spans, requested, matched)


def _made_again(requested: Sequence[RequestedCall], waiting: Sequence[int], span: Span) -> bool:
    """Whether the next of the waiting calls, too, was made before the span began, and by a later answer."""
    return len(waiting) > 1 and requested[waiting[0]].at_ns < requested[waiting[1]].at_ns <= span.start_ns


def _with_defaults(
    spans: Sequence[Span], requested: Sequence[RequestedCall], matched: Mapping[int, int]
) -> dict[int, int]:
    """Match the remaining calls by name, if the tool ran with the requested arguments and perhaps more."""
    found: dict[int, int] = {}
    left = [(number, span.tool) for number, span in enumerate(spans) if span.tool and number not in matched]
    taken = {*matched.values()} if left else set()
    asked = [(index, ask.call) for index, ask in enumerate(requested) if index not in taken] if left else []
    for number, ran in left[:_MOST_LEFT]:
        for place, (index, call) in enumerate(asked[:_MOST_LEFT]):
            ids = {call.call_id, ran.call_id} - {None}
            if len(ids) < 2 and call.name == ran.name and _ran_with(call.arguments, ran.arguments):
                found[number] = index
                del asked[place]
                break
    return found


def _ran_with(requested: Json, given: Json) -> bool:
    """Whether a tool was given all requested arguments, each maybe in another type: ``"3"`` for 3.

    What a model wrote that is no JSON, some frameworks mend.
    """
    if isinstance(requested, str) and requested[:1] == "{" and isinstance(given, dict):
        return True
    if not isinstance(requested, dict) or not isinstance(given, dict) or not requested:
        return False
    return all(key in given and _alike(value, given[key]) for key, value in requested.items())


def _alike(requested: Json, given: Json) -> bool:
    simple = not isinstance(requested, dict | list) and not isinstance(given, dict | list)
    return requested == given or (simple and str(requested).casefold() == str(given).casefold())


def in_order(
    spans: Sequence[Span],
    matched: Mapping[int, int],
    requested: Sequence[RequestedCall],
    moved: Mapping[str, int],
) -> list[tuple[int, int]]:
    """The key that orders each span's call: its beginning and, among simultaneous ones, its place in ``requested``.

    Among spans that one answer requested together, the first requested one gets the earliest beginning. ``moved``
    corrects clocks, in ns by span id.
    """
    found = [
        (span.start_ns + moved.get(span.span_id, 0), matched.get(number, len(requested)))
        for number, span in enumerate(spans)
    ]
    side_by_side: dict[int, list[int]] = {}
    for number, place in matched.items():
        side_by_side.setdefault(requested[place].at_ns, []).append(number)
    for numbers in side_by_side.values():
        if len(numbers) > 1:
            began = sorted(found[number][0] for number in numbers)
            for number, start_ns in zip(sorted(numbers, key=matched.__getitem__), began, strict=True):
                found[number] = (start_ns, matched[number])
    return found


def _by_id(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    del requested
    return [(call.call_id,)] if call.call_id is not None else []


def _by_arguments(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    """Keys of a call by its arguments, also by its only argument's bare value, which some clients send.

    Of a span that names no tool the arguments alone count.
    """
    given = identity(call.arguments)
    if not requested:
        return [("" if is_nameless(call.name) else call.name, given)]
    keys = [("", given), (call.name, given)]
    return [*keys, *((call.name, identity(value)) for value in sole(call.arguments))]


def _by_name(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    """The name alone suffices where one of the two has no arguments to compare."""
    none = call.arguments in (None, {})
    if requested:
        return [("any", call.name), *([("bare", call.name)] if none else [])]
    return [("any" if none else "bare", call.name)]


def _by_words(call: ToolCall, *, requested: bool) -> list[tuple[str, ...]]:
    name = _NOT_WORDS.sub("_", call.name).casefold()
    return _by_arguments(replace(call, name=name), requested=requested) if call.arguments else []


_HANDOFF = re.compile(r"(transfer[_\W]to|delegate|hand[_\W]?off)(?:[_\W]|$)", re.IGNORECASE)
_VERBS = re.compile(r"^(ask|call|consult|run|invoke|query|use|delegate_to|transfer_to|hand_?off_to)_|_(agent|tool)$")


def tool_calls(trace: Trace, indexed: TraceIndex, runs: tuple[Span, ...]) -> tuple[tuple[ToolCall, str], ...] | None:
    """Every tool call in order of time, each with the id of the span that shows it, hand-offs flagged.

    None where models answered, or agents ran, without contents being captured.

    Calls that one answer requests side by side stand in the order of the answer, whichever began first. A hand-off is a
    pseudo-tool by which one agent passes the work to another: named like one (``transfer_to_…``, ``handoff``,
    ``delegate_…``), or with a run of an agent right below it, or named after an agent that ran, or, without a span,
    answered with the output of an agent that ran directly below another.
    """
    spans, twins = tool_spans(trace, indexed.tools)
    requested = _requested(trace, indexed.asking)
    if not spans and not requested:
        return None if _contents_unknown(trace) else ()
    spans, requested = without_requests(trace, spans, requested)
    spans = _with_steps(trace, _as_requested(spans, requested), requested)
    matched = match(spans, requested)
    if not _all_reported(spans, requested, matched):
        requested = ToolAnswers(trace).to(requested)
    agents = {run.agent.lower().replace(" ", "_") for run in runs if run.agent}
    above_runs = [(run, above) for run in runs if (above := _nearest(trace, run)) is not None]
    delegating = {twins.get(above.span_id, above.span_id) for _, above in above_runs}
    returned = {run.output for run, above in above_runs if above.agent and isinstance(run.output, str) and run.output}
    found: list[tuple[tuple[int, int], ToolCall, str]] = []
    moved = clock_corrections(trace)
    order = in_order(spans, matched, requested, moved)
    unmatched = {index: span for index, span in enumerate(spans) if index not in matched}
    earlier = _attempts(requested, unmatched) | _earlier(trace, unmatched)
    for index, span in enumerate(spans):
        call = _merge(span, requested[matched[index]] if index in matched else earlier.get(index))
        if call.error is None and (below := error_below(trace, span, call)) is not None:
            call = replace(call, result=None, error=below)
        handoff = call.handoff or _is_handoff(call, agents) or span.span_id in delegating
        found.append((order[index], _flagged(call, handoff), span.span_id))
    used = set(matched.values())
    answering = _answering(trace, [ask.call for index, ask in enumerate(requested) if index not in used])
    for index, ask in enumerate(requested):
        if index not in used and ask.call.name not in answering:
            call = _completed(ask)
            passed_on = ask.answer is not None and ask.answer.text in returned
            flag = call.handoff or passed_on or _is_handoff(call, agents)
            at_ns = ask.at_ns + moved.get(ask.span_id, 0)
            found.append(((at_ns, index), _flagged(call, flag), ask.span_id))
    return tuple((call, span_id) for _, call, span_id in sorted(found, key=lambda entry: entry[0]))


def _answering(trace: Trace, calls: Sequence[ToolCall]) -> set[str]:
    """Names of pseudo-tools for answers in a form: they have no span, and a step returned their arguments."""
    asked = {
        identity(call.arguments): call.name for call in calls if call.arguments and isinstance(call.arguments, dict)
    }
    stated = (decoded(span.output) for span in trace.spans if span.kind in _ANSWERING) if asked else ()
    return {asked[key] for value in stated if isinstance(value, dict) and (key := identity(value)) in asked}


def demanded_form(trace: Trace) -> ToolCall | None:
    """The call that the last model had to make, without a result: it is the answer in the requested form.

    So Instructor has models answer. A tool that ran has a span or a result in a later request; one among others that
    were offered may have run where nothing shows it.
    """
    last = max(speaking(trace), key=lambda span: (span.end_ns, span.start_ns), default=None)
    if last is None or last.demanded_tool is None or last.error is not None:
        return None
    calls = [call for message in last.output_messages for call in message.tool_calls]
    if len(calls) != 1 or calls[0].name != last.demanded_tool or calls[0].error is not None or _offers_several(last):
        return None
    after = (span for span in trace.spans if span.start_ns >= last.start_ns)  # a step of that name is its run, too
    return None if any(last.demanded_tool in (span.name, span.tool and span.tool.name) for span in after) else calls[0]


def _offers_several(span: Span) -> bool:
    if len(span.tool_definitions) != 1:
        return bool(span.tool_definitions)
    stated = decoded(span.tool_definitions[0])
    tools = decoded(stated.get("tools")) if isinstance(stated, dict) else stated
    return isinstance(tools, list) and len(tools) > 1


def asks_for_tools(span: Span) -> bool:
    """Whether a model calls tools whose results it has yet to see; a provider's own tools may have answered it.

    A call that failed before any tool ran has no result.
    """
    calls = [call for message in span.output_messages for call in message.tool_calls if call.error is None]
    if not calls:
        return False
    results = [message for message in span.output_messages if message.role == "tool"]
    answered = Counter((result.tool_call_id, result.tool_call_id is None and result.name) for result in results)
    made = Counter((call.call_id, call.call_id is None and call.name) for call in calls)
    return any(answered[key] < (1 if key[0] is not None else number) for key, number in made.items())


def _as_requested(spans: Sequence[Span], requested: Sequence[RequestedCall]) -> Sequence[Span]:
    """The spans; a tool that only its span's name names, with more in it (``lookup [17]``), is called as requested."""
    guessed = [span for span in spans if span.provenance.get("tool.name") == NAMED_BY_SPAN]
    if not guessed:
        return spans
    shown = {span.tool.name for span in spans if span.tool}
    asked = [ask.call.name for ask in requested if ask.call.name not in shown]
    forms = {name: re.compile(rf"(?<![\w-]){re.escape(name)}(?!\w|-[^\W\d])") for name in set(asked[:_MOST_LEFT])}
    named: dict[str, ToolCall] = {}
    for span in guessed[:_MOST_LEFT]:
        if span.tool and len(found := [name for name, form in forms.items() if form.search(span.tool.name)]) == 1:
            named[span.span_id] = replace(span.tool, name=found[0])
    return [replace(span, tool=named.get(span.span_id, span.tool)) for span in spans] if named else spans


def _with_steps(trace: Trace, spans: Sequence[Span], requested: Sequence[RequestedCall]) -> Sequence[Span]:
    """The tool spans; for a requested tool that has none, the application's own steps of that very name.

    There must be as many such steps as calls: otherwise it is unknown which step ran a call.
    """
    if len(spans) >= len(requested):
        return spans
    shown = {span.tool.name for span in spans if span.tool}
    asked = Counter(ask.call.name for ask in requested if ask.call.name not in shown)
    plain = [span for span in trace.spans if span.kind in _STEPS and span.name in asked]
    there = Counter(span.name for span in plain)
    own = [
        replace(span, tool=ToolCall(name=span.name, error=span.error))
        for span in plain
        if there[span.name] == asked[span.name]
    ]
    return sorted((*spans, *own), key=lambda span: span.start_ns) if own else spans


def _contents_unknown(trace: Trace) -> bool:
    """Whether a call of a tool would not show: models, or agents without a span of any, and no contents of theirs.

    One answer that was not captured is enough where its model was offered tools, or where the history of another model
    call holds calls that its own does not; an agent that was offered some shows none where no model's call is there.
    A span without contents beside another of the same response hides none, nor does one below the span of its call, or
    around spans that were offered the same tools and show what was answered.
    A model that stopped for the sake of calls made some, which some clients leave out.
    """
    if any(each.finish_reason == "tool_calls" for each in trace.models):
        return True
    spoken = [each for each in trace.models if each.output is not None or each.output_messages]
    shown = {each.response_id for each in spoken} - {None}
    below = Counter(each.parent_id for each in trace.models)
    shown_below = Counter((each.parent_id, each.tool_definitions) for each in spoken)
    silent = [
        each
        for each in trace.models
        if each.error is None
        and each.output is None
        and not each.output_messages
        and each.response_id not in shown
        and not (below[each.parent_id] == 1 and _shown_above(trace, each))
        and not 0 < below[each.span_id] == shown_below[each.span_id, each.tool_definitions]
    ]
    most = max(map(_in_history, trace.models), default=0) if silent else 0
    if any(span.tool_definitions or _in_history(span) < most for span in silent):
        return True
    if spoken:
        return False
    if trace.models:
        return any(span.error is None for span in trace.models)  # a model call that failed called nothing
    agents = [span for span in trace.spans if span.kind is SpanKind.AGENT]
    said = any(span.input_messages or span.output_messages or span.input or span.output for span in trace.spans)
    return any(span.error is None and (span.tool_definitions or not said) for span in agents)


def _shown_above(trace: Trace, call: Span) -> bool:
    """Whether the span above is LiteLLM's other span of this call: the same request, and the answer."""
    above = trace.parent(call)
    if above is None or above.kind is not SpanKind.LLM or above.input_messages != call.input_messages:
        return False
    return bool(call.input_messages) and (above.output is not None or bool(above.output_messages))


def _in_history(span: Span) -> int:
    """Calls of tools in the messages that a model was shown."""
    return sum(len(message.tool_calls) for message in span.input_messages)


def _requested(trace: Trace, asking: Sequence[Span]) -> list[RequestedCall]:
    """Calls that models made in this trace: those in their answers, not those in their history."""
    if not asking:
        return []
    covered = _above_models(trace)
    at_first_hand = any(span.kind is SpanKind.LLM for span in asking)
    found: list[RequestedCall] = []
    seen: set[tuple[str, str, str]] = set()
    made: set[tuple[str, str]] = set()
    for span in sorted(asking, key=lambda s: (s.end_ns, s.span_id in covered)):
        # A step's messages count only where no model call has them at first hand.
        if span.kind is not SpanKind.LLM and span.span_id in covered and at_first_hand:
            continue
        calls = _echoed(span, [call for message in span.output_messages for call in message.tool_calls], trace.models)
        calls = _with_arguments(calls, trace.models)
        ids = {call.call_id for call in calls}
        history = (call for message in span.input_messages for call in message.tool_calls)
        known = {call_identity(call) for call in history if call.call_id in ids}
        for call in calls:
            key = call_identity(call)
            if call.call_id is not None and (key in known or key in seen):
                continue
            # A model call around another one repeats its calls, some without their ids.
            if call.call_id is None and span.span_id in covered and key[1:] in made:
                continue
            seen.add(key)
            made.add(key[1:])
            found.append(RequestedCall(call, span.end_ns, None, span.span_id))
    return _without_bare(_once_a_response(trace, found))


def _once_a_response(trace: Trace, requested: list[RequestedCall]) -> list[RequestedCall]:
    """The calls, each once where two spans at a time hold one response and name its calls differently.

    Those of OpenAI's Responses have an id as items and one that their results name, which is the one kept.
    """
    spans = {span.span_id: span for span in trace.models if span.response_id is not None}
    if len({span.response_id for span in spans.values()}) == len(spans):
        return requested
    answered = {message.tool_call_id for span in trace.models for message in span.input_messages}
    places: dict[tuple[str | None, str, str, int], int] = {}
    of_span: Counter[tuple[str, str, str]] = Counter()
    found: list[RequestedCall] = []
    for ask in requested:
        if (span := spans.get(ask.span_id)) is None:
            found.append(ask)
            continue
        _, name, given = call_identity(ask.call)
        of_span[ask.span_id, name, given] += 1
        key = (span.response_id, name, given, of_span[ask.span_id, name, given])
        place = places.get(key)
        if place is None or not _at_once(spans[found[place].span_id], span):
            places[key] = len(found)
            found.append(ask)
        elif found[place].call.call_id not in answered:
            found[place] = ask
    return found


def _at_once(one: Span, other: Span) -> bool:
    return one.start_ns <= other.end_ns and other.start_ns <= one.end_ns


def _without_bare(requested: list[RequestedCall]) -> list[RequestedCall]:
    """The calls without duplicates that lack the arguments of another with the same id and name.

    Conventions may have no place for arguments that are no JSON; the client's own attributes have them.
    """
    if all(ask.call.arguments is not None for ask in requested):
        return requested
    whole = {
        (ask.call.call_id, ask.call.name) for ask in requested if ask.call.call_id and ask.call.arguments is not None
    }
    return [
        ask for ask in requested if ask.call.arguments is not None or (ask.call.call_id, ask.call.name) not in whole
    ]


def _echoed(span: Span, calls: list[ToolCall], models: Sequence[Span]) -> Sequence[ToolCall]:
    """An answer's calls; those without ids as the next model call has them in its history, if that has ids for them.

    Langfuse's client for JavaScript makes one call, without an id, out of all those of a streamed answer.
    """
    if not calls or any(call.call_id is not None for call in calls):
        return calls
    asked = span.input_messages
    after = span.end_ns - _LATE_NS
    later = [model for model in models if model.start_ns > after and len(model.input_messages) > len(asked)]
    following = next((each for each in later if each.input_messages[: len(asked)] == asked), None)
    echoed = following.input_messages[len(asked)].tool_calls if following is not None else ()
    names = {call.name for call in echoed if call.call_id is not None}
    return echoed if {call.name for call in calls} <= names and len(echoed) >= len(calls) else calls


def _earlier(trace: Trace, unmatched: Mapping[int, Span]) -> dict[int, RequestedCall]:
    """Calls of an earlier run that tools carry out in this one, as after a person's consent: by a history's ids.

    Where the tool's span has its only argument bare, as of OpenInference with LangChain for JavaScript.
    """
    bare = {
        index: (span, span.tool.call_id)
        for index, span in unmatched.items()
        if span.tool is not None and span.tool.call_id is not None and not isinstance(span.tool.arguments, dict)
    }
    if not bare:
        return {}
    history = (call for model in trace.models for message in model.input_messages for call in message.tool_calls)
    calls: dict[str | None, ToolCall] = {}
    for call in history:
        calls.setdefault(call.call_id, call)
    return {
        index: RequestedCall(calls[call_id], span.end_ns, None, span.span_id)
        for index, (span, call_id) in bare.items()
        if call_id in calls
    }


def _attempts(requested: Sequence[RequestedCall], unmatched: Mapping[int, Span]) -> dict[int, RequestedCall]:
    """Calls with further spans, a framework's new attempts that show the only argument bare."""
    bare = {
        index: (span, span.tool)
        for index, span in unmatched.items()
        if span.tool is not None and span.tool.call_id is None and not isinstance(span.tool.arguments, dict | None)
    }
    if not bare:
        return {}
    asked = {(ask.call.name, identity(value)): ask.call for ask in requested for value in sole(ask.call.arguments)}
    return {
        index: RequestedCall(replace(call, call_id=None), span.end_ns, None, span.span_id)
        for index, (span, tool) in bare.items()
        if (call := asked.get((tool.name, identity(tool.arguments)))) is not None
    }


def _with_arguments(calls: Sequence[ToolCall], models: Sequence[Span]) -> Sequence[ToolCall]:
    """The calls; those without arguments with what the history of a later model call has under their ids.

    OpenLLMetry for JavaScript leaves out the arguments of streamed calls.
    """
    bare = {call.call_id for call in calls if call.arguments in (None, {})} - {None}
    if not bare:
        return calls
    history = (call for model in models for message in model.input_messages for call in message.tool_calls)
    stated = {call.call_id: call.arguments for call in history if call.call_id in bare and call.arguments}
    return [
        replace(call, arguments=stated[call.call_id]) if call.call_id in stated else call
        for call in calls
    ]  # fmt: skip


def _above_models(trace: Trace) -> set[str]:
    """Ids of all spans with a model call below them."""
    found: set[str] = set()
    for span in trace.models:
        above = trace.parent(span)
        while above is not None and above is not span and above.span_id not in found:
            found.add(above.span_id)
            above = trace.parent(above)
    return found


def _all_reported(spans: Sequence[Span], requested: Sequence[RequestedCall], matched: Mapping[int, int]) -> bool:
    """Whether the spans themselves hold the result of every call, so that no message has to be found."""
    return len(matched) == len(requested) and not any(_lacks_result(spans[number]) for number in matched)


def _lacks_result(span: Span) -> bool:
    return span.tool is None or (span.tool.result is None and span.tool.error is None)


def _merge(span: Span, ask: RequestedCall | None) -> ToolCall:
    """Merge a span, which holds what happened, with a message, which holds what was requested."""
    tool = span.tool or ToolCall(name=span.name)
    if ask is None:
        return tool
    requested = ask.call
    keep = requested.arguments if _leaves_out(tool, requested) else tool.arguments
    ran = _completed(ask) if _lacks_result(span) else tool
    return ToolCall(
        name=requested.name if is_nameless(tool.name) else tool.name,
        arguments=keep,
        result=ran.result,
        error=ran.error,
        call_id=requested.call_id or tool.call_id,
        handoff=tool.handoff,
    )


def _leaves_out(tool: ToolCall, requested: ToolCall) -> bool:
    """Whether the span holds less of the arguments than the message: none, the only one bare, or not all."""
    a, b = tool.arguments, requested.arguments
    if a is None or sole(b) == (a,):
        return True
    if not isinstance(a, dict) or not isinstance(b, dict) or tool.call_id is None or tool.call_id != requested.call_id:
        return False
    return all(key in b and b[key] == value for key, value in a.items())


def _completed(ask: RequestedCall) -> ToolCall:
    if ask.answer is None:
        return ask.call
    if ask.answer.error:
        return replace(ask.call, error=ask.answer.text or "error")
    return replace(ask.call, result=_result(ask.answer.text))


def _result(text: str) -> Json:
    """A result that is a JSON object, list or quoted text, decoded; any other text as it is.

    The object into which some APIs require a result to be wrapped is removed.
    """
    match decoded(text):
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
    """The tool or agent directly above a run; a tool there handed over the work."""
    return next((span for span in trace.ancestors(run) if span.kind in (SpanKind.TOOL, SpanKind.AGENT)), None)


_LATE_NS: Final = 1_000_000
"""OpenTelemetry's SDK for JavaScript begins spans on whole milliseconds, and ends them exactly."""
ANSWER_TOOLS: Final = frozenset({
    "finalanswer", "finalresult", "finaloutput", "finalresponse", "submit", "submitanswer", "submitfinalanswer",
    "finish", "done", "taskdone", "completetask", "attemptcompletion", "giveanswer", "provideanswer",
    "providefinalanswer", "returnanswer", "strandsstructuredoutput", "structuredoutput",
})  # fmt: skip
"""Tools that deliver an agent's answer, as ``plain`` names them; calling one is no use of a tool."""
_FORM: Final = "structuredoutput"
"""The tool of Claude's Agent SDK whose arguments are the answer in the requested form."""
_PLAIN_NAME: Final = re.compile(r"\W+")
NAMESPACE: Final = re.compile(r"\W+|__")
"""The separator between the name of a plugin or server and of its tool."""


def plain(name: str) -> str:
    """A tool's name without the parts that clients change: case, punctuation.

    >>> plain("functions.get-Weather")
    'functionsgetweather'
    """
    return _PLAIN_NAME.sub("", name).replace("_", "").lower()


def gives_answer(name: str) -> bool:
    """Whether a tool of this name is one by which an agent answers."""
    return plain(NAMESPACE.split(name)[-1]) in ANSWER_TOOLS


def answer_given(calls: Iterable[ToolCall]) -> Json:
    """The answer from the last call of such a tool: its only argument, else its result, else all arguments.

    If the tool's arguments are the requested form, the answer is all of them.
    """
    for call in reversed(list(calls)):
        if gives_answer(call.name) and call.error is None:
            given = call.arguments
            if plain(call.name) == _FORM:
                return given
            return next(iter(given.values())) if isinstance(given, dict) and len(given) == 1 else call.result or given
    return None

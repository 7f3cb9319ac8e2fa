"""Trace → Case: the request, the answer, the agents and tools that took part, and the application's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from sidejudge.scoring.trace import usage as leaves
from sidejudge.scoring.trace.agent_runs import agent_runs
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.reported import MOST_REPORTED
from sidejudge.scoring.trace.span import Json, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.tool_calls import answer_given, asks_for_tools, demanded_form, tool_calls
from sidejudge.scoring.trace.trace import Trace, from_above, is_plain, speaking
from sidejudge.scoring.trace.trace_index import TraceIndex

from .case import Case, Utterance, parse_output

REFERENCE_KEYS = (
    "expected_outcome", "expected_output", "expected", "reference", "ground_truth",
    "langfuse.experiment.item.expected_output",
)  # fmt: skip
"""Metadata keys that may hold the expected outcome; the first one found counts."""

_LONGEST_EMPTY = 1000
"""Longest text, in characters, that is searched for JSON without contents."""
_MOST_EARLIER = 100
"""Most model calls whose texts are looked for in what the last one was shown, besides the first."""
_EMPTY_OPENS = frozenset('{["n`~\ufeff')
_STEPS = (SpanKind.AGENT, SpanKind.CHAIN)
_PLAIN_STEPS = (SpanKind.CHAIN, SpanKind.OTHER)
_PARTED = (SpanKind.TOOL, SpanKind.RETRIEVER)
_MOST_STEPS = 100
"""Most steps upwards that are searched for the tool that a step is a part of."""
_CONFIG_KEYS = ("keywords", "topics", "critical_facts", "target_language", "instructions")


def extract(trace: Trace, *, reference_keys: Sequence[str] = REFERENCE_KEYS) -> Case:
    """The case of a trace. Never raises; what the trace does not hold stays None.

    ``agents_called`` holds one entry for each invocation, in order of start. ``tools_used`` also holds hand-offs, which
    are flagged: leave them out when you compare tools with expectations. ``context`` holds the documents that
    retrievers returned.
    """
    index = TraceIndex(trace)
    root = trace.root or next(iter(trace.tops), None)
    runs = agent_runs(trace, index.agents)
    agents = _topmost_agents(trace, runs)
    metadata = _metadata(index.metadata)
    task_input = next(filter(shows, _requested(trace, index, trace.run_root, agents)), None)
    called = tool_calls(trace, index, runs)
    top = trace.run_root
    answer = _answer(chain(_answered(trace, index, top, agents), _given(trace, top, agents, called or ())))
    calls = leaves.model_calls(trace)
    input_tokens, output_tokens = leaves.tokens(trace, index.usage, calls)
    captured = answer is not None or any(_has_content(span) for span in trace.spans)
    unread = {
        (each.client, each.source): each
        for span in trace.spans if span.unread and not _is_part_of_tool(trace, span)
        for each in span.unread
    }  # fmt: skip
    return Case(
        case_id=trace.trace_id,
        trace=trace,
        trace_id=trace.trace_id,
        root_span_id=root.span_id if root else None,
        model_output=answer,
        task=_text(metadata.get("task")),
        input=task_input,
        transcript=_transcript(metadata.get("transcript"), task_input),
        expected_outcome=_reference(metadata, reference_keys),
        config=_config(metadata),
        scenario=decoded(metadata.get("scenario")),
        agents_called=tuple([run.agent for run in runs if run.agent]),
        tools_used=None if called is None else tuple([call for call, _ in called]),
        tool_span_ids=tuple([span_id for _, span_id in called or ()]),
        context=_context(index.retrievers),
        system_prompt=index.system_prompt
        and next((c.system_prompt for c in calls if c.system_prompt), index.system_prompt),
        latency_e2e_ms=_elapsed_ms(trace, root),
        latency_model_ms=leaves.model_ms(trace, calls),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_usd=leaves.cost_usd(trace, index.costs),
        model=_model(trace, calls or [span for span in trace.spans if span.model]),
        tags=tuple(dict.fromkeys(index.tags)),
        metadata=metadata,
        evaluation_criteria_override=_text(metadata.get("evaluation_criteria_override")),
        session_id=index.session_id,
        user_id=index.user_id,
        service=index.service,
        environment=index.environment,
        name=index.trace_name or (root.name if root else None),
        error=index.error,
        complete=trace.complete,
        completion=trace.completion,
        content_captured=captured,
        # Contents that may be there need a dialect that reads them, not a switch.
        capture_switch=None if captured or unread else index.capture_switch,
        unread=tuple(unread.values()),
        reported=tuple(islice((each for span in trace.spans for each in span.reported), MOST_REPORTED)),
    )


def _requested(trace: Trace, index: TraceIndex, root: Span | None, agents: Sequence[Span]) -> Iterator[Json]:
    """The request: of the trace, else of its root, the topmost agent, the first model call or the topmost step.

    A model call that stands alone is taken for the first.
    """
    yield from index.inputs
    if root is not None:
        yield root.input
    for span in agents[:1]:
        yield span.input
    calls = speaking(trace)
    if (alone := _stands_alone(calls)) is not None and not index.tools and not index.asking:
        yield alone.input
    for span in calls:
        yield span.input
    for span in index.chains:
        yield span.input


def _stands_alone(calls: Sequence[Span]) -> Span | None:
    """The answering model call, if it was shown neither the request nor the answer of an earlier call.

    So it is in a batch: there the answer belongs to its own request, not to that of the first call.
    """
    answering = next((call for call in sorted(calls, key=lambda span: -span.end_ns) if shows(call.output)), None)
    if answering is None or answering is calls[0]:
        return None
    shown = "\n".join([message.text for message in answering.input_messages] or [str(answering.input)])
    earlier = (calls[0], *[call for call in calls[-_MOST_EARLIER:] if call is not answering])
    texts = (text for call in earlier for text in (call.input, call.output))
    return None if any(isinstance(text, str) and text.strip() in shown for text in texts) else answering


def _answered(trace: Trace, index: TraceIndex, root: Span | None, tops: Sequence[Span]) -> Iterator[Json]:
    """The answer: of the trace, else of its root, the topmost agent, the last model call or the topmost step."""
    yield from reversed(index.outputs)
    if root is not None and not (len(tops) > 1 and root in tops):  # of several roots the first is no other's root
        yield root.output
    agents = sorted(tops, key=lambda span: span.end_ns)[-1:]
    if _failed_without_answer(root, agents):
        return  # a model's last message before the run failed is a step of it, not its answer
    spoken = sorted(speaking(trace), key=lambda span: span.end_ns, reverse=True)
    if spoken and not any(shows(span.output) for span in agents):
        # Where a tool for it gave the answer after the last call of a model, the text of that call was a thought.
        tools = sorted(trace.spans, key=lambda span: span.start_ns)
        yield answer_given(each.tool for each in tools if each.tool and each.start_ns > spoken[0].start_ns)
    # A text beside a call is a thought: the answer comes after the results. Where the last call of a model was answered
    # with nothing, what one before it was answered with was for that call; spans of one call run at a time.
    since = spoken[0].start_ns if spoken and _says_nothing(spoken[0]) else 0
    earlier = (span for span in spoken[1:] if span.end_ns > since and not asks_for_tools(span))
    for span in (*agents, *spoken[:1], *earlier):
        yield span.output
    # Where models have messages without text, the output of the steps below them is not the answer.
    for span in index.chains if not any(call.output_messages for call in trace.models) else ():
        yield span.output


def _says_nothing(call: Span) -> bool:
    """Whether a model that was asked in words is known to have answered with neither text nor call."""
    if shows(call.output) or call.error is not None or call.finish_reason == "tool_calls":
        return False
    answered = call.output is not None or any(message.role == "assistant" for message in call.output_messages)
    held = any(message.text or message.tool_calls or message.withheld for message in call.output_messages)
    return answered and not held and (shows(call.input) or any(message.text for message in call.input_messages))


def _given(
    trace: Trace, root: Span | None, agents: Sequence[Span], called: Sequence[tuple[ToolCall, str]]
) -> Iterator[Json]:
    """The answer given by a tool made for it, where nothing else states one and the run did not fail."""
    if not _failed_without_answer(root, agents[-1:]):
        yield answer_given(call for call, _ in called)
        form = demanded_form(trace)
        yield None if form is None else form.arguments


def written_beside_a_call(trace: Trace, answer: Json) -> bool:
    """Whether an answer is only a model's text beside a tool call, after which no model was asked.

    Then nothing that speaks for the run (the trace, its root, a topmost agent) states an output. Such a text may be a
    thought, or the answer of an agent that called a tool last: a trace does not show which.
    """
    last = max(speaking(trace), key=lambda span: span.start_ns, default=None)
    if last is None or not asks_for_tools(last) or all(span.output != answer for span in trace.models):
        return False
    tops = _topmost_agents(trace, agent_runs(trace, [span for span in trace.spans if span.agent]))
    speaks = [span for span in (trace.run_root, *tops) if span is not None and span.kind is not SpanKind.LLM]
    return not any(map(shows, chain((span.output for span in speaks), (span.trace_output for span in trace.spans))))


def _failed_without_answer(root: Span | None, agents: Sequence[Span]) -> bool:
    """Whether the topmost agent, or without one the root step, ended in an error and returned nothing."""
    top = agents[0] if agents else root if root is not None and root.kind in _STEPS else None
    return top is not None and top.error is not None and not shows(top.output)


def _answer(values: Iterator[Json]) -> Json:
    """The first value with visible contents; without one, the first empty list, map or JSON text, if any.

    An empty value may be the answer of a program that lists things, or mean that there is no answer.
    """
    empty: Json = None
    for value in values:
        if shows(value):
            return value
        if empty is None and (isinstance(value, list | dict) or (isinstance(value, str) and shows_text(value))):
            empty = value
    return empty


def _topmost_agents(trace: Trace, runs: Sequence[Span]) -> list[Span]:
    """The agents without an agent above them, in order of start; several where one hands over to the next.

    Some clients name no agents; spans of these that have contents stand for them as well, whatever stands above.
    """
    ids = {run.span_id for run in runs if run.kind is SpanKind.AGENT}
    unnamed = (span for span in trace.spans if span.kind is SpanKind.AGENT and span.agent is None)
    ids |= {span.span_id for span in unnamed if span.input is not None or span.output is not None}
    if len(ids) < 2:
        return [span for span in trace.spans if span.span_id in ids]
    level = from_above(trace, 0, lambda span, upper: upper if is_plain(span) else upper + 1)
    highest = min(level[span_id] for span_id in ids)
    return [span for span in trace.spans if span.span_id in ids and level[span.span_id] == highest]


def shows_text(text: str) -> bool:
    """Whether a text has any visible character."""
    return text[:1].isalnum() or any(mark.isprintable() and not mark.isspace() for mark in text)


def shows(value: Json, levels: int = 60) -> bool:
    r"""Whether a value holds anything visible, at any depth of lists and maps, also where they are JSON in a text.

    >>> shows("Riga"), shows(0), shows("null"), shows({"answer": ""}), shows('```json\n[{}]\n```')
    (True, True, False, False, False)
    """
    if isinstance(value, str):
        if len(value) > _LONGEST_EMPTY or value.lstrip()[:1] not in _EMPTY_OPENS:
            return shows_text(value)
        parsed = parse_output(value)
        if parsed.error is not None or isinstance(parsed.value, str):
            return shows_text(value if parsed.error is not None else str(parsed.value))
        value = parsed.value
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if held is None:
        return value is not None
    return levels <= 0 or any(shows(each, levels - 1) for each in held)


def _has_content(span: Span) -> bool:
    if shows(span.input) or shows(span.output):
        return True
    return not all(message.withheld for message in (*span.input_messages, *span.output_messages))


def _metadata(sources: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """All metadata in one map; the first value of a key counts."""
    found: dict[str, Json] = {}
    for metadata in sources:
        found |= metadata if not found else {key: metadata[key] for key in metadata if key not in found}
    return found


def _is_part_of_tool(trace: Trace, span: Span) -> bool:
    """Whether a step is a part of a tool's call or of a retrieval: what it holds is neither request nor answer."""
    within = islice(chain((span,), trace.ancestors(span)), _MOST_STEPS)
    nearest = next((each.kind for each in within if each.kind not in _PLAIN_STEPS), None)
    return nearest in _PARTED and span.kind in _PLAIN_STEPS


def _reference(metadata: Mapping[str, Json], keys: Sequence[str]) -> Json:
    return next((decoded(metadata[key]) for key in keys if metadata.get(key) is not None), None)


def _config(metadata: Mapping[str, Json]) -> dict[str, Json]:
    """``config`` when it is an object, else the settings that the metadata holds under their own names."""
    config = decoded(metadata.get("config"))
    if isinstance(config, dict):
        return config
    return {key: decoded(metadata[key]) for key in _CONFIG_KEYS if metadata.get(key) is not None}


def _transcript(given: Json, task_input: Json) -> str | tuple[Utterance, ...] | None:
    """The transcript in the metadata, text or turns, else the input if that is a text."""
    given = decoded(given)
    if isinstance(given, list):
        turns = [turn for turn in given if isinstance(turn, dict)]
        found = tuple(
            Utterance(text=str(turn["text"]), speaker=_text(turn.get("speaker")), at=_text(turn.get("at")))
            for turn in turns if turn.get("text") is not None
        )  # fmt: skip
        if found:
            return found
    return _text(given) or _text(task_input)


def _context(retrievers: Sequence[Span]) -> tuple[str, ...] | None:
    """Retrieved documents in order, each once; None when nothing retrieved."""
    if not retrievers:
        return None
    return tuple(dict.fromkeys(document for span in retrievers for document in span.documents))


def _elapsed_ms(trace: Trace, root: Span | None) -> float | None:
    """Duration of the root span in ms; without a true root, from the first start to the last end."""
    if root is None:
        return None
    if root.parent_id is None or root.root_hint:
        start, end = root.start_ns, root.end_ns
    else:
        start, end = trace.start_ns, trace.end_ns
    return (end - start) / 1e6 if end >= start else None


def _model(trace: Trace, calls: Sequence[Span]) -> str | None:
    """The model of the last call: the one that answered, by the call or a span around it, else the requested one."""
    latest = sorted(calls, key=lambda span: span.end_ns, reverse=True)
    if latest and latest[0].model:
        return latest[0].model
    around = from_above(trace, "", lambda span, upper: (span.model if span.kind is SpanKind.LLM else None) or upper)
    found = (call.model or around[call.span_id] or call.requested_model for call in latest)
    return next(filter(None, found), None)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None

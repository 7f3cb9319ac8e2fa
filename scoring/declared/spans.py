"""Rubrics of single steps: each matching span is measured as its own case, and the values are combined into one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Final, cast

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.layout import NOT_GIVEN
from sidejudge.scoring.judging.parts import part
from sidejudge.scoring.metrics.metric import Measure
from sidejudge.scoring.metrics.settle import carried, least_certain
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.questions.question import Begun, PendingMetrics, Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, cut
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable, details_of_steps
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.trace import Trace

MAX_SPANS: Final = 50
"""Most spans of one trace that are measured, the earliest first."""
_LEAST: Final = 0.9
"""Share of the spans that must have a value."""
_SHOWN: Final = 5
_NO_TRACE: Final = Unavailable(Reason("the case does not come from a trace, so its spans are not known"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanMatch:
    """Which spans are measured: of these kinds, and of this name if one is given; ``lowest``: the worst counts."""

    kinds: frozenset[SpanKind]
    name: str | None = None
    lowest: bool = False

    def __call__(self, span: Span) -> bool:
        return span.kind in self.kinds and (self.name is None or span.name == self.name)


def over_spans(measure: Measure, match: SpanMatch) -> Measure:
    """A metric of a trace: the mean (or the worst) of a measure over its spans that match."""

    def measured(case: Case) -> Begun:
        if case.trace is None:
            return _NO_TRACE
        spans = [span for span in case.trace.spans if match(span)]
        if not spans:
            return (
                NotApplicable(Reason("no span matches"))
                if case.complete
                else Unavailable(Reason("the trace is incomplete"))
            )
        return _steps(case, sorted(spans, key=lambda span: span.start_ns), measure, match)

    return measured


def _steps(case: Case, spans: list[Span], measure: Measure, match: SpanMatch) -> Steps:
    pending = PendingMetrics({span.span_id: _begun(case, span, measure) for span in spans[:MAX_SPANS]})
    return _joined((yield from pending.rounds()), spans, match)


def _begun(case: Case, span: Span, measure: Measure) -> Begun:
    step = case_of(case, span)
    begun = measure(step)
    return _asking(begun, step) if isinstance(begun, GeneratorType) else begun


def _asking(steps: Steps, step: Case) -> Steps:
    """The same steps, with the span's texts in each question: the case holds the whole trace's texts."""
    replies: Sequence[Reply] | None = None
    while True:
        try:
            requested = next(steps) if replies is None else steps.send(replies)
        except StopIteration as done:
            return cast("Result", done.value)
        replies = yield tuple(_with_texts(question, step) for question in requested)


def _with_texts(question: Question, step: Case) -> Question:
    if not isinstance(question, AskDeclared):
        return question
    shown = tuple((name, part(step, name) or NOT_GIVEN) for name in question.parts)
    return replace(question, parts=(), texts=shown)


def case_of(case: Case, span: Span) -> Case:
    """A step as its own case: its input, output, time, tokens, cost and tool.

    The output of a model call without text is the tool calls that it requests.
    """
    tool, usage, output = span.tool, span.usage, span.output
    if output is None and tool is not None:
        output = tool.result
    elif output is None:
        requested = [call for message in span.output_messages for call in message.tool_calls]
        output = [{"tool": call.name, "arguments": call.arguments} for call in requested] or None
    return Case(
        case_id=f"{case.case_id}/{span.span_id}",
        trace_id=case.trace_id,
        model_output=output,
        input=span.input if span.input is not None or tool is None else tool.arguments,
        system_prompt=span.system_prompt,
        context=span.documents or None,
        agents_called=(span.agent,) if span.agent else (),
        tools_used=(tool,) if tool is not None else (),
        latency_e2e_ms=(span.end_ns - span.start_ns) / 1e6,
        input_tokens=usage.input if usage else None,
        output_tokens=usage.output if usage else None,
        cost_usd=span.cost_usd,
        model=span.model,
        metadata={**case.metadata, **span.metadata},
        tags=case.tags,
        error=span.error,
        session_id=case.session_id,
        service=case.service,
        environment=case.environment,
        expected_outcome=case.expected_outcome,
        completion=case.completion,
        content_captured=case.content_captured,
        capture_switch=case.capture_switch,
        trace=Trace.of(span.trace_id, [span], case.completion or "batch"),
    )


def _joined(results: Mapping[str, Result], spans: Sequence[Span], match: SpanMatch) -> Result:
    """The values of matching spans combined; none where fewer than nine tenths of the spans have one."""
    applicable = {span_id: each for span_id, each in results.items() if not isinstance(each, NotApplicable)}
    if not applicable:
        return next(iter(results.values()))
    scored = {span_id: each for span_id, each in applicable.items() if isinstance(each, Scored)}
    if len(scored) < _LEAST * len(applicable):
        return next(each for each in applicable.values() if not isinstance(each, Scored))
    values = {span_id: each.value for span_id, each in scored.items()}
    value = min(values.values()) if match.lowest else math.fsum(values.values()) / len(values)
    worst = sorted(values, key=values.__getitem__)[:_SHOWN]
    return Scored(
        value=round(value, 12),
        method=least_certain(each.method for each in scored.values()),
        reason=Reason(
            "{n} of {all} spans; lowest {value:g}: {why}",
            n=len(scored),
            all=len(spans),
            value=values[worst[0]],
            why=cut(scored[worst[0]].reason, 200),
        ),
        details={
            "spans": len(scored),
            **details_of_steps(
                len(spans),
                {each: values[each] for each in worst},
                {span.span_id: span.observation_id for span in spans},
            ),
        },
        judgements=carried(scored.values()),
    )

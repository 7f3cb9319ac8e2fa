"""The outputs of sub-agents, and whether any part of a run reached a limit of rounds or time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.metric import pass_or_fail
from sidejudge.scoring.result.reason import Reason, own, part, together
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Scored, Unavailable, at_least
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.trace import Trace

from .answer_failure import answer_failure, is_refusal, sole_text
from .run_ending import of_trace, run_metric, top
from .run_steps import cause, failure_part, share_without, signs
from .service_message import GAVE_UP, service_message, texts_in

_LEAST_OUTPUT: Final = 40
"""Fewest characters for equal outputs of a sub-agent to be no coincidence."""
_WRAPPERS: Final = 100
"""Spans above a sub-agent's run that are looked at: what wraps it lies close around it, and a trace may be deep."""
_SHOWN: Final = 3
_NO_SUB_AGENTS: Final = NotApplicable(Reason("no sub-agent returned words"))
_NO_CONTENTS: Final = Unavailable(Reason("the telemetry carries no contents"))
_LIMITED: Final = frozenset({SpanKind.AGENT, SpanKind.CHAIN, SpanKind.LLM, SpanKind.OTHER})
_LIMIT_ERROR: Final = re.compile(
    r"\b(?:Graph)?RecursionError\b|\bMax(?:imum)?(?:_|[ ]tool[ ]call[ ])?(?:Turns|Rounds|Steps|Iterations|Calls)\w*"
    r"|\b(?:turn|round|step|iteration|recursion|usage)[ _-]?limit\b",
    re.IGNORECASE,
)
_TIMED_OUT: Final = re.compile(r"\btime-?out\w*|\btimed\s+out\b|\bdeadline\s+exceeded\b", re.IGNORECASE)
_STOPPED_BY: Final = re.compile(r"max(?:imum)?_(?:turns|rounds|steps|iterations)", re.IGNORECASE)


def _outputs(trace: Trace) -> Iterator[tuple[Span, str]]:
    """The runs of sub-agents that returned words or ended in an error, each once even if several spans wrap it."""
    first = top(trace)
    for span in trace.spans:
        text = sole_text(span.output)
        if span.kind is not SpanKind.AGENT or span is first or not (text or span.error):
            continue
        above = islice(trace.ancestors(span), _WRAPPERS)
        wrapping = (upper for upper in above if upper.kind is SpanKind.AGENT and upper is not first)
        if not any(sole_text(upper.output) == text and upper.error == span.error for upper in wrapping):
            yield span, text


@run_metric(
    formula=f"1 − runs with an equal output / runs with an output of {_LEAST_OUTPUT} characters at least",
    bands=at_least(good=1.0, acceptable=0.8),
    methods=(Method.LEXICAL,),
    undefined="not applicable where no sub-agent returned so many words, or contents were not captured",
)
@of_trace
def outputs_vary(_case: Case, trace: Trace) -> Result:
    """The share of sub-agents' runs whose result differs from earlier runs of the same sub-agent."""
    seen = set[tuple[str, str]]()
    found: list[tuple[str | None, Reason]] = []
    read = 0
    for span, text in _outputs(trace):
        if len(text) < _LEAST_OUTPUT:
            continue
        read += 1
        key = (span.agent or span.name, text)
        if key in seen:
            found.append((span.span_id, Reason("{agent} returns the same again", agent=part(label(key[0])))))
        seen.add(key)
    return _share(found, read)


@run_metric(
    title="Sub-agents answered",
    formula="1 − runs that end in an error or return an error message or a refusal / runs that return anything",
    bands=at_least(good=1.0, acceptable=0.75),
    methods=(Method.LEXICAL,),
    undefined="not applicable where no sub-agent returned words or failed, or contents were not captured",
)
@of_trace
def sub_agents_answered(_case: Case, trace: Trace) -> Result:
    """The share of sub-agents' runs that return an answer: no error, no refusal, no service's message."""
    read = 0
    found: list[tuple[str | None, Reason]] = []
    for span, text in _outputs(trace):
        read += 1
        name = part(label(span.agent or span.name))
        if span.error is not None:
            found.append((span.span_id, Reason("{agent} returned {why}", agent=name, why=cause(span.error))))
        elif is_refusal(text):
            found.append((span.span_id, Reason("{agent} returned a refusal", agent=name)))
        elif (failure := answer_failure(text, span.input)) is not None:
            found.append((span.span_id, Reason("{agent} returned {why}", agent=name, why=failure_part(failure))))
    return _share(found, read)


def _share(found: list[tuple[str | None, Reason]], read: int) -> Result:
    if not read:
        return _NO_SUB_AGENTS
    stated = together(list(dict.fromkeys(sign for _, sign in found))[:_SHOWN], ", ")
    return share_without(found, read, "runs of sub-agents", stated=stated, method=Method.LEXICAL)


@run_metric(
    pass_or_fail,
    formula="0 if an error, an output or a finish reason says so, or the run timed out, else 1",
    methods=(Method.LEXICAL,),
    undefined="no limit shows and contents were not captured; not applicable where no model, agent or tool took part",
)
@of_trace
def not_exhausted(case: Case, trace: Trace) -> Result:
    """Whether no agent, chain or model ended because a maximum of rounds or time was reached; 1 or 0."""
    reached = {span.span_id: why for span in trace.spans if (why := _limit(span)) is not None}
    found: list[tuple[str | None, Reason]] = [
        (span_id, why)
        for span_id, why in reached.items()
        if not any(below.span_id in reached for below in trace.children.get(span_id, ()))
    ]
    if case.timed_out and not found:
        found.append((case.root_span_id, Reason("the run timed out")))
    if not found:
        return Scored(value=1.0, method=Method.LEXICAL) if case.content_captured else _NO_CONTENTS
    return Scored(value=0.0, method=Method.LEXICAL, reason=found[0][1], details=signs(found))


def _limit(span: Span) -> Reason | None:
    """The limit that ended a step, by its error, its output or its stated reason."""
    if span.kind not in _LIMITED:
        return None
    error = span.error
    if (error and (_LIMIT_ERROR.search(error) or service_message(error) == GAVE_UP)) or (
        span.finish_reason and _STOPPED_BY.match(span.finish_reason)
    ):
        how = "{kind} {name}: a maximum of rounds was reached"
    elif error and span.kind is SpanKind.AGENT and _TIMED_OUT.search(error):
        how = "{kind} {name}: its time was up"
    elif (text := sole_text(span.output)) and service_message(text, texts_in(span.input)) == GAVE_UP:
        how = "{kind} {name}: says that a maximum of rounds or time was reached"
    else:
        return None
    kind = own("step" if span.kind is SpanKind.OTHER else span.kind.value)
    return Reason(how, kind=kind, name=part(label(span.agent or span.name)))

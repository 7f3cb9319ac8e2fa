"""Which agents ran: one entry an invocation, in order of start."""

from __future__ import annotations

from collections.abc import Iterator

from .span import Span, SpanKind
from .trace import Trace


def agent_runs(trace: Trace) -> tuple[Span, ...]:
    """The span with which each run of an agent begins, in order of start.

    Several spans may tell of one run: an agent span in a wrapper of the same name, and steps and calls that carry the
    agent's name. A span begins a run unless the nearest span above it that names an agent names the same one; an agent
    span below a tool begins a run in any case (an agent that calls itself). Steps of one agent that follow each other
    under one parent, without a span for the agent itself, are one run.
    """
    return tuple(_without_repeated_steps(span for span in trace.spans if span.agent and _begins(trace, span)))


def _begins(trace: Trace, span: Span) -> bool:
    through_tool = False
    for above in trace.ancestors(span):
        through_tool = through_tool or above.kind is SpanKind.TOOL
        if above.agent is not None:
            return above.agent != span.agent or (span.kind is SpanKind.AGENT and through_tool)
    return True


def _without_repeated_steps(runs: Iterator[Span]) -> Iterator[Span]:
    last: dict[str | None, str | None] = {}
    for span in runs:
        repeated = span.kind is not SpanKind.AGENT and last.get(span.parent_id) == span.agent
        last[span.parent_id] = span.agent
        if not repeated:
            yield span

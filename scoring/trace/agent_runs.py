"""Agent runs: one entry for each invocation of an agent, in order of start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from .span import Span, SpanKind
from .trace import Trace, from_above, is_plain

NAMED_BY_SPAN: Final = "span name (by shape)"
"""The provenance of the name of an agent, or of a tool, that is only the name of its span."""
_BY_SHAPE: Final = " (by shape)"


def agent_runs(trace: Trace, naming: Sequence[Span]) -> tuple[Span, ...]:
    """The first span of each agent's run, in order of start, among the spans that name an agent.

    Several spans may describe one run: an agent span in a wrapper of the same name, and steps and calls that carry the
    agent's name. A span begins a run unless the nearest span above it that names an agent names the same one; an agent
    span below a tool begins a run in any case (an agent that calls itself). Steps of one agent that follow each other
    under one step, without a span for the agent itself, are one run, also where a plain span is around one; a span of
    an unknown client that only names an agent is such a step. Where agents have their own names, a span of an unknown
    client that is only named after itself is no agent: outermost spans often look like that.
    """
    if not naming:
        return ()
    own = [span for span in naming if span.provenance.get("agent") != NAMED_BY_SPAN]
    naming = own or naming
    above = _Above(trace)
    return tuple(_without_repeated_steps(trace, [span for span in naming if above.lets_begin(span)]))


def _is_run(span: Span) -> bool:
    """Whether a span is known as an agent's run, and not as a step of one, by its naming an agent alone.

    A hand-off that names an agent has its run below it.
    """
    if span.kind is SpanKind.TOOL and span.tool is not None and span.tool.handoff:
        return True
    source, shape, _ = span.provenance.get("kind", "").partition(_BY_SHAPE)
    by_name = shape and source == span.provenance.get("agent", "").partition(_BY_SHAPE)[0]
    return span.kind is SpanKind.AGENT and not by_name


class _Above:
    """The context above each span: the nearest agent's name, and whether a tool lies between. Each span is read once.

    The cache matters: a trace may be ten thousand spans deep.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[str, tuple[str | None, bool]] = {}

    def lets_begin(self, span: Span) -> bool:
        agent, through_tool = self._of(span)
        return agent != span.agent or (_is_run(span) and through_tool)

    def _of(self, span: Span) -> tuple[str | None, bool]:
        """The agent named nearest above ``span``, and whether that one or a span between is a tool."""
        passed = [span]
        agent, through_tool = None, False
        for above in self._trace.ancestors(span):
            if above.agent is not None:
                agent, through_tool = above.agent, above.kind is SpanKind.TOOL
                break
            if above.span_id in self._known:
                agent, through_tool = self._known[above.span_id]
                through_tool = through_tool or above.kind is SpanKind.TOOL
                break
            passed.append(above)
        for below in reversed(passed):
            self._known[below.span_id] = (agent, through_tool)
            through_tool = through_tool or below.kind is SpanKind.TOOL
        return self._known[span.span_id]


def _without_repeated_steps(trace: Trace, runs: Sequence[Span]) -> Iterator[Span]:
    last: dict[str | None, str | None] = {}
    if all(map(_is_run, runs)):
        yield from runs
        return
    places = from_above(trace, None, partial(_place_below, trace)) if len(runs) > 1 else {}
    for span in runs:
        place = places.get(span.span_id) or span.parent_id
        repeated = not _is_run(span) and last.get(place) == span.agent
        last[place] = span.agent
        if not repeated:
            yield span


def _place_below(trace: Trace, span: Span, upper: str | None) -> str | None:
    """The step under which what is below ``span`` follows each other; None where only plain spans are above.

    A plain span around a single step changes nothing. One around several may be a run that its framework does not name.
    """
    if not is_plain(span):
        return span.span_id
    return upper if upper is None or len(trace.children[span.span_id]) == 1 else span.span_id

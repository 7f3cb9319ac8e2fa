"""What a trace consumed: tokens, cost and model time, each counted once.

Frameworks repeat on an agent's span what its model calls used, and two instrumentations of one call each report it.
So what counts is the lowest span that reports it, and of several that report the same response, one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .span import Span, SpanKind
from .trace import Trace


def tokens(trace: Trace, reporting: Sequence[Span]) -> tuple[int, int] | None:
    """Tokens of the whole trace, of input and of output, by the spans that report their usage; None without any."""
    counted = [span.usage for span in _lowest(trace, reporting) if span.usage]
    return (sum([u.input for u in counted]), sum([u.output for u in counted])) if counted else None


def cost_usd(trace: Trace, reporting: Sequence[Span]) -> float | None:
    """US dollars of the whole trace as the emitters reckoned them, by the spans that report any; None without any."""
    known = [span.cost_usd for span in _lowest(trace, reporting) if span.cost_usd is not None]
    return sum(known) if known else None


def reporting_usage(trace: Trace) -> Sequence[Span]:
    """The spans whose tokens make up those of the trace, each counted once."""
    return _lowest(trace, [span for span in trace.spans if span.usage is not None])


def reporting_cost(trace: Trace) -> Sequence[Span]:
    """The spans whose US dollars make up those of the trace, each counted once."""
    return _lowest(trace, [span for span in trace.spans if span.cost_usd is not None])


def model_calls(trace: Trace) -> Sequence[Span]:
    """The model calls proper, in order of start: not the spans that wrap them."""
    return _lowest(trace, trace.models)


def model_ms(trace: Trace) -> float | None:
    """Sum of the model calls' durations in milliseconds, None without any; parallel calls count in full.

    A call whose span also holds what its answer led to, other calls among it, is left out: its own time is not known.
    """
    calls = _lowest(trace, trace.models, whole=True)
    return sum([max(0, call.end_ns - call.start_ns) for call in calls]) / 1e6 if calls else None


_NO_TIME_NS = 100_000
"""0.1 ms: no model answers within it."""
_DOERS = frozenset({SpanKind.TOOL, SpanKind.AGENT})


class _DuplicateUsage:
    """Spans that report the tokens, or the cost, of a call which a span beside them, under the same parent, reports.

    A library and an instrumentation of it each describe one call, or a client reports what a call used in a span apart.
    Without a response's id they are known by the same figures and by what ``_same_call`` compares.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, float | tuple[int, int]], list[Span]] = {}

    def by_another(self, span: Span) -> bool:
        """Whether the call was recorded before; spans come in order of start."""
        figures = (span.usage.input, span.usage.output) if span.usage is not None else span.cost_usd
        if figures is None or span.parent_id is None or span.kind in _DOERS:
            return False
        earlier = self._open.setdefault((span.parent_id, figures), [])
        if span.response_id is None:
            other = next((each for each in earlier if _same_call(each, span)), None)
            if other is not None:
                earlier.remove(other)  # each describes one call
                return True
        earlier.append(span)
        return False


def _same_call(earlier: Span, span: Span) -> bool:
    """Whether two spans with the same figures are of one call, for the later one shows nothing that is its own.

    Within the other's time it is of another dialect, or of another name and one of them has no contents, or both the
    same. After it, it is of another name and without contents. Two model calls without contents are two calls.
    """
    within = earlier.end_ns >= span.end_ns
    if within and earlier.dialect != span.dialect and earlier.kind is span.kind is SpanKind.LLM:
        return True
    own, other = _contents(span), _contents(earlier)
    if earlier.name == span.name or (own is other is None and earlier.kind is span.kind):
        return False
    if within:
        return own is None or other is None or own == other
    return own is None and earlier.kind is SpanKind.LLM and span.start_ns >= earlier.end_ns


def _contents(span: Span) -> tuple[object, ...] | None:
    held = (span.input, span.output, span.input_messages, span.output_messages)
    return held if any(held) else None


class _Records:
    """Spans that took no time and repeat the tokens of a call that ended before: records of it, and no calls."""

    def __init__(self) -> None:
        self._ended: dict[tuple[int, int], list[tuple[int, str | None]]] = {}

    def is_one(self, span: Span) -> bool:
        """Whether the span is a record; spans come in order of start."""
        if span.usage is None:
            return False
        of_these = self._ended.setdefault((span.usage.input, span.usage.output), [])
        if span.end_ns - span.start_ns < _NO_TIME_NS:
            for place, (end_ns, response_id) in enumerate(of_these):
                if end_ns <= span.start_ns and span.response_id in (None, response_id):
                    del of_these[place]  # each call is recorded once
                    return True
        else:
            of_these.append((span.end_ns, span.response_id))
        return False


def _lowest(trace: Trace, reporting: Sequence[Span], *, whole: bool = False) -> Sequence[Span]:
    """Spans that report and have none below them that does, one for each response; ``whole`` as in ``_covered``."""
    if len(reporting) < 2:
        return reporting
    covered = _covered(trace, reporting, whole=whole)
    reported = _DuplicateUsage()
    records = _Records()
    seen: set[str] = set()
    found: list[Span] = []
    for span in reporting:
        if records.is_one(span):
            continue
        if span.span_id in covered or (span.response_id is not None and span.response_id in seen):
            continue
        if reported.by_another(span):
            continue
        if span.response_id is not None:
            seen.add(span.response_id)
        found.append(span)
    return found


def _covered(trace: Trace, reporting: Sequence[Span], *, whole: bool) -> Collection[str]:
    """Ids of the spans with one below them that reports the same.

    Some clients keep a model call's span open while the tools run, and the agents, that its answer calls: of what is
    beyond a tool or an agent such a span is no roll-up, unless ``whole``: nothing may be below it.
    """
    if trace.children.keys().isdisjoint([span.span_id for span in reporting]):
        return ()  # of some that have nothing below them none covers another: nearly every trace
    covered: set[str] = set()
    passed: set[tuple[str, bool]] = set()
    for span in reporting:
        beyond = span.kind in _DOERS
        for above in trace.ancestors(span):
            if above.usage is not None and above.usage.own:
                if span.usage is not None and not span.usage.own:
                    covered.add(above.span_id)  # the calls it added up are here themselves
                break
            if (above.span_id, False) in passed or (above.span_id, beyond) in passed:
                break  # and so is all that stands above it
            passed.add((above.span_id, beyond))
            if whole or not beyond or above.kind is not SpanKind.LLM:
                covered.add(above.span_id)
            beyond = beyond or above.kind in _DOERS
    return covered

"""Usage of a trace: tokens, cost and model time, each counted once.

Frameworks repeat the usage of model calls on an agent's span, and two instrumentations of one call each report it. So
only the lowest span that reports usage counts; one of several that report the same response; and none that repeats the
usage of spans elsewhere.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import TypeAlias

from .span import Span, SpanKind
from .trace import Trace

_Figures: TypeAlias = tuple[float, float]


def tokens(trace: Trace, reporting: Sequence[Span], calls: Sequence[Span]) -> tuple[int | None, int | None]:
    """Tokens of the whole trace, of input and of output, by the spans that report their usage; ``model_calls`` of it.

    None without any, and where a model call that answered reports none, such as a stream: a part is no total. One side
    is None where a span reports the other alone; embeddings and calls that failed may have no output.
    """
    # As a rule all model calls report it, and nothing else does.
    counted = calls if tuple(reporting) == trace.models else _lowest(trace, reporting, _tokens)
    if not counted or _leaves_one_out(trace, counted):
        return None, None
    each = [(span.usage, span.kind is SpanKind.EMBEDDING or span.error is not None) for span in counted if span.usage]
    written = [0 if used.output is None and silent else used.output for used, silent in each]
    return _sum([used.input for used, _ in each]), _sum(written)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _leaves_one_out(trace: Trace, counted: Sequence[Span]) -> bool:
    """Whether a model call that answered has no part in the figures of any span, above, below or beside it.

    A span without contents may be the record of a call.
    """
    silent = [
        span
        for span in trace.models
        if span.usage is None
        and span.error is None
        and span.finish_reason != "error"
        and (span.output_messages or span.output is not None)
    ]
    if not silent:
        return False
    known = {span.span_id for span in counted}
    wrapping = {above.span_id for span in counted for above in trace.ancestors(span)}
    left_out = [
        span
        for span in silent
        if span.span_id not in wrapping
        and known.isdisjoint(above.span_id for above in trace.ancestors(span))
        and not any(each.start_ns <= span.end_ns and span.start_ns <= each.end_ns for each in counted)
    ]
    return len(left_out) > sum(_contents(each) is None for each in counted)


def cost_usd(trace: Trace, reporting: Sequence[Span]) -> float | None:
    """US dollars of the whole trace as the emitters computed them, by the spans that report any; None without any.

    The sum is the same in any order, so that spans which are read again change no verdict.
    """
    known = [span.cost_usd for span in _lowest(trace, reporting, _dollars) if span.cost_usd is not None]
    return math.fsum(known) if known else None


def reporting_usage(trace: Trace) -> Sequence[Span]:
    """The spans whose tokens add up to the trace's, each counted once."""
    return _lowest(trace, [span for span in trace.spans if span.usage is not None], _tokens)


def reporting_cost(trace: Trace) -> Sequence[Span]:
    """The spans whose US dollars add up to the trace's, each counted once."""
    return _lowest(trace, [span for span in trace.spans if span.cost_usd is not None], _dollars)


def model_calls(trace: Trace) -> Sequence[Span]:
    """The model calls proper, in order of start: not the spans that wrap them."""
    return _lowest(trace, trace.models, _taken)


def model_ms(trace: Trace, calls: Sequence[Span]) -> float | None:
    """Sum of the durations of ``model_calls`` in milliseconds, None without any; parallel calls count in full.

    A call whose span also covers the steps that its answer led to, including other calls, is left out, because its own
    time is unknown; and so is one that took none: the record of a call, made at its end.
    """
    if not _nothing_below(trace, trace.models):
        calls = _lowest(trace, trace.models, _taken, whole=True)
    took = [call.end_ns - call.start_ns for call in calls if call.end_ns > call.start_ns]
    return sum(took) / 1e6 if took else None


_NO_TIME_NS = 100_000
"""0.1 ms: no model answers within it."""
_DOERS = frozenset({SpanKind.TOOL, SpanKind.AGENT})
_CALLS = frozenset({SpanKind.LLM, SpanKind.EMBEDDING})
_MOST_OPEN = 16
"""Most of the latest spans with equal figures that one is compared with."""


def _tokens(span: Span) -> _Figures | None:
    return None if span.usage is None else (span.usage.input or 0, span.usage.output or 0)


def _dollars(span: Span) -> _Figures | None:
    return None if span.cost_usd is None else (round(span.cost_usd, 9), 0.0)


def _taken(span: Span) -> _Figures | None:
    return _tokens(span) or _dollars(span)


def _added(one: _Figures, other: _Figures) -> _Figures:
    return one[0] + other[0], one[1] + other[1]


class _DuplicateUsage:
    """Spans that repeat the tokens, or the cost, of a call that another span anywhere reports.

    A library and its instrumentation each describe one call, or a client reports a call's usage in a separate span.
    Without a response's id they are recognised by equal figures and by ``_same_call``.
    """

    def __init__(self) -> None:
        self._open: dict[_Figures, list[Span]] = {}

    def by_another(self, span: Span, figures: _Figures | None) -> bool:
        """Whether the call was recorded before; spans come in order of start."""
        if figures is None or span.parent_id is None or span.kind in _DOERS:
            return False
        earlier = self._open.setdefault(figures, [])
        other = next((each for each in earlier[-_MOST_OPEN:] if _same_call(each, span)), None)
        if other is not None:
            earlier.remove(other)  # each describes one call
            return True
        earlier.append(span)
        return False


def _same_call(earlier: Span, span: Span) -> bool:
    """Whether two spans with the same figures describe one call, because the later one shows nothing new.

    Within the other's time, the later span has another dialect, or another name where one of them has no contents or
    both have the same; or both are siblings with the same answer, of which one alone names its response. Of a stream, a
    sibling of another dialect with the same answer may end later. After it, the later span has another name and no
    contents, and is no model call unless both are siblings. Two model calls without contents are two calls, and so are
    two responses.
    """
    if None not in (earlier.usage, span.usage) and _tokens(earlier) != _tokens(span):
        return False
    two_dialects = earlier.dialect != span.dialect and earlier.kind is span.kind is SpanKind.LLM
    siblings = two_dialects and earlier.parent_id == span.parent_id
    within = earlier.end_ns >= span.end_ns or (
        siblings and earlier.end_ns > span.start_ns and any(answer := _answer(span)) and answer == _answer(earlier)
    )
    if span.response_id is not None or (earlier.name == span.name and earlier.dialect == span.dialect):
        # An agent that asks its model again and again, unless two clients made them: one names responses, one does not.
        two_clients = (earlier.response_id is None) is not (span.response_id is None)
        beside = within and earlier.parent_id == span.parent_id and earlier.kind is span.kind
        if not (two_clients and beside):
            return False
        one_is_silent = two_dialects and not (any(_answer(span)) and any(_answer(earlier)))
        return one_is_silent or (span.output or "") == (earlier.output or "")
    if within and two_dialects:
        return True
    own, other = _contents(span), _contents(earlier)
    if earlier.name == span.name or (own is other is None and earlier.kind is span.kind):
        return False
    if within:
        return own is None or other is None or own == other
    if span.kind is SpanKind.LLM and earlier.parent_id != span.parent_id:
        return False
    return own is None and earlier.kind is SpanKind.LLM and span.start_ns >= earlier.end_ns


def _answer(span: Span) -> tuple[object, Sequence[tuple[str, object]]]:
    calls = [(call.name, call.arguments) for message in span.output_messages for call in message.tool_calls]
    return span.output or "", calls


def _contents(span: Span) -> tuple[object, ...] | None:
    held = (span.input, span.output, span.input_messages, span.output_messages)
    return held if any(held) else None


class _Sums:
    """Spans that sum calls that are not below them, such as after a thread lost the context.

    They are recognised by their figures: the sum of all calls that began while they ran, or of several that ended
    before. For a tool or an agent only calls at its own place count.
    """

    def __init__(self, trace: Trace, found: Sequence[Span], figures: Sequence[_Figures]) -> None:
        self._trace = trace
        self._above: dict[str, str | None] = {}
        calls = [(span, each) for span, each in zip(found, figures, strict=True) if span.kind in _CALLS]
        self._begun = _Running((span.start_ns, each) for span, each in calls)
        self._ended = _Running(sorted((span.end_ns, each) for span, each in calls))
        beside: dict[str | None, list[tuple[int, _Figures]]] = {}
        for span, each in calls:
            beside.setdefault(self._doer(span), []).append((span.start_ns, each))
        self._beside = {doer: _Running(each) for doer, each in beside.items()}

    def is_one(self, span: Span, figures: _Figures) -> bool:
        """Whether the span's figures are the sum of other spans' figures."""
        if span.kind in _CALLS or not any(figures):
            return False
        if span.kind in _DOERS:
            near = self._beside.get(self._doer(span))
            return near is not None and near.between(span.start_ns, span.end_ns, 1) == figures
        return figures in (self._begun.between(span.start_ns, span.end_ns, 1), self._ended.between(0, span.start_ns, 2))

    def _doer(self, span: Span) -> str | None:
        """The id of the tool or agent nearest above."""
        passed, doer = [span.span_id], None
        for above in self._trace.ancestors(span):
            if above.kind in _DOERS:
                doer = above.span_id
                break
            if above.span_id in self._above:
                doer = self._above[above.span_id]
                break
            passed.append(above.span_id)
        self._above |= dict.fromkeys(passed, doer)
        return doer


class _Running:
    """Sums of figures over stretches of time."""

    def __init__(self, timed: Iterable[tuple[int, _Figures]]) -> None:
        listed = list(timed)
        self._times = [time for time, _ in listed]
        self._sums = [(0.0, 0.0), *accumulate((each for _, each in listed), _added)]

    def between(self, first_ns: int, last_ns: int, least: int) -> _Figures | None:
        """The sum from the first to the last nanosecond; None with fewer than ``least`` figures between them."""
        start, end = bisect_left(self._times, first_ns), bisect_right(self._times, last_ns)
        if end - start < least:
            return None
        (first, second), (less_first, less_second) = self._sums[end], self._sums[start]
        return round(first - less_first, 9), round(second - less_second, 9)


class _Records:
    """Spans that took no time and repeat the tokens of a call that ended before: records of it, and no calls.

    A record has another name than its call: through Langfuse, which keeps milliseconds, a quick call took no time.
    """

    def __init__(self) -> None:
        self._ended: dict[_Figures, list[Span]] = {}

    def is_one(self, span: Span) -> bool:
        """Whether the span is a record; spans come in order of start."""
        if (figures := _tokens(span)) is None:
            return False
        of_these = self._ended.setdefault(figures, [])
        if span.end_ns - span.start_ns < _NO_TIME_NS:
            for place, call in enumerate(of_these):
                same = span.response_id in (None, call.response_id) and span.name != call.name
                if same and call.end_ns <= span.start_ns:
                    del of_these[place]  # each call is recorded once
                    return True
        else:
            of_these.append(span)
        return False


def _lowest(
    trace: Trace, reporting: Sequence[Span], figures: Callable[[Span], _Figures | None], *, whole: bool = False
) -> Sequence[Span]:
    """Spans with ``figures`` that no other reports, one for each response; ``whole`` as in ``_covered``."""
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
        if reported.by_another(span, figures(span)):
            continue
        if span.response_id is not None:
            seen.add(span.response_id)
        found.append(span)
    if all(span.kind in _CALLS for span in found):
        return found
    taken = [figures(span) or (0.0, 0.0) for span in found]
    sums = _Sums(trace, found, taken)
    return [span for span, each in zip(found, taken, strict=True) if not sums.is_one(span, each)]


def _nothing_below(trace: Trace, spans: Sequence[Span]) -> bool:
    return trace.children.keys().isdisjoint([span.span_id for span in spans])


def _covered(trace: Trace, reporting: Sequence[Span], *, whole: bool) -> Collection[str]:
    """Ids of the spans with one below them that reports the same.

    Some clients keep a model call's span open while the tools and agents that its answer calls run: such a span is no
    roll-up of the spans beyond a tool or an agent, unless ``whole``: then nothing may be below it.
    """
    if _nothing_below(trace, reporting):
        return ()  # none covers another: nearly every trace
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

"""What a trace consumed: tokens, cost and model time, each counted once.

Frameworks repeat on an agent's span what its model calls used, and two instrumentations of one call each report it.
So what counts is the lowest span that reports it, and of several that report the same response, one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .span import Span, Usage
from .trace import Trace


def usage(trace: Trace) -> Usage | None:
    """Tokens of the whole trace, None when no span reports any."""
    reporting = [span for span in trace.spans if span.usage is not None]
    counted = [span.usage for span in _lowest(trace, reporting) if span.usage]
    if not counted:
        return None
    return Usage(
        input=sum(u.input for u in counted),
        output=sum(u.output for u in counted),
        cached_input=sum(u.cached_input for u in counted),
        reasoning_output=sum(u.reasoning_output for u in counted),
    )


def cost_usd(trace: Trace) -> float | None:
    """US dollars of the whole trace as the emitters reckoned them, None when no span reports any."""
    reporting = [span for span in trace.spans if span.cost_usd is not None]
    known = [span.cost_usd for span in _lowest(trace, reporting) if span.cost_usd is not None]
    return sum(known) if known else None


def model_calls(trace: Trace) -> list[Span]:
    """The model calls proper, in order of start: not the spans that wrap them."""
    return _lowest(trace, trace.models)


def model_ms(calls: Sequence[Span]) -> float | None:
    """Sum of the durations of ``model_calls`` in milliseconds, None without any; parallel calls count in full."""
    return sum([max(0, call.end_ns - call.start_ns) for call in calls]) / 1e6 if calls else None


def _lowest(trace: Trace, reporting: Sequence[Span]) -> list[Span]:
    """Spans that report and have none below them that does, one for each response."""
    covered = _covered(trace, reporting)
    seen: set[str] = set()
    found: list[Span] = []
    for span in reporting:
        if span.span_id in covered or (span.response_id is not None and span.response_id in seen):
            continue
        if span.response_id is not None:
            seen.add(span.response_id)
        found.append(span)
    return found


def _covered(trace: Trace, reporting: Sequence[Span]) -> Collection[str]:
    """Ids of the spans with one below them that reports the same."""
    if len(reporting) < 2 or not any(span.span_id in trace.children for span in reporting):
        return ()  # of one, or of some that have nothing below them, none covers another: nearly every trace
    covered: set[str] = set()
    for span in reporting:
        for above in trace.ancestors(span):
            if above.usage is not None and above.usage.own:
                if span.usage is not None and not span.usage.own:
                    covered.add(above.span_id)  # the calls it added up are here themselves
                break
            if above.span_id in covered:
                break  # and so is all that stands above it
            covered.add(above.span_id)
    return covered

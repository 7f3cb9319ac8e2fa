"""Instrumentation health: what the telemetry of a run lacks. It does not measure the application's quality."""

from __future__ import annotations

from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.reason import Reason, part, together
from sidejudge.scoring.result.result import Result, Scored, at_least
from sidejudge.scoring.trace.trace import Trace

from .run_ending import of_trace, run_metric
from .run_steps import run_steps, signs

_SKEW_NS: Final = 1_000_000_000
"""A span that begins this much earlier than its parent shows that the clocks of two hosts differ: 1 s."""
CHECKS: Final = ("attributes", "parents", "contents", "tokens", "clocks")


@run_metric(
    formula="1 − faults / 5: dropped attributes, missing parents, no contents, no token counts, clocks that differ",
    bands=at_least(good=1.0, acceptable=0.8),
    undefined="not applicable where no model, agent or tool took part",
)
@of_trace
def telemetry(case: Case, trace: Trace) -> Result:
    """How whole the telemetry of the run is. It is about the instrumentation, not about the application."""
    models = case.once(run_steps).models
    found: list[tuple[str | None, Reason]] = []
    dropped = [span for span in trace.spans if span.dropped_attributes]
    if dropped:
        total = sum(span.dropped_attributes for span in dropped)
        found.append(
            (
                dropped[0].span_id,
                Reason("attributes: the SDK left out {n} (raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT)", n=total),
            )
        )
    if trace.missing_parents:
        found.append((None, Reason("parents: {n} named parents never came", n=len(trace.missing_parents))))
    if not case.content_captured:
        switch = Reason(" (set {name})", name=part(case.capture_switch)) if case.capture_switch else ""
        found.append((case.root_span_id, Reason("contents: not captured") + switch))
    if models and all(span.usage is None for span in models) and case.input_tokens is None:
        found.append((models[0].span_id, Reason("tokens: no model call reports its usage")))
    if (skewed := _skewed(trace)) is not None:
        found.append((skewed, Reason("clocks: a step begins before the step that started it")))
    return Scored(
        value=1.0 - len(found) / len(CHECKS), reason=together(sign for _, sign in found), details=signs(found)
    )


def _skewed(trace: Trace) -> str | None:
    """The first span that begins too long before its parent, or None."""
    for span in trace.spans:
        parent = trace.parent(span)
        if parent is not None and span.start_ns + _SKEW_NS < parent.start_ns:
            return span.span_id
    return None

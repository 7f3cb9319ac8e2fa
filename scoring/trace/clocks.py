"""Clocks of services: how far each is off, as the steps show that one service has another one do."""

from __future__ import annotations

from collections.abc import Mapping

from .trace import Trace


def corrections(trace: Trace) -> Mapping[str, int]:
    """By the id of each span in ns what puts it on the root's clock; spans that need nothing have no entry.

    A step of another service begins no earlier than the step above it, and where it took no longer than that one, which
    waited for it, it ends no later. What is below it in that service has the same clock.
    """
    found: dict[str, int] = {}
    if len({span.service for span in trace.spans}) < 2:
        return found
    for span in trace.from_top:
        above = trace.parent(span)
        if above is None:
            continue
        moved = found.get(above.span_id, 0)
        if span.service != above.service:
            late = max(0, above.start_ns + moved - span.start_ns)
            waited = span.end_ns - span.start_ns <= above.end_ns - above.start_ns
            early = min(0, above.end_ns + moved - span.end_ns) if waited else 0
            moved = late or early
        if moved:
            found[span.span_id] = moved
    return found

"""Spans and traces for tests: what a test does not state of them is the plainest that there is."""

from __future__ import annotations

from typing import Any

from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.trace import Trace


def span(span_id: str = "a", parent_id: str | None = None, kind: SpanKind = SpanKind.OTHER, **fields: Any) -> Span:
    """A span of a name like its id, from 0 to 10 ns."""
    plain: dict[str, Any] = {"trace_id": "1" * 32, "name": span_id, "dialect": "test", "start_ns": 0, "end_ns": 10}
    return Span(span_id=span_id, parent_id=parent_id, kind=kind, **{**plain, **fields})


def trace(*spans: Span, completion: Any = "batch") -> Trace:
    """The trace of these spans."""
    return Trace.of("1" * 32, spans, completion)

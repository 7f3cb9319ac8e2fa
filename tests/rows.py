"""Rows of Langfuse as the trace that a monitor would make of them."""

from __future__ import annotations

from collections.abc import Sequence

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.langfuse.normalise import raw_spans
from sidejudge.integrations.langfuse.observations import Row
from sidejudge.scoring.trace.span import Completion
from sidejudge.scoring.trace.trace import Trace


def trace_of(rows: Sequence[Row], completion: Completion = "batch") -> Trace | None:
    """The trace that rows are of; None when none of them is a span."""
    spans = raw_spans(rows)
    return Trace.of(spans[0].trace_id, [normalise(span) for span in spans], completion) if spans else None

"""Reading: rows of Langfuse → our spans, and our trace."""

from __future__ import annotations

from collections.abc import Sequence

from integrations.dialects import lift
from integrations.langfuse import legacy
from integrations.langfuse.client import Langfuse
from integrations.langfuse.lift import raw_spans
from integrations.langfuse.observations import Row, Window, of_trace
from integrations.langfuse.probe import Server
from scoring.span import Completion
from scoring.trace import Trace


async def rows_of(langfuse: Langfuse, server: Server, trace_id: str, *, window: Window | None = None) -> list[Row]:
    """All rows of a trace with their contents, by the reads that the server answers.

    Raises ``LangfuseError`` and ``TraceTooLarge``.
    """
    if server.observations_v2:
        return await of_trace(langfuse, trace_id, window=window)
    return await legacy.of_trace(langfuse, trace_id)


def trace_of(rows: Sequence[Row], completion: Completion = "batch") -> Trace | None:
    """The trace that rows are of; None when none of them is a span."""
    spans = raw_spans(rows)
    return Trace.of(spans[0].trace_id, [lift(span) for span in spans], completion) if spans else None

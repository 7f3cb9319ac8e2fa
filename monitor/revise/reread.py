"""Reading a trace again: its spans as Langfuse has them, or why they are not enough."""

from __future__ import annotations

from typing import Final

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.ingest.langfuse.rows import UnreadError, spans_of
from sidejudge.scoring.verdict.trace_document import TraceDocument

from .failure import RevisionFailure

_AROUND_NS: Final = 30 * 60 * 10**9
"""How far from the times of the spans that were judged they are looked for."""


async def read(
    langfuse: Langfuse, server: LangfuseServer, trace_id: str, before: TraceDocument
) -> list[RawSpan] | RevisionFailure:
    """All spans of a trace, at least as many as were judged before. Raises ``LangfuseError``."""
    try:
        spans = await spans_of(langfuse, server, trace_id, window=_around(before))
    except UnreadError:
        return RevisionFailure.TOO_LARGE
    if not spans:
        return RevisionFailure.GONE
    judged = int(before.get("spans") or 0)
    return spans if len({span.span_id for span in spans}) >= judged else RevisionFailure.INCOMPLETE


def _around(before: TraceDocument) -> Window | None:
    """Where its spans are, which spares Langfuse a search through everything; None where the details do not hold it."""
    first, last = before.get("first_ns"), before.get("last_ns")
    if not isinstance(first, int) or not isinstance(last, int):
        return None
    return Window(from_ns=max(0, first - _AROUND_NS), to_ns=last + _AROUND_NS)

"""References: what ought to have been answered, as people keep it in Langfuse: dataset items and corrections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from sidejudge.scoring.trace.span import Json

from .client import Langfuse, Query
from .observations import instant, instant_ns
from .pages import PAGE, by_cursor, by_number


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceItem:
    """A dataset item: the trace that it was made from, its metadata, and what is expected."""

    trace_id: str | None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    expected: Json


async def dataset_items(langfuse: Langfuse, name: str) -> AsyncIterator[ReferenceItem]:
    """The active items of a dataset that expect something, the newest first. Raises ``LangfuseError``."""
    async for rows in by_number(langfuse, "dataset-items", {"datasetName": name}):
        for row in rows:
            if row.get("status") == "ACTIVE" and row.get("expectedOutput") is not None:
                metadata, made_from = row.get("metadata"), row.get("sourceTraceId")
                yield ReferenceItem(
                    trace_id=made_from if isinstance(made_from, str) else None,
                    metadata=metadata if isinstance(metadata, Mapping) else {},
                    expected=row["expectedOutput"],
                )


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person wrote as the right output of a trace. ``at_ns`` is when, ns since the epoch; an edit keeps it."""

    trace_id: str
    output: str
    at_ns: int


async def corrections(langfuse: Langfuse, since_ns: int) -> AsyncIterator[Correction]:
    """Corrections since then, the newest first. Raises ``LangfuseError``."""
    query: Query = {
        "dataType": "CORRECTION", "fields": "details,subject", "fromTimestamp": instant(since_ns), "limit": PAGE,
    }  # fmt: skip
    async for rows in by_cursor(langfuse, "v3/scores", query):
        for row in rows:
            subject, value = row.get("subject"), row.get("value")
            if isinstance(subject, Mapping) and isinstance(value, str):
                trace_id = subject.get("traceId") if subject.get("kind") == "observation" else subject.get("id")
                if isinstance(trace_id, str):
                    yield Correction(trace_id, value, instant_ns(row.get("timestamp")) or 0)

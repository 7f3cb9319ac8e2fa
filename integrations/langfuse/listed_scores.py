"""Listed scores: what programs wrote, page by page, in order of time, the latest first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from sidejudge.scoring.trace.span import Json

from .annotations import pages_of_scores, subject_of, value_of
from .client import Langfuse


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedScore:
    """One score with its metadata. ``subject`` is the id of a trace or a session; a truth value is 1 or 0.

    ``observation`` is the id of the step of the trace that it is on; empty for the trace as a whole.
    """

    id: str
    subject: str
    name: str
    value: float | str
    metadata: Mapping[str, Json] = field(default_factory=dict)
    observation: str = ""


async def listed_scores(langfuse: Langfuse, *, since_ns: int, until_ns: int, v3: bool) -> AsyncIterator[ListedScore]:
    """Scores of source API that have their time in [since, until). Raises ``LangfuseError``."""
    query = {"source": "API", "fields": "details,subject"}
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        for row in rows:
            id_, name, metadata = row.get("id"), row.get("name"), row.get("metadata")
            value, of = value_of(row), subject_of(row)
            if isinstance(id_, str) and isinstance(name, str) and value is not None and of is not None:
                yield ListedScore(
                    id=id_, subject=of[1], name=name, value=value,
                    metadata=metadata if isinstance(metadata, Mapping) else {},
                    observation=of[2] or "",
                )  # fmt: skip

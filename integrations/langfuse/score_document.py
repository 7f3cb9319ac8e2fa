"""Score document: a score as JSON, as Langfuse takes it."""

from __future__ import annotations

from typing import Literal, TypedDict


class ScoreOfLangfuse(TypedDict, total=False):
    """A score of a trace, of an observation of it, or of a session."""

    id: str
    traceId: str
    sessionId: str
    observationId: str
    name: str
    value: float | str
    dataType: Literal["NUMERIC", "BOOLEAN", "CATEGORICAL"]
    comment: str | None
    environment: str | None
    metadata: dict[str, object]
    timestamp: str
    configId: str

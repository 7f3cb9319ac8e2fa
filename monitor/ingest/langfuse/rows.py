"""Rows: reads the rows of a trace from Langfuse and turns them into spans."""

from __future__ import annotations

import asyncio
from typing import Final

from sidejudge.integrations.langfuse import legacy
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.normalise import raw_spans
from sidejudge.integrations.langfuse.observations import TraceTooLarge, Window, of_trace
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.langfuse.probe import LangfuseServer, probe
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.errors import SidejudgeError

from .preselect import all_own

PERHAPS_ITS: Final = (
    LangfuseErrorKind.SERVER_ERROR,
    LangfuseErrorKind.TIMEOUT,
    LangfuseErrorKind.TOO_EXPENSIVE,
    LangfuseErrorKind.REFUSED,
)
"""Failures that may be the fault of the requested trace."""


class UnreadError(SidejudgeError):
    """A trace that cannot be judged as it was read: the message has the reason."""


async def introduced(langfuse: Langfuse) -> LangfuseServer:
    """The server that answers there. Raises ``LangfuseError``, for a server that answers no read of traces as well."""
    server = await probe(langfuse)
    if not (server.observations_v2 or server.legacy_reads):
        raise LangfuseError(
            LangfuseErrorKind.NOT_FOUND, "this server answers neither v2/observations nor the legacy reads"
        )
    return server


async def rows_of(
    langfuse: Langfuse, server: LangfuseServer, trace_id: str, *, window: Window | None = None
) -> list[Row]:
    """All rows of a trace with their contents, by the reads that the server answers.

    Raises ``LangfuseError`` and ``TraceTooLarge``.
    """
    if server.observations_v2:
        return await of_trace(langfuse, trace_id, window=window)
    return await legacy.of_trace(langfuse, trace_id)


async def spans_of(
    langfuse: Langfuse, server: LangfuseServer, trace_id: str, *, window: Window | None = None
) -> list[RawSpan]:
    """The spans of a trace, none where it is not there.

    Raises ``UnreadError`` for what is not to be judged, and ``LangfuseError``.
    """
    try:
        rows = await rows_of(langfuse, server, trace_id, window=window)
    except TraceTooLarge:
        raise UnreadError("too large") from None
    spans = await asyncio.to_thread(raw_spans, rows)
    if spans and all_own(spans):
        raise UnreadError("a monitor's own")
    return spans

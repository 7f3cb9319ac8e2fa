"""Legacy: the reads of version 3, which newer servers have only while they are also written in the old way.

A trace is an object there, with a name, tags and metadata of its own; its rows are brought into the form of
``v2/observations``, so that everything after knows one form. Contents come parsed, metadata nested, tokens and costs
under the same names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from sidejudge.scoring.trace.span import Json

from .client import Langfuse
from .errors import LangfuseError, LangfuseErrorKind
from .observations import SMALLEST_NS, Window, instant, newest
from .pages import PAGE, Row, by_number, items_in, page_of, pages_back, pages_in

_MOST_PAGES: Final = 50
"""The most pages of one window: deep pages are expensive there, so a window with more is halved."""
_TRACE_FIELDS: Final = ("tags", "userId", "sessionId", "release")


async def pages(langfuse: Langfuse, window: Window) -> AsyncIterator[Sequence[Row]]:
    """The traces that began within a window, page by page, as rows: one for each of their observations.

    Such a row has the trace's name, tags and environment, and when the trace began; not the observation's own times.
    Traces that are deleted meanwhile shift the others to earlier pages: so many of these are read again.
    """
    todo, again = [window], _MOST_PAGES
    while todo:
        current = todo.pop()
        divisible = current.to_ns - current.from_ns > SMALLEST_NS
        try:
            page, total, count = 1, 1, 0
            while page <= total:
                rows, meta = _page(await langfuse.get("traces", {**_query(current), "page": page}))
                total, before, count = pages_in(meta), count, items_in(meta)
                if total > _MOST_PAGES and divisible:
                    todo += current.halves()
                    break
                yield [each for trace in rows for each in _listed(trace)]
                back = min(pages_back(page, before, count), again)
                page, again = page + 1 if back == 0 else page - back, again - back
        except LangfuseError as error:
            if error.kind is not LangfuseErrorKind.TOO_EXPENSIVE or not divisible:
                raise
            todo += current.halves()


async def of_trace(langfuse: Langfuse, trace_id: str) -> list[Row]:
    """All rows of a trace with their contents, each id once, in order of start; an unknown trace has none."""
    try:
        body = await langfuse.get(f"traces/{quote(trace_id, safe='')}")
    except LangfuseError as error:
        if error.missing:
            return []
        raise
    observations = body.get("observations") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(observations, list):
        raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, "a trace without observations", broken=True)
    return newest(_row(body, each) for each in observations if isinstance(each, Mapping))


async def traces_of_session(langfuse: Langfuse, session_id: str, *, window: Window) -> set[str]:
    """Ids of the traces that bear this session and began within the window."""
    found: set[str] = set()
    query = {**_query(window), "sessionId": session_id, "fields": "core"}
    async for rows in by_number(langfuse, "traces", query):
        found |= {str(trace.get("id")) for trace in rows}
    return found


def _query(window: Window) -> dict[str, str | int]:
    to_ns = -(-window.to_ns // 10**6) * 10**6
    return {
        "fromTimestamp": instant(window.from_ns), "toTimestamp": instant(to_ns), "orderBy": "timestamp.asc",
        "fields": "core,observations", "limit": PAGE,
    }  # fmt: skip


def _page(body: Json) -> tuple[list[Row], Row]:
    rows, meta = page_of(body)
    if not meta:
        raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, "an answer without data")
    return rows, meta


def _listed(trace: Row) -> list[Row]:
    held = trace.get("observations")
    ids = [each for each in held if isinstance(each, str)] if isinstance(held, list) else []
    shared = {key: trace.get(key) for key in _TRACE_FIELDS}
    return [
        {
            **shared, "id": each, "traceId": trace.get("id"), "traceName": trace.get("name"),
            "environment": trace.get("environment"), "startTime": trace.get("timestamp"),
            "updatedAt": trace.get("updatedAt"),
        }
        for each in ids
    ]  # fmt: skip


def _row(trace: Row, observation: Row) -> Row:
    """An observation with its trace's fields; the trace's metadata goes to the topmost, as SDKs send it."""
    top = not observation.get("parentObservationId")
    row = {**observation, **{key: trace.get(key) for key in _TRACE_FIELDS}, "traceName": trace.get("name")}
    row["isRootObservation"] = top
    own, of_trace = observation.get("metadata"), trace.get("metadata")
    if top and isinstance(of_trace, Mapping):
        row["metadata"] = {**of_trace, **(own if isinstance(own, Mapping) else {})}
    elif isinstance(own, str):
        row["metadata"] = {}
    return row

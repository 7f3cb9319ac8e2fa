"""Observations: reading ``v2/observations``, the only read of version 4 that is up to date.

Its surprises, and their handling here:

- rows come newest ``startTime`` first, and no filter knows when a row was written: a window of start times is read
  whole, and its upper end does not move while it is read;
- rows come twice (the table is merged later): of rows with one id the one that was updated last stays;
- unknown parameters are ignored, which widens the selection: rows of another trace than the requested one are dropped;
- 422 means that a query costs too much: a smaller page is requested, then a smaller window;
- a cursor that comes again would go round for ever: it is an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.pages import Row, by_cursor, rows_of
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.time_units import DAY_NS, read_instant

LISTED: Final = "core,basic,time,trace_context"
"""Field groups that identify traces, without their contents."""
WHOLE: Final = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
"""Field groups of contents. Metadata is cut at 200 characters a value unless ``io`` is requested with it."""
MOST_ROWS: Final = 1000
"""The most rows of a page; Langfuse refuses more."""
BODY_ROWS: Final = 100
"""The most rows of a page with contents."""
MOST_IN_TRACE: Final = 10_000
"""Rows of a trace that are read."""
MOST_CHARACTERS: Final = 32 * 2**20
"""Characters of the inputs and outputs of a trace."""
SHOWN_NS: Final = 29 * DAY_NS
"""What began within this time is shown, whatever the plan: those of Langfuse's cloud show 30 days or more."""
SMALLEST_NS: Final = 10**9
"""A window that is not halved any more."""


class TraceTooLarge(SidejudgeError):  # noqa: N818  # it names a state, as StoreCorrupt does
    """A trace of more rows or larger contents than are held in memory for one trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Start times, from and to (exclusive), ns since the epoch."""

    from_ns: int
    to_ns: int

    def halves(self) -> tuple[Window, Window]:
        """The later half, then the earlier one: rows come in this order."""
        middle = (self.from_ns + self.to_ns) // 2
        return Window(from_ns=middle, to_ns=self.to_ns), Window(from_ns=self.from_ns, to_ns=middle)


async def pages(langfuse: Langfuse, window: Window) -> AsyncIterator[Sequence[Row]]:
    """The rows that started within a window, page by page, newest first. Rows may come twice, on pages far apart."""
    todo = [window]
    while todo:
        current = todo.pop()
        try:
            async for page in _read(langfuse, _between(current), LISTED, MOST_ROWS):
                yield page
        except LangfuseError as error:
            if error.kind is not LangfuseErrorKind.TOO_EXPENSIVE or current.to_ns - current.from_ns <= SMALLEST_NS:
                raise
            later, earlier = current.halves()
            todo += [earlier, later]


async def of_trace(langfuse: Langfuse, trace_id: str, *, window: Window | None = None) -> list[Row]:
    """All rows of a trace with their contents, each id once, in order of start; an unknown trace has none.

    ``window`` bounds the start times, which spares Langfuse a search through everything. Raises ``TraceTooLarge``.
    """
    query = {"traceId": trace_id, **(_between(window) if window else {})}
    found: list[Row] = []
    size = 0
    async for page in _read(langfuse, query, WHOLE, BODY_ROWS):
        found += [row for row in page if row.get("traceId") == trace_id]
        size += sum(
            len(text) for row in page for text in (row.get("input"), row.get("output")) if isinstance(text, str)
        )
        if len(found) > MOST_IN_TRACE or size > MOST_CHARACTERS:
            raise TraceTooLarge(trace_id)
    return newest(found)


async def traces_of_session(langfuse: Langfuse, session_id: str, *, window: Window) -> set[str]:
    """Ids of the traces with a row of this session that started within the window."""
    query = {"sessionId": session_id, **_between(window)}
    return {str(row.get("traceId")) async for page in _read(langfuse, query, "core", MOST_ROWS) for row in page}


def newest(rows: Iterable[Row]) -> list[Row]:
    """Each id once, as it was updated last, in order of start.

    >>> new, old = ({"id": "a", "updatedAt": f"2026-11-21T12:00:{second}Z"} for second in ("00.500", "00"))
    >>> newest([new, old]) == newest([old, new]) == [new]
    True
    """
    held: dict[str, Row] = {}
    for row in rows:
        name = str(row.get("id"))
        if name not in held or _updated(row) > _updated(held[name]):
            held[name] = row
    return sorted(held.values(), key=lambda row: (instant_ns(row.get("startTime")) or 0, str(row.get("id"))))


def instant_ns(value: object) -> int | None:
    """A time of Langfuse (``2026-11-21T00:56:39.001Z``), ns since the epoch; None for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    at_ns = read_instant(value)
    return at_ns if at_ns is not None and 0 <= at_ns < 1 << 63 else None


def instant(at_ns: int) -> str:
    """Ns since the epoch as Langfuse takes it, to the millisecond, rounded down.

    >>> instant(1_795_223_026_226_420_992)
    '2026-11-21T01:03:46.226Z'
    """
    at = datetime.fromtimestamp(at_ns // 10**9, UTC).replace(microsecond=at_ns // 10**6 % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(langfuse: Langfuse, query: Mapping[str, str], fields: str, limit: int) -> AsyncIterator[Sequence[Row]]:
    return by_cursor(langfuse, "v2/observations", {**query, "fields": fields}, shrinking=limit)


def _between(window: Window) -> dict[str, str]:
    # Whole milliseconds: the upper end is exclusive, so it is rounded up for nothing to fall between two windows.
    to_ns = -(-window.to_ns // 10**6) * 10**6
    return {"fromStartTime": instant(window.from_ns), "toStartTime": instant(to_ns)}


def _updated(row: Row) -> int:
    return instant_ns(row.get("updatedAt")) or 0  # as a text, 12:00:00Z would be later than 12:00:00.500Z


async def trace_exists(langfuse: Langfuse, trace_id: str, *, v2: bool) -> bool:
    """Whether the project has anything of a trace; ``v2``: by the listing of observations. Raises ``LangfuseError``."""
    if v2:
        rows = rows_of(await langfuse.get("v2/observations", {"traceId": trace_id, "limit": 1, "fields": "core"}))
        return any(row.get("traceId") == trace_id for row in rows)
    return await langfuse.has(f"traces/{quote(trace_id, safe='')}", {"fields": "core"})


async def anything_before(langfuse: Langfuse, at_ns: int, *, v2: bool) -> bool:
    """Whether the project shows anything that began before a time; ``v2`` likewise. Raises ``LangfuseError``."""
    path, time = ("v2/observations", "StartTime") if v2 else ("traces", "Timestamp")
    between = {f"from{time}": instant(0), f"to{time}": instant(at_ns)}
    return bool(rows_of(await langfuse.get(path, {**between, "limit": 1, "fields": "core"})))

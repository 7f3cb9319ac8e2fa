"""Pages of Langfuse's lists: an answer comes in; its rows and the way to further pages go out. Also whole lists."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final, TypeAlias

from sidejudge.scoring.trace.jsontext import mapping, objects
from sidejudge.scoring.trace.span import Json

from .client import Langfuse, Query
from .errors import LangfuseError, LangfuseErrorKind

Row: TypeAlias = Mapping[str, Json]
PAGE: Final = 100
"""Rows of a page; most endpoints refuse more."""
_MOST_PAGES: Final = 1000
"""Pages of one list that counts them, at most."""
_MOST_CURSORS: Final = 10_000
"""Pages of one list that names where the next begins, at most: such pages are small where large ones cost too much."""


def page_of(body: Json) -> tuple[list[Row], Row]:
    """The rows of a page and its ``meta``. Raises ``LangfuseError`` for an answer that is no page."""
    if not isinstance(body, Mapping) or not isinstance(body.get("data"), list):
        raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, "an answer without data", broken=True)
    return rows_of(body), meta_of(body)


def rows_of(body: Json) -> list[Row]:
    """The rows of a page; none for an answer that is no page."""
    return objects(mapping(body).get("data"))


def meta_of(body: Json) -> Row:
    """A page's metadata on the list: its cursor, or the number of pages."""
    return mapping(mapping(body).get("meta"))


def pages_in(meta: Row) -> int:
    """How many pages the list has; 1 where the server does not name it."""
    total = meta.get("totalPages")
    return total if isinstance(total, int) else 1


def items_in(meta: Row) -> int:
    """How many rows the list has; 0 where the server does not name it."""
    count = meta.get("totalItems")
    return count if isinstance(count, int) else 0


def pages_back(page: int, before: int, count: int) -> int:
    """How many pages before this one are to be read again where a list that had ``before`` rows has ``count``.

    What is deleted while a list is read shifts the others to earlier pages.
    """
    return min(page - 1, -(-max(0, before - count) // PAGE))


async def by_number(langfuse: Langfuse, path: str, query: Query | None = None) -> AsyncIterator[list[Row]]:
    """The pages of a list that counts them, ``PAGE`` rows each; rows may come twice. Raises ``LangfuseError``.

    A list that names no number of pages ends with the first that is not full. A list longer than the limit ends with an
    error, because a part would pass for the whole.
    """
    page, count = 1, 0
    for _ in range(_MOST_PAGES):
        rows, meta = page_of(await langfuse.get(path, {"limit": PAGE, **(query or {}), "page": page}))
        yield rows
        before, count = count, items_in(meta)
        back = pages_back(page, before, count)
        if not back and (page >= pages_in(meta) if "totalPages" in meta else len(rows) < PAGE):
            return
        page = page - back if back else page + 1
    raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, f"a list of more than {_MOST_PAGES} pages")


async def by_cursor(
    langfuse: Langfuse, path: str, query: Query, *, shrinking: int | None = None
) -> AsyncIterator[list[Row]]:
    """The pages of a list that names where the next begins.

    Args:
        langfuse: The project.
        path: The list's.
        query: The query.
        shrinking: Rows of a page; where they cost too much, a quarter of them is requested. None: as in ``query``.

    Raises:
        LangfuseError: Also where the list has no end: a server that always names another page would be read for ever.
    """
    requested = dict(query)
    known: set[str] = set()
    while True:
        if shrinking is not None:
            requested["limit"] = shrinking
        try:
            rows, meta = page_of(await langfuse.get(path, requested))
        except LangfuseError as error:
            if error.kind is not LangfuseErrorKind.TOO_EXPENSIVE or shrinking is None or shrinking <= 1:
                raise
            shrinking = max(1, shrinking // 4)
            continue
        yield rows
        cursor = meta.get("cursor")
        if not isinstance(cursor, str) or not cursor:
            return
        if cursor in known:
            endless = "it gives the same cursor again: its pages would never end"
            raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, endless, broken=True)
        known.add(cursor)
        if len(known) >= _MOST_CURSORS:
            raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, f"a list of more than {_MOST_CURSORS} pages")
        requested["cursor"] = cursor

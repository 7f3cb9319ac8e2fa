"""Pages of Langfuse's lists: an answer comes in, its rows and what it holds about further pages go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from scoring.trace.span import Json

from .errors import LangfuseError, LangfuseErrorKind

Row: TypeAlias = Mapping[str, Json]


def page_of(body: Json) -> tuple[list[Row], Row]:
    """The rows of a page and its ``meta``. Raises ``LangfuseError`` for an answer that is no page."""
    if not isinstance(body, Mapping) or not isinstance(body.get("data"), list):
        raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, "an answer without data")
    return rows_of(body), meta_of(body)


def rows_of(body: Json) -> list[Row]:
    """The rows of a page; none for an answer that is no page."""
    rows = body.get("data") if isinstance(body, Mapping) else None
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def meta_of(body: Json) -> Row:
    """What a page holds about the list: its cursor, or the number of pages."""
    meta = body.get("meta") if isinstance(body, Mapping) else None
    return meta if isinstance(meta, Mapping) else {}


def pages_in(meta: Row) -> int:
    """How many pages the list has; 1 where the server does not name it."""
    total = meta.get("totalPages")
    return total if isinstance(total, int) else 1

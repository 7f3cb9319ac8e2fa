"""Reading back: whether scores that were taken are there. A 2xx only means that they were queued.

Workers drop what does not fit, without a word to anybody; reading is the only proof that a score is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from .client import Langfuse
from .pages import Row, by_cursor, by_number

MOST_IDS: Final = 50
"""Ids in one request: their list has to fit into a URL, and 100 rows are the most that are answered."""


async def read_back(langfuse: Langfuse, ids: Sequence[str], *, v3: bool, fields: str = "") -> list[Row]:
    """The rows of those scores that are stored, the latest first. At most ``MOST_IDS``.

    ``fields`` are groups of fields of ``v3/scores``, as ``details``, which has the metadata; ``v2/scores`` gives all.

    Raises ``LangfuseError``, also for an answer that is no page: that a score is not there has to be answered.
    """
    path, name = ("v3/scores", "id") if v3 else ("v2/scores", "scoreIds")
    query: dict[str, str | int] = {name: ",".join(ids), "limit": 100}
    if v3 and fields:
        query["fields"] = fields
    pages = by_cursor(langfuse, path, query) if v3 else by_number(langfuse, path, query)
    return [row async for rows in pages for row in rows if row.get("id") in ids]


def same_value(row: Mapping[str, object], value: float | str, *, within: float = 0.0) -> bool:
    """Whether a row has this value; the older read has texts and numbers in different fields.

    ``within``: numbers may be this far apart.
    """
    stated = row.get("stringValue") if isinstance(value, str) and "stringValue" in row else row.get("value")
    if isinstance(value, str) or isinstance(stated, str):
        return stated == value
    return isinstance(stated, int | float) and math.isclose(
        float(stated), float(value), rel_tol=1e-9, abs_tol=max(within, 1e-12)
    )

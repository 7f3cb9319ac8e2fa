"""Reading back: whether scores that were taken are there. A 2xx only says that they were queued.

Workers drop what does not fit, without a word to anybody; reading is the only proof that a score is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .client import Langfuse

MOST_IDS: Final = 50
"""Ids asked for at once: their list has to fit into a URL, and 100 rows are the most that are answered."""


async def stored(langfuse: Langfuse, scores: Sequence[Mapping[str, Any]], *, v3: bool) -> set[str]:
    """Ids of those that are stored with their value (at most ``MOST_IDS`` are asked for). Raises ``LangfuseError``."""
    wanted = {str(score["id"]): score["value"] for score in scores}
    ids = ",".join(wanted)
    path, query = ("v3/scores", {"id": ids}) if v3 else ("v2/scores", {"scoreIds": ids})
    body = await langfuse.get(path, {**query, "limit": 100})
    rows = body.get("data") if isinstance(body, Mapping) else None
    return {
        str(row["id"])
        for row in rows or ()
        if isinstance(row, Mapping) and row.get("id") in wanted and _same(row, wanted[str(row["id"])])
    }


def _same(row: Mapping[str, Any], value: float | str) -> bool:
    """Whether a row says this value; the older read tells texts apart from numbers by another field."""
    said = row.get("stringValue") if isinstance(value, str) and "stringValue" in row else row.get("value")
    if isinstance(value, str) or isinstance(said, str):
        return said == value
    return isinstance(said, int | float) and math.isclose(float(said), float(value), rel_tol=1e-9, abs_tol=1e-12)

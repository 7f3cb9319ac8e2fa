"""Our own scores as they are stored in Langfuse, read by their ids, and whether they equal what would be written now.

A 2xx only means that a score was queued. Workers silently drop invalid scores; reading is the only proof that a score
is stored.

The metadata of a score is kept as texts and parsed when it is read, so a text of digits comes back as a number, a text
of JSON as what it holds, and what was null may be missing: values are compared by what they mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.observations import instant_ns
from sidejudge.integrations.langfuse.pages import Row, by_cursor, by_number
from sidejudge.integrations.langfuse.scores import METRICS, WITHDRAWN, WRITTEN, ScoreOfLangfuse
from sidejudge.scoring.trace.jsontext import mapping, no_constant

MOST_IDS: Final = 50
"""Ids in one request: their list has to fit into a URL, and 100 rows are the most that are answered."""


async def read_back(langfuse: Langfuse, ids: Sequence[str], *, v3: bool, fields: str = "") -> list[Row]:
    """The stored rows of these scores; of several rows of one id the latest first.

    ``fields`` are groups of fields of ``v3/scores``, as ``details``, which has the metadata; ``v2/scores`` gives all.

    Raises ``LangfuseError``, also for an answer that is no page: that a score is not there has to be answered.
    """
    path, name = ("v3/scores", "id") if v3 else ("v2/scores", "scoreIds")
    found: list[Row] = []
    for start in range(0, len(ids), MOST_IDS):
        some = ids[start : start + MOST_IDS]
        query: dict[str, str | int] = {name: ",".join(some), "limit": 100}
        if v3 and fields:
            query["fields"] = fields
        pages = by_cursor(langfuse, path, query) if v3 else by_number(langfuse, path, query)
        found += [row async for rows in pages for row in rows if row.get("id") in some]
    return found


def same_value(row: Mapping[str, object], value: float | str, *, within: float = 0.0) -> bool:
    """Whether a row has this value; the older read has texts and numbers in different fields.

    ``within``: numbers may be this far apart.
    """
    stated = row.get("stringValue") if isinstance(value, str) and "stringValue" in row else row.get("value")
    if isinstance(value, str) or isinstance(stated, str):
        return stated == value
    return isinstance(stated, int | float) and near(stated, value, within=within)


def near(one: float, other: float, *, within: float = 0.0) -> bool:
    """Whether two numbers of JSON are the same but for rounding, or at most ``within`` apart.

    >>> near(0.1 + 0.2, 0.3), near(10**400, 1.0), near(10**400, 10**400)
    (True, False, True)
    """
    try:
        return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=max(within, 1e-12))
    except OverflowError:  # a whole number that no float holds
        return False


REVISION: Final = "revision"
_MOST_REVISIONS: Final = 2**31
_NOTHING: Final = (None, "", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingScore:
    """A stored score. ``at_ns`` is its timestamp, set by its first version, in ns since the epoch.

    ``revision`` counts from 1; a score that names none is taken for the first.
    """

    at_ns: int
    revision: int
    row: Row

    @property
    def written_ms(self) -> int:
        """When the shown version was written, in ms since the epoch; for a first version, the score's own time."""
        stated = instant_ns(mapping(self.row.get("metadata")).get(WRITTEN))
        return (self.at_ns if stated is None else stated) // 10**6

    @property
    def withdrawn(self) -> bool:
        """Whether it was overwritten and waits for its deletion, which may take hours."""
        return WITHDRAWN in (self.row.get("value"), self.row.get("stringValue"))

    @property
    def edited(self) -> bool:
        """Whether a person has changed it in the interface, which keeps its metadata and names the person."""
        return bool(self.row.get("authorUserId"))

    @property
    def latest_ms(self) -> int:
        """No writing of it that the server has bears a later time, unless a clock was ahead, ms since the epoch."""
        return max(self.written_ms, (instant_ns(self.row.get("updatedAt")) or 0) // 10**6)

    def states(self, body: ScoreOfLangfuse, *, within: float = 0.0, whole: bool = False) -> bool:
        """Whether it equals a body; ``within``: numbers may be this far apart.

        Where they may be apart at all, the comment is not compared: it may quote them. ``whole``: the number of the
        revision and the values of metrics are compared too, so that it is this writing of the score and no other.
        """
        if not same_value(self.row, body["value"], within=within) or self.row.get("dataType") != body.get("dataType"):
            return False
        reported, meant = mapping(self.row.get("metadata")), mapping(body.get("metadata"))
        left_out = () if whole else (REVISION, METRICS)
        if not all(_alike(reported.get(key), value) for key, value in meant.items() if key not in left_out):
            return False
        return within > 0 or _same_text(self.row.get("comment"), body.get("comment"))


async def existing_scores(
    langfuse: Langfuse, ids: Sequence[str], *, v3: bool, names: Mapping[str, str] | None = None
) -> dict[str, ExistingScore]:
    """Those of the scores that are stored, by id. Raises ``LangfuseError``.

    Of several rows of one id the latest of its name in ``names``, by id, and else the latest.
    """
    found: dict[str, ExistingScore] = {}
    rows = reversed(await read_back(langfuse, ids, v3=v3, fields="details,annotation"))
    for row in sorted(rows, key=lambda row: row.get("name") == (names or {}).get(str(row["id"]))):
        revision = mapping(row.get("metadata")).get(REVISION)
        found[str(row["id"])] = ExistingScore(
            at_ns=instant_ns(row.get("timestamp")) or 0, revision=_count(revision), row=row
        )
    return found


def _count(value: object) -> int:
    """The number of a revision; 1 where it is none that we can have written."""
    try:
        count = int(str(value))
    except ValueError:
        return 1
    return count if 1 <= count <= _MOST_REVISIONS else 1


def _same_text(one: object, other: object) -> bool:
    return one == other or (one in _NOTHING and other in _NOTHING)


def _alike(one: object, other: object) -> bool:
    """Whether two values of metadata mean the same, each as a value or as its stored text."""
    one, other = _meaning(one), _meaning(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return near(one, other)
    return bool(one == other)


def _meaning(value: object) -> object:
    """What a value comes back as: a text that is JSON is parsed; nothing, in any spelling, is None."""
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=no_constant)
        except (ValueError, RecursionError):
            return value or None
    return value

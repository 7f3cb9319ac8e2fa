"""Our own scores as they are stored in Langfuse, and whether they equal what would be written now.

The metadata of a score is kept as texts and parsed when it is read, so a text of digits comes back as a number, and
what was null may be missing: values are compared by what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from integrations.langfuse.score_document import ScoreOfLangfuse

from .client import Langfuse
from .observations import instant_ns
from .pages import Row
from .reading_back import MOST_IDS, read_back, same_value
from .scores import METRICS

REVISION: Final = "revision"
_NOTHING: Final = (None, "", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingScore:
    """A score that is stored. ``at_ns`` is its timestamp, which is that of its first version, ns since the epoch.

    ``revision`` counts from 1; a score that names none is taken for the first.
    """

    at_ns: int
    revision: int
    row: Row

    def states(self, body: ScoreOfLangfuse, *, within: float = 0.0) -> bool:
        """Whether it equals a body, whatever the revision; ``within``: numbers may be this far apart.

        Where they may be apart at all, the comment is not compared: it may quote them.
        """
        if not same_value(self.row, body["value"], within=within):
            return False
        reported, meant = _mapping(self.row.get("metadata")), _mapping(body.get("metadata"))
        if not all(_alike(reported.get(key), value) for key, value in meant.items() if key not in (REVISION, METRICS)):
            return False
        return within > 0 or _alike(self.row.get("comment"), body.get("comment"))


async def existing_scores(langfuse: Langfuse, ids: Sequence[str], *, v3: bool) -> dict[str, ExistingScore]:
    """Those of the scores that are stored, by id; of several rows of one id the latest. Raises ``LangfuseError``."""
    found: dict[str, ExistingScore] = {}
    for start in range(0, len(ids), MOST_IDS):
        rows = await read_back(langfuse, ids[start : start + MOST_IDS], v3=v3, details=True)
        for row in reversed(rows):
            revision = _mapping(row.get("metadata")).get(REVISION)
            found[str(row["id"])] = ExistingScore(
                at_ns=instant_ns(row.get("timestamp")) or 0, revision=_count(revision), row=row
            )
    return found


def _count(value: object) -> int:
    try:
        return max(1, int(str(value)))
    except ValueError:
        return 1


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _alike(one: object, other: object) -> bool:
    if one in _NOTHING or other in _NOTHING:
        return one in _NOTHING and other in _NOTHING
    if str(one) == str(other):
        return True
    try:
        return math.isclose(float(str(one)), float(str(other)), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False

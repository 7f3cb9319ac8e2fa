"""Trends: what the store's verdicts add up to, stretch of time by stretch, read apart so that nobody waits for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .errors import explain
from .period_sums import Sums
from .statements import queries

MOST = 100_000
"""Verdicts that are read at most, the latest: about a second and a half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The sums of one (service, environment, rubric) over the stretch of this number, from 0.

    ``versions`` are those of the rubric that reached its verdicts.
    """

    number: int
    sums: Sums
    versions: frozenset[str] = frozenset()


def read_trends(path: Path, *, until_ns: int, step_ns: int, steps: int) -> list[Stretch]:
    """The ``steps`` stretches before ``until_ns``, those without a verdict left out. Raises ``StoreError``.

    Of more than ``MOST`` verdicts the oldest are left out, and with them the stretch that would be incomplete.
    """
    since_ns = until_ns - steps * step_ns
    wanted = {"since": since_ns, "until": until_ns, "step": step_ns, "most": MOST}
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            rows = connection.execute(queries()["trends"], wanted).fetchall()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    names = ("service", "environment", "rubric", "passed", "failed", "incomplete", "weight", "failed_weight",
             "squared_weight")  # fmt: skip
    found = [
        Stretch(
            number=number,
            sums=Sums(**dict(zip(names, row, strict=True))),
            versions=frozenset(versions.split(",") if versions else ()),
        )
        for number, *row, versions in rows
    ]
    if sum(each.sums.passed + each.sums.failed + each.sums.incomplete for each in found) < MOST:
        return found
    partial = min(each.number for each in found)
    return [each for each in found if each.number > partial]

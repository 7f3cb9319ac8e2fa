"""Courses: what the store's verdicts of some time add up to, read apart so that nobody waits for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

from .errors import explain
from .statements import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Counts and sums of weights over the verdicts of one (service, environment, rubric), as an estimate needs them."""

    service: str | None
    environment: str | None
    rubric: str
    passed: int
    failed: int
    incomplete: int
    weight: float
    failed_weight: float
    squared_weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMean:
    """The weighted mean of a metric over the ``n`` verdicts that scored it, in its unit."""

    service: str | None
    environment: str | None
    rubric: str
    metric: str
    mean: float
    n: int


_SUMS = [field.name for field in fields(Sums)]
_MEANS = [field.name for field in fields(MetricMean)]


def read_courses(path: Path, since_ns: int, until_ns: int) -> tuple[list[Sums], list[MetricMean]]:
    """Sums over the verdicts closed in [since, until). Takes about a second for 30,000; raises ``StoreError``."""
    sql, wanted = queries(), {"since": since_ns, "until": until_ns}
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            courses = connection.execute(sql["courses"], wanted).fetchall()
            means = connection.execute(sql["metric_means"], wanted).fetchall()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return [Sums(**dict(zip(_SUMS, row, strict=True))) for row in courses], [
        MetricMean(**dict(zip(_MEANS, row, strict=True))) for row in means
    ]

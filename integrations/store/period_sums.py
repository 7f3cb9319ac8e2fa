"""Courses: what the store's verdicts of some time add up to, read apart so that nobody waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from sidejudge.scoring.status.trend import VerdictSums

from .connection import reading
from .statements import queries

_SUMS: Final = [field.name for field in fields(VerdictSums)]


@dataclass(frozen=True, slots=True)
class MetricMean:
    """The weighted mean of a metric over the ``n`` verdicts that scored it, in its unit."""

    service: str | None
    environment: str | None
    rubric: str
    metric: str
    mean: float
    n: int


def read_courses(path: Path, since_ns: int, until_ns: int) -> tuple[list[VerdictSums], list[MetricMean]]:
    """Sums over the verdicts closed in [since, until). Takes about a second for 30,000; raises ``StoreError``."""
    sql, wanted = queries(), {"since": since_ns, "until": until_ns}
    with reading(path) as connection:
        courses = connection.execute(sql["courses"], wanted).fetchall()
        means = connection.execute(sql["metric_means"], wanted).fetchall()
    return list(map(verdict_sums, courses)), [MetricMean(*row) for row in means]


def read_first(path: Path, since_ns: int) -> int | None:
    """When the first verdict since then was closed, in ns since the epoch; None without any. Raises ``StoreError``."""
    with reading(path) as connection:
        (first,) = connection.execute(queries()["first_closed"], {"since": since_ns}).fetchone()
    return first if first is None else int(first)


def verdict_sums(row: Sequence[Any]) -> VerdictSums:
    """The sums in a row whose columns are in the order of the fields."""
    return VerdictSums(**dict(zip(_SUMS, row, strict=True)))

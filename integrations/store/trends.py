"""Trends: what the store's verdicts add up to, stretch of time by stretch, read apart so that nobody waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from sidejudge.scoring.status.trend import Stretch, VerdictSums

from .connection import reading
from .statements import queries

MOST = 100_000
"""Verdicts that are read at most, the latest: about a second and a half."""


def first_verdict(path: Path, *, service: str, environment: str, rubric: str, since_ns: int) -> int | None:
    """When the first verdict of a service under a rubric was made, ns since the epoch. Raises ``StoreError``.

    None where there is none since ``since_ns``.
    """
    wanted = {"service": service, "environment": environment, "rubric": rubric, "since": since_ns}
    with reading(path) as connection:
        found = connection.execute(queries()["first_of_service"], wanted).fetchone()
    return None if found is None else int(found[0])


def read_trends(path: Path, *, until_ns: int, step_ns: int, steps: int) -> list[Stretch]:
    """The ``steps`` stretches before ``until_ns``, those without a verdict left out. Raises ``StoreError``.

    Of more than ``MOST`` verdicts the oldest are left out, and with them the stretch that would be incomplete.
    """
    since_ns = until_ns - steps * step_ns
    wanted = {"since": since_ns, "until": until_ns, "step": step_ns, "most": MOST}
    with reading(path) as connection:
        rows = connection.execute(queries()["trends"], wanted).fetchall()
    found = [
        Stretch(number=number, sums=verdict_sums(row), versions=frozenset(versions.split(",") if versions else ()))
        for number, *row, versions in rows
    ]
    if sum(each.sums.passed + each.sums.failed + each.sums.incomplete for each in found) < MOST:
        return found
    partial = min(each.number for each in found)
    return [each for each in found if each.number > partial]


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

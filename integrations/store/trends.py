"""Trends: what the store's verdicts add up to, stretch of time by stretch, read apart so that nobody waits for it."""

from __future__ import annotations

from pathlib import Path

from sidejudge.scoring.status.trend import Stretch

from .connection import reading
from .period_sums import verdict_sums
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

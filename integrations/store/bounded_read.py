"""Long reads of the store's verdicts. Each has its own connection and time limit, so that nothing else waits for it.

Trends add verdicts up by stretches of time; comparisons read each verdict with the properties that divide traffic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sidejudge.scoring.status.trend import Stretch, VerdictSums

from .connection import bounded_read, queries, reading, select

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


def read_trends(path: Path, *, until_ns: int, step_ns: int, steps: int, rubric: str | None = None) -> list[Stretch]:
    """The ``steps`` stretches before ``until_ns`` that have verdicts. Raises ``StoreError``.

    ``rubric`` None: of all rubrics. Beyond ``MOST`` verdicts the oldest are left out, and with them the stretch that
    would be incomplete.
    """
    since_ns = until_ns - steps * step_ns
    wanted = {"since": since_ns, "until": until_ns, "step": step_ns, "most": MOST, "rubric": rubric}
    with reading(path) as connection:
        rows = connection.execute(queries()["trends"], wanted).fetchall()
    found = [
        Stretch(number=number, sums=verdict_sums(row), versions=frozenset(versions.split(",") if versions else ()))
        for number, *row, versions in rows
    ]
    judged = [(each.number, each.sums.passed + each.sums.failed + each.sums.incomplete) for each in found]
    unreached = [(each.number, each.sums.unreached) for each in found]
    partial = max(_partial(judged), _partial(unreached))  # each is bounded on its own
    return [each for each in found if each.number > partial]


def _partial(counted: Sequence[tuple[int, int]]) -> int:
    """The last stretch that was not read whole; -1 if all were."""
    return -1 if sum(n for _, n in counted) < MOST else min(number for number, n in counted if n)


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


MOST_COMPARED: Final = 100_000
"""Verdicts that are read at most, the latest: about two seconds."""
NO_METRICS: Final[Mapping[str, tuple[float, bool]]] = MappingProxyType({})
NO_SLICES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFilter:
    """Which verdicts: closed in [since, until), ns since the epoch; ``None`` does not restrict; of too many the latest.

    ``metric`` names the metric whose values are wanted beside whether the verdicts passed; ``all_metrics``: of each.
    ``figure``: it is a figure of the application, of traces and of no rubric.
    """

    since_ns: int
    until_ns: int
    service: str | None = None
    environment: str | None = None
    rubric: str | None = None
    metric: str | None = None
    all_metrics: bool = False
    most: int = MOST_COMPARED
    figure: bool = False


class ComparedVerdict(NamedTuple):
    """One verdict. ``user`` is a digest, ``name`` the trace's, ``release`` the application's version.

    ``passed`` is None where it did neither. ``weight`` is how many traces it stands for. ``metrics`` are the values
    that were asked for and that there are, each with whether it fails or blocks. ``trace_id`` is in hex; of a session,
    its key. ``slices`` are the trace's values of ``alerts.slices``. ``unanswered``: there is no verdict, or it is
    incomplete, because nobody could be asked: in an outage of a judge or of embeddings, or by a spent budget.
    """

    closed_ns: int
    service: str
    environment: str
    rubric: str
    passed: bool | None
    weight: float
    session: str | None = None
    user: str | None = None
    name: str | None = None
    release: str | None = None
    prompt: str | None = None
    model: str | None = None
    rubric_version: str | None = None
    trace_id: str = ""
    metrics: Mapping[str, tuple[float, bool]] = NO_METRICS
    slices: Mapping[str, str] = NO_SLICES
    unanswered: bool = False


def read_compared(path: Path, wanted: ComparedFilter) -> list[ComparedVerdict]:
    """Those that match, the newest first. Raises ``StoreError``, ``SearchTooLong``."""
    values = {
        "since": wanted.since_ns, "until": wanted.until_ns, "service": wanted.service,
        "environment": wanted.environment, "rubric": wanted.rubric, "metric": wanted.metric,
        "all_metrics": wanted.all_metrics, "most": wanted.most,
    }  # fmt: skip
    with bounded_read(path) as connection:
        rows = select(connection, "compared_figures" if wanted.figure else "compared", values).fetchall()
        if not wanted.figure and (unreached := select(connection, "compared_unreached", values).fetchall()):
            since_ns = rows[-1][0] if len(rows) >= wanted.most else wanted.since_ns
            rows += [row for row in unreached if row[0] >= since_ns]
            rows = sorted(rows, key=lambda row: row[0], reverse=True)[: wanted.most]
    return [
        ComparedVerdict._make((
            *where, None if passed is None else bool(passed), *of, _read(scores), _sliced(slices), bool(unanswered),
        ))
        for where, passed, of, scores, slices, unanswered in ((row[:4], row[4], row[5:-3], *row[-3:]) for row in rows)
    ]  # fmt: skip


def _read(scores: str | None) -> Mapping[str, tuple[float, bool]]:
    return {of: (float(value), bool(fails)) for of, value, fails in json.loads(scores)} if scores else NO_METRICS


def _sliced(slices: str | None) -> Mapping[str, str]:
    return {str(by): str(value) for by, value in json.loads(slices).items()} if slices else NO_SLICES

"""Trends of a history: sums of verdicts, stretch of time by stretch, within bounds of rows and of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sidejudge.scoring.status.trend import Stretch, VerdictSums
from sidejudge.scoring.trace.time_units import DAY_NS

from .in_force import rows_in_force
from .place import Place
from .rows import SCHEMAS

_SCHEMA: Final = pa.schema([
    SCHEMAS["verdicts"].field(name)
    for name in (
        "trace_id", "case_id", "rubric", "rubric_version", "revision", "service", "environment", "created_at",
        "passed", "sampling_probability",
    )
])  # fmt: skip
_GROUP: Final = ("number", "service", "environment", "rubric")


def history_trends(
    place: Place, *, since_ns: int, until_ns: int, step_ns: int, clock_s: Callable[[], float] = time.monotonic
) -> list[Stretch]:
    """The stretches from ``since_ns`` on whose verdicts were reached before ``until_ns``; of revisions the last counts.

    Beyond the bounds of ``rows_in_force`` older days are left out, and with them the stretch that would be
    incomplete. A file that is no part of a history is left out. Raises ``OSError`` where the place cannot be read.
    """
    found, oldest_ns = list[pa.Table](), since_ns
    for folder, rows in rows_in_force(
        place, "verdicts", _SCHEMA, since_ns=since_ns, until_ns=until_ns, clock_s=clock_s
    ):
        if rows is None:
            oldest_ns = _day_ns(folder) + DAY_NS
        else:
            found.append(rows)
    if not found:
        return []
    first = -(-(oldest_ns - since_ns) // step_ns)  # the first that is whole
    return list(_summed(pa.concat_tables(found), since_ns=since_ns, until_ns=until_ns, step_ns=step_ns, first=first))


def _day_ns(folder: str) -> int:
    return int(datetime.fromisoformat(folder.removeprefix("day=")).replace(tzinfo=UTC).timestamp()) * 10**9


def _summed(rows: pa.Table, *, since_ns: int, until_ns: int, step_ns: int, first: int) -> Iterator[Stretch]:
    at_us = pc.cast(rows["created_at"], pa.int64())
    number = pc.floor(pc.divide(pc.cast(pc.subtract(at_us, since_ns // 1000), pa.float64()), step_ns / 1000))
    probability = rows["sampling_probability"]
    wanted = pc.and_(pc.greater_equal(number, float(first)), pc.less(at_us, until_ns // 1000))
    wanted = pc.fill_null(pc.and_(wanted, pc.greater(probability, 0.0)), fill_value=False)
    weight = pc.divide(1.0, probability)
    decided = pc.if_else(pc.is_null(rows["passed"]), 0.0, weight)
    failed = pc.fill_null(pc.invert(rows["passed"]), fill_value=False)
    summed = pa.table({
        "number": pc.cast(number, pa.int64()), "service": rows["service"], "environment": rows["environment"],
        "rubric": rows["rubric"], "version": rows["rubric_version"], "n": pc.if_else(wanted, 1, 0),
        "passed": pc.cast(pc.fill_null(rows["passed"], fill_value=False), pa.int64()),
        "failed": pc.cast(failed, pa.int64()), "weight": decided,
        "failed_weight": pc.if_else(failed, weight, 0.0), "squared_weight": pc.multiply(decided, decided),
    }).filter(wanted)  # fmt: skip
    sums: Sequence[str] = ("n", "passed", "failed", "weight", "failed_weight", "squared_weight")
    grouped = summed.group_by(list(_GROUP)).aggregate([*((name, "sum") for name in sums), ("version", "distinct")])
    for row in grouped.to_pylist():
        passed, failed_count = row["passed_sum"], row["failed_sum"]
        found = VerdictSums(
            service=row["service"], environment=row["environment"], rubric=row["rubric"] or "",
            passed=passed, failed=failed_count, incomplete=row["n_sum"] - passed - failed_count,
            weight=row["weight_sum"], failed_weight=row["failed_weight_sum"],
            squared_weight=row["squared_weight_sum"],
        )  # fmt: skip
        versions = frozenset(each for each in row["version_distinct"] if each)
        yield Stretch(number=row["number"], sums=found, versions=versions)

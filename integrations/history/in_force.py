"""The verdicts and outcomes of a history that are in force, and their sums, stretch of time by stretch.

In force are last revisions, without withdrawn verdicts. The newest day comes first, within bounds of rows and time. A
revision is of the time of its trace's result, as in the store: a reference may come days after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from sidejudge.scoring.status.trend import Stretch, VerdictSums
from sidejudge.scoring.trace.time_units import DAY_NS

from .place import NotOursError, Place
from .rows import KEYS, SCHEMAS, Kind

MOST_ROWS: Final = 2_000_000
"""Rows that are read at most at a time."""
MOST_S: Final = 10.0
"""Seconds after which no further day is begun: an object store may be slow."""
_TIMES: Final[Mapping[Kind, str]] = {"verdicts": "created_at", "outcomes": "ended_at"}
_WITHDRAWN: Final = pa.schema([
    SCHEMAS["outcomes"].field(name) for name in ("trace_id", "revision", "ended_at", "withdrawn")
])  # fmt: skip
_Name: TypeAlias = tuple[str | None, ...]


def rows_in_force(
    place: Place,
    kind: Kind,
    schema: pa.Schema,
    *,
    since_ns: int,
    until_ns: int,
    clock_s: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, pa.Table | None]]:
    """Each day's folder (``day=2026-11-22``) with its rows, from the day of ``until_ns`` back to ``since_ns``'s.

    Later days are read for what they replace and withdraw. Beyond ``MOST_ROWS`` rows or ``MOST_S`` seconds the next
    folder comes with None, and none follows. A file that is no part of a history is left out. Raises ``OSError`` where
    the place cannot be read.

    Args:
        place: Where the history is.
        kind: ``verdicts`` or ``outcomes``.
        schema: The columns that are read; those of ``KEYS`` and the time must be among them.
        since_ns: In ns since the epoch, as ``until_ns``.
        until_ns: See above.
        clock_s: Seconds that never go back.
    """
    begin, rows = clock_s(), 0
    first, last = (f"day={datetime.fromtimestamp(ns / 1e9, UTC).date().isoformat()}" for ns in (since_ns, until_ns))
    days, withdrawing = _days(place, kind, first), _days(place, "outcomes", first) if kind == "verdicts" else {}
    keys = pa.schema([SCHEMAS[kind].field(name) for name in (*KEYS[kind], _TIMES[kind])])
    later: dict[_Name, int] = {}
    withdrawn: dict[tuple[str, str], int] = {}
    for folder in sorted(days.keys() | withdrawing.keys(), reverse=True):
        if rows > MOST_ROWS or clock_s() - begin > MOST_S:
            yield folder, None
            return
        ended: dict[str, tuple[int, int]] = {}
        for outcomes in parts_of(place, withdrawing.get(folder, ()), "outcomes", _WITHDRAWN):
            _note(outcomes, withdrawn)
            _note_ends(outcomes, ended)
        parts = list(parts_of(place, days.get(folder, ()), kind, schema if folder <= last else keys))
        if not parts:
            continue
        kept = _in_force(pa.concat_tables(parts), kind, later, withdrawn)
        if folder <= last:
            rows += kept.num_rows
            yield folder, _placed(kept, ended) if ended else kept


def parts_of(place: Place, names: Iterable[str], kind: Kind, schema: pa.Schema) -> Iterator[pa.Table]:
    """The columns of each file that belongs to a history. A row may stand in two files."""

    def read(name: str) -> pa.Table | None:
        try:
            return place.columns(name, schema, KEYS[kind])
        except NotOursError:
            return None

    return (part for part in place.each(names, read) if part is not None)


def _days(place: Place, kind: Kind, first: str) -> dict[str, list[str]]:
    days: dict[str, list[str]] = {}
    for name in place.names(kind):
        folder = name.split("/")[1]
        if folder >= first and folder.startswith("day="):
            days.setdefault(folder, []).append(name)
    return days


def _note(outcomes: pa.Table, withdrawn: dict[tuple[str, str], int]) -> None:
    """Note the rubrics that results have withdrawn from their traces, and when, in µs since the epoch."""
    some = outcomes.filter(pc.fill_null(pc.greater(pc.list_value_length(outcomes["withdrawn"]), 0), fill_value=False))
    ended = pc.cast(some["ended_at"], pa.int64()).to_pylist()
    for trace_id, at_us, rubrics in zip(
        some["trace_id"].to_pylist(), ended, some["withdrawn"].to_pylist(), strict=True
    ):
        for rubric in rubrics:
            withdrawn[trace_id, rubric] = max(at_us or 0, withdrawn.get((trace_id, rubric), 0))


def _note_ends(outcomes: pa.Table, ended: dict[str, tuple[int, int]]) -> None:
    """Note each revised result's last revision and its time, in µs since the epoch."""
    some = outcomes.filter(pc.fill_null(pc.greater(outcomes["revision"], 1), fill_value=False))
    at_us = pc.cast(some["ended_at"], pa.int64()).to_pylist()
    for trace_id, revision, at in zip(some["trace_id"].to_pylist(), some["revision"].to_pylist(), at_us, strict=True):
        if at is not None and ended.get(trace_id, (0, 0))[0] < revision:
            ended[trace_id] = revision, at


def _placed(verdicts: pa.Table, ended: Mapping[str, tuple[int, int]]) -> pa.Table:
    """The verdicts; those of a revised result are dated no later than the result."""
    times, keys = verdicts["created_at"], pc.coalesce(verdicts["trace_id"], verdicts["case_id"]).to_pylist()
    at_us = [
        at if at is None or key not in ended else min(at, ended[key][1])
        for key, at in zip(keys, pc.cast(times, pa.int64()).to_pylist(), strict=True)
    ]
    place = verdicts.column_names.index("created_at")
    return verdicts.set_column(place, "created_at", pa.array(at_us, pa.int64()).cast(times.type))


def _in_force(rows: pa.Table, kind: Kind, later: dict[_Name, int], withdrawn: dict[tuple[str, str], int]) -> pa.Table:
    """The rows that no later row replaces or withdraws, without repeats; the replaced ones are added to ``later``."""
    names = zip(*(rows[column].to_pylist() for column in KEYS[kind] if column != "revision"), strict=True)
    rest = zip(rows["revision"].to_pylist(), pc.cast(rows[_TIMES[kind]], pa.int64()).to_pylist(), strict=True)
    last: dict[_Name, tuple[int, int]] = {}
    for at, (name, (stated, at_us)) in enumerate(zip(names, rest, strict=True)):
        revision = stated or 1
        # A trace that was judged again by a rubric that it had lost has a verdict of a later date.
        gone = bool(withdrawn) and withdrawn.get((name[0] or name[1] or "", name[2] or ""), -1) >= (at_us or 0)
        if not gone and later.get(name, 0) <= revision and (name not in last or last[name][0] <= revision):
            last[name] = revision, at
    later.update((name, revision) for name, (revision, _) in last.items() if revision > 1)
    kept = pa.array(sorted(at for _, at in last.values()), pa.int64())
    return rows if len(kept) == rows.num_rows else rows.take(kept)


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

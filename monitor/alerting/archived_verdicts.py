"""Archived verdicts with the fields for comparisons, in the form of the store's ``read_compared``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sidejudge.integrations.history.in_force import parts_of, rows_in_force
from sidejudge.integrations.history.place import Place
from sidejudge.integrations.history.rows import SCHEMAS
from sidejudge.integrations.store.bounded_read import NO_METRICS, ComparedFilter, ComparedVerdict
from sidejudge.scoring.lexical.shown_text import is_named
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.verdict.documents import FAILING

_COLUMNS: Final = (
    "trace_id", "case_id", "rubric", "rubric_version", "revision", "service", "environment", "created_at", "passed",
    "sampling_probability",
)  # fmt: skip
_OUTCOME: Final = pa.schema([SCHEMAS["outcomes"].field(name) for name in ("trace_id", "revision", "record")])
_FIGURES: Final = pa.schema([
    SCHEMAS["outcomes"].field(name)
    for name in ("trace_id", "revision", "service", "environment", "ended_at", "record")
])  # fmt: skip
_UNKNOWN: Final = {"service": "unknown_service", "environment": "unknown"}


def history_compared(
    place: Place, wanted: ComparedFilter, *, clock_s: Callable[[], float] = time.monotonic
) -> tuple[list[ComparedVerdict], bool]:
    """The matching verdicts, the newest first, and whether older ones were left out.

    They are left out beyond ``wanted.most`` and the bounds of ``rows_in_force``. Raises ``OSError`` where the place
    cannot be read.
    """
    if wanted.figure:
        return _figures(place, wanted, clock_s)
    with_scores = wanted.all_metrics or wanted.metric is not None
    names = (*_COLUMNS, "record") if with_scores else _COLUMNS
    schema = pa.schema([SCHEMAS["verdicts"].field(name) for name in names])
    span = {"since_ns": wanted.since_ns, "until_ns": wanted.until_ns}
    outcomes: dict[str, list[str]] = {}
    for name in place.names("outcomes"):
        outcomes.setdefault(name.split("/")[1], []).append(name)
    found: list[ComparedVerdict] = []
    for folder, rows in rows_in_force(place, "verdicts", schema, clock_s=clock_s, **span):
        if rows is None or len(found) >= wanted.most:
            return found[: wanted.most], True
        matching = _matching(rows, wanted)
        traces = set(matching["key"].to_pylist())
        stories = _stories(place, outcomes.get(folder, ()), traces) if traces else {}
        of_day = [_verdict(row, stories.get(row["key"] or "", {}), wanted) for row in matching.to_pylist()]
        found += sorted(of_day, key=lambda each: each.closed_ns, reverse=True)
    return found[: wanted.most], len(found) > wanted.most


def _figures(place: Place, wanted: ComparedFilter, clock_s: Callable[[], float]) -> tuple[list[ComparedVerdict], bool]:
    """Traces with a figure of the application, in the form of verdicts that neither passed nor failed."""
    found: list[ComparedVerdict] = []
    span = {"since_ns": wanted.since_ns, "until_ns": wanted.until_ns}
    for _, rows in rows_in_force(place, "outcomes", _FIGURES, clock_s=clock_s, **span):
        if rows is None or len(found) >= wanted.most:
            return found[: wanted.most], True
        matching = _matching(rows, wanted, "ended_at").to_pylist()
        of_day = [figure for row in matching if (figure := _figure(row, wanted)) is not None]
        found += sorted(of_day, key=lambda each: each.closed_ns, reverse=True)
    return found[: wanted.most], len(found) > wanted.most


def _figure(row: JsonRecord, wanted: ComparedFilter) -> ComparedVerdict | None:
    story, name = _object(row["record"]), wanted.metric or ""
    value = _inner(_inner(story, "figures"), "values").get(name)
    probability = _inner(story, "sampling").get("probability")
    if not isinstance(value, int | float) or not isinstance(probability, int | float) or probability <= 0:
        return None
    of_none = {"rubric": None, "rubric_version": None, "passed": None, "sampling_probability": probability}
    return _verdict({**row, **of_none}, story, wanted)._replace(metrics={name: (float(value), False)})


def _matching(rows: pa.Table, wanted: ComparedFilter, at: str = "created_at") -> pa.Table:
    at_us = pc.cast(rows[at], pa.int64())
    kept = pc.and_(pc.greater_equal(at_us, wanted.since_ns // 1000), pc.less(at_us, wanted.until_ns // 1000))
    if "sampling_probability" in rows.column_names:
        kept = pc.and_(kept, pc.greater(pc.fill_null(rows["sampling_probability"], 1.0), 0.0))
    for column, value in (
        ("service", wanted.service), ("environment", wanted.environment), ("rubric", wanted.rubric),
    ):  # fmt: skip
        if value is not None and column in rows.column_names:  # a figure is of no rubric
            unknown = _UNKNOWN.get(column, "")
            stated = pc.fill_null(rows[column], unknown)
            named = pc.if_else(pc.equal(stated, ""), unknown, stated)
            meant = [each for each in pc.unique(named).to_pylist() if is_named(each, value)]
            kept = pc.and_(kept, pc.is_in(named, value_set=pa.array(meant, pa.string())))
    found = rows.append_column("at_us", at_us).filter(pc.fill_null(kept, fill_value=False))
    keys = [found[name] for name in ("trace_id", "case_id") if name in found.column_names]
    return found.append_column("key", pc.coalesce(*keys))  # a session has no trace id


def _stories(place: Place, names: Collection[str], traces: Collection[str]) -> dict[str, JsonRecord]:
    """The last outcome of each trace."""
    stories: dict[str, tuple[int, JsonRecord]] = {}
    wanted = pa.array(sorted(filter(None, traces)), pa.string())
    for part in parts_of(place, names, "outcomes", _OUTCOME):
        for row in part.filter(pc.is_in(part["trace_id"], value_set=wanted)).to_pylist():
            revision = row["revision"] or 1
            if row["trace_id"] not in stories or stories[row["trace_id"]][0] <= revision:
                stories[row["trace_id"]] = revision, _object(row["record"])
    return {trace_id: story for trace_id, (_, story) in stories.items()}


def _verdict(row: JsonRecord, story: JsonRecord, wanted: ComparedFilter) -> ComparedVerdict:
    def stated(name: str) -> str | None:
        value = story.get(name)
        return value if isinstance(value, str) else None

    return ComparedVerdict(
        closed_ns=row["at_us"] * 1000, service=row["service"] or _UNKNOWN["service"],
        environment=row["environment"] or _UNKNOWN["environment"], rubric=row["rubric"] or "", passed=row["passed"],
        weight=1.0 / (row["sampling_probability"] or 1.0), session=stated("session_id"), user=stated("user"),
        name=stated("name"), release=stated("release"), prompt=stated("prompt"), model=stated("model"),
        rubric_version=row["rubric_version"], trace_id=row["key"] or "",
        metrics=dict(_metrics(_object(row["record"]), wanted)) if "record" in row else NO_METRICS,
    )  # fmt: skip


def _metrics(record: JsonRecord, wanted: ComparedFilter) -> Iterator[tuple[str, tuple[float, bool]]]:
    scores = record.get("scores")
    for score in scores if isinstance(scores, list) else ():
        if not isinstance(score, dict) or not isinstance(metric := score.get("metric"), str):
            continue
        value = score.get("value")
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if wanted.all_metrics or metric == wanted.metric:
            yield metric, (float(value), score.get("rating") in FAILING)


def _object(text: str | None) -> JsonRecord:
    try:
        found = json.loads(text or "null")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _inner(record: JsonRecord, name: str) -> JsonRecord:
    found = record.get(name)
    return found if isinstance(found, dict) else {}

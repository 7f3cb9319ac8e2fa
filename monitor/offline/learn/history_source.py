"""Runs of a history of Parquet files: names of their calls, as a store has them once it has let go of their spans."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.integrations.history.reading import history_records
from sidejudge.scoring.rubrics import run_health
from sidejudge.scoring.verdict.trace_document import TraceDocument

from .store_source import MOST, StoredRun, named_run


def history_runs(path: str) -> Iterator[StoredRun]:
    """The runs that ended last, each by its last revision. Raises ``HistoryError``."""
    latest: dict[str, TraceDocument] = {}
    for outcome in history_records(path, "outcomes"):
        trace_id = str(outcome["trace_id"])
        former = latest.pop(trace_id, None)
        latest[trace_id] = outcome if former is None or former["revision"] <= outcome["revision"] else former
        if len(latest) > MOST:
            del latest[next(iter(latest))]
    passed: dict[str, tuple[int, bool | None]] = {}
    for verdict in history_records(path, "verdicts"):
        trace_id, revision = str(verdict["trace_id"]), int(verdict["revision"])
        if verdict["rubric"] == run_health.RUBRIC.id and trace_id in latest:
            passed[trace_id] = max(passed.get(trace_id, (0, None)), (revision, verdict["passed"]), key=_revision)
    for trace_id, outcome in latest.items():
        case = named_run(trace_id, outcome)
        if case is not None:
            yield StoredRun(case=case, passed=passed.get(trace_id, (0, None))[1], names_only=True)


def _revision(found: tuple[int, bool | None]) -> int:
    return found[0]

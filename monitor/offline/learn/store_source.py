"""Runs in a monitor's store, whether it runs or not: whole ones while their spans are held, else names of their calls.

A store lets go of spans once late ones can no longer come, and keeps what became of each trace as long as
``store.retention``: the names of its tools in order, its agents, tokens and verdicts. So order and number of calls are
learned from all of it, arguments from what is held.

Runs of a history of Parquet files: names of their calls, as a store has them once it has let go of their spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.history.reading import history_records
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.store.archive import read_chunks, read_traces
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.rubrics import run_health
from sidejudge.scoring.trace.span import ToolCall
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.verdict.documents import TraceDocument

MOST: Final = 10_000
"""Traces that are read at most, the latest."""
_SQLITE: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run of a store. ``passed`` is its verdict by run_health, or None; ``names_only``: its spans are gone."""

    case: Case
    passed: bool | None
    names_only: bool


def is_store(path: Path) -> bool:
    """Whether a file is a store, by how it begins."""
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def stored_runs(path: Path) -> Iterator[StoredRun]:
    """The runs that ended last. Raises ``StoreUnavailable``."""
    ended = read_traces(path, reason=None, service=None, limit=MOST)
    wanted = {str(each["trace_id"]) for each in ended}
    held = {trace_id: payloads for found, payloads in read_chunks(path, MOST) if (trace_id := found.hex()) in wanted}
    for each in reversed(ended):
        trace_id = str(each["trace_id"])
        case = _whole(trace_id, held.pop(trace_id, [])) or named_run(trace_id, each)
        if case is not None:
            yield StoredRun(case=case, passed=_passed(each), names_only=case.trace is None)


def _whole(trace_id: str, payloads: list[bytes]) -> Case | None:
    spans = [normalise(raw) for raw in decode_kept(payloads).spans]
    return extract(Trace.of(trace_id, spans, "batch")) if spans else None


def named_run(trace_id: str, details: TraceDocument) -> Case | None:
    """The case of a trace of which only the details are known; None where they name no calls."""
    calls = details.get("calls")
    if not isinstance(calls, list):
        return None
    tokens = (details.get("effort") or {}).get("tokens")
    return Case(
        case_id=trace_id,
        model_output=None,
        name=details.get("name"),
        service=details.get("service"),
        environment=details.get("environment"),
        tools_used=tuple(ToolCall(name=str(name)) for name in calls),
        agents_called=tuple(map(str, details.get("agents_called") or ())),
        input_tokens=None if tokens is None else int(tokens),
        output_tokens=None if tokens is None else 0,
    )


def _passed(details: TraceDocument) -> bool | None:
    verdicts = [verdict for verdict in details["verdicts"] if verdict["rubric"] == run_health.RUBRIC.id]
    return verdicts[0]["passed"] if verdicts else None


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

"""Observation: a window's record of one verdict, and the key of its window.

Figures of the application as windows hold them: latency, tokens and cost of each trace that was evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.evaluate.stages import FIGURES
from sidejudge.scoring.result.result import Failed, Scored, is_of_outage
from sidejudge.scoring.status.metric_status import APPLICATION
from sidejudge.scoring.status.service_status import UNKNOWN_ENVIRONMENT, UNKNOWN_SERVICE
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.verdict.documents import TraceDocument, failed_reasons
from sidejudge.scoring.verdict.escalation import Escalation
from sidejudge.scoring.verdict.verdict import Selection, Verdict

_PASSED: Final = {True: True, False: False, None: None}
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Key(NamedTuple):
    """The key of a window."""

    service: str
    environment: str
    rubric: str

    @classmethod
    def of(cls, service: object, environment: object, rubric: object) -> Key:
        """The key of a verdict or a figure, whose trace may name no service and no environment."""
        return cls(str(service or UNKNOWN_SERVICE), str(environment or UNKNOWN_ENVIRONMENT), str(rubric))


@record(frozen=True, slots=True, kw_only=True)
class Observation:
    """One verdict in a window.

    ``identity`` is the trace's id (the case's, without a trace); with the rubric it identifies what a revision
    replaces. ``passed`` None (incomplete) stays out of the pass ratio; ``judge_failed``: a metric that was tried and
    failed is why, ``unasked``: because an outage kept it from being asked in time. ``weight`` is the inverse of the
    inclusion probability. ``cluster`` names its group, such as its session; None: it stands alone. ``blockers`` are the
    metrics that blocked. ``composite`` is normalised to [0, 1]; ``metrics`` holds the scored values, in their units.
    ``cascade`` is its way through a cascade of judges, None without one. ``slices`` are the trace's values of
    ``alerts.slices``.
    """

    identity: str
    at_ns: int
    passed: bool | None
    weight: float = 1.0
    selection: Selection = "random"
    revision: int = 1
    composite: float | None = None
    judge_failed: bool = False
    unasked: bool = False
    blockers: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    cascade: Escalation | None = None
    cluster: str | None = None
    slices: Mapping[str, str] = field(default_factory=dict)


class SliceFirst(NamedTuple):
    """A verdict in its first version, in one of its slices: the dimension and its value there."""

    by: str
    value: str
    passed: bool
    weight: float


class First(NamedTuple):
    """A verdict in its first version. ``kept``: whether the run keeps to its scenario, None if unchecked."""

    passed: bool
    weight: float
    kept: bool | None
    cluster: str | None


def observe(
    verdict: Verdict, place_ns: int | None = None, cluster: str | None = None, slices: Mapping[str, str] | None = None
) -> tuple[Key, Observation]:
    """The observation of a verdict; ``place_ns``: its time, where it replaces an earlier one."""
    key = Key.of(verdict.service, verdict.environment, verdict.rubric)
    failed = []
    if verdict.passed is None:
        failed = [s.result.reason for s in verdict.scores if isinstance(s.result, Failed) and s.weight]
    return key, Observation(
        identity=verdict.trace_id or verdict.case_id,
        at_ns=_nanoseconds(verdict.created_at) if place_ns is None else place_ns,
        passed=verdict.passed,
        weight=1.0 / verdict.sampling_probability,
        selection=verdict.selection,
        revision=verdict.revision,
        composite=verdict.composite_norm,
        blockers=verdict.blockers,
        judge_failed=bool(failed),
        unasked=any(map(is_of_outage, failed)),
        metrics={s.metric: float(s.result.value) for s in verdict.scores if isinstance(s.result, Scored)},
        cascade=verdict.cascade,
        cluster=cluster,
        slices=slices or {},
    )


def observe_stored(verdict: Mapping[str, object]) -> tuple[Key, Observation]:
    """The same for a verdict as the store returns it: windows are filled with them after a restart."""
    key = Key.of(verdict["service"], verdict["environment"], verdict["rubric"])
    scores: list[Mapping[str, object]] = verdict["scores"]  # type: ignore[assignment]  # a list by the verdict's format
    failed = failed_reasons(verdict)
    return key, Observation(
        identity=str(verdict["trace_id"] or verdict["case_id"]),
        at_ns=min(_nanoseconds(str(verdict["created_at"])), int(verdict.get("closed_ns", 1 << 63))),  # type: ignore[call-overload]  # a time
        passed=_PASSED[verdict["passed"]],  # type: ignore[index]  # bool or None by the verdict's format
        weight=1.0 / float(verdict["sampling_probability"]),  # type: ignore[arg-type]  # a number in (0, 1]
        selection="forced" if verdict.get("selection") == "forced" else "random",
        revision=int(verdict.get("revision", 1)),  # type: ignore[call-overload]  # a whole number
        composite=None if (norm := verdict["composite_norm"]) is None else float(norm),  # type: ignore[arg-type]  # a number
        blockers=tuple(map(str, verdict.get("blockers") or ())),  # type: ignore[call-overload]  # a list by the verdict's format
        judge_failed=bool(failed),
        unasked=any(map(is_of_outage, failed)),
        metrics={
            str(score["metric"]): float(score["value"])  # type: ignore[arg-type]  # scored: a number
            for score in scores
            if score["status"] == Scored.status
        },
        cascade=Escalation.from_json(cascade) if isinstance(cascade := verdict.get("cascade"), Mapping) else None,
        cluster=None if (cluster := verdict.get("cluster", verdict.get("session_id"))) is None else str(cluster),
        slices=slices if isinstance(slices := verdict.get("slices"), Mapping) else {},
    )


@lru_cache(maxsize=16)  # all verdicts on a trace are of one moment
def _nanoseconds(created_at: str) -> int:
    since = datetime.fromisoformat(created_at) - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def observe_figures(result: TraceResult) -> tuple[Key, Observation] | None:
    """The figures of a result; None where it has none. A revision takes the place of the earlier one."""
    at_ns = result.ended_ns if result.place_ns is None else result.place_ns
    return _observed(result.trace_id.hex(), result.service, result.details, at_ns, result.revision)


def observe_stored_figures(row: tuple[str, str | None, TraceDocument, int, int]) -> tuple[Key, Observation] | None:
    """The same for a result as the store returns it: windows are filled with them after a restart."""
    return _observed(*row)


def _observed(
    trace_id: str, service: str | None, details: TraceDocument, at_ns: int, revision: int
) -> tuple[Key, Observation] | None:
    figures, sampling = details.get(FIGURES), details.get("sampling", {})
    probability = sampling.get("probability")
    if figures is None or not probability:
        return None
    cluster = details.get("cluster")
    key = Key.of(service, details.get("environment"), APPLICATION)
    return key, Observation(
        identity=trace_id, at_ns=at_ns, passed=True, weight=1.0 / float(probability),
        selection="forced" if sampling.get("selection") == "forced" else "random", revision=revision,
        metrics={str(name): float(value) for name, value in figures["values"].items()},
        cluster=None if cluster is None else str(cluster),
    )  # fmt: skip

"""Figures of the application as windows hold them: latency, tokens and cost of each trace that was evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.evaluate.stages import FIGURES
from sidejudge.scoring.status.metric_limit import APPLICATION
from sidejudge.scoring.status.service_status import UNKNOWN_ENVIRONMENT, UNKNOWN_SERVICE
from sidejudge.scoring.verdict.trace_document import TraceDocument

from .observation import Key, Observation


def observe_figures(result: TraceResult) -> tuple[Key, Observation] | None:
    """The figures of a result; None where it has none. A revision takes the place of the earlier one."""
    at_ns = result.ended_ns if result.place_ns is None else result.place_ns
    return _observed(result.trace_id.hex(), result.service, result.details, at_ns, result.revision)


def observe_stored_figures(
    stored: Iterable[tuple[str, str | None, TraceDocument, int, int]],
) -> Iterator[tuple[Key, Observation]]:
    """The same for results as the store returns them: windows are filled with them after a restart."""
    for row in stored:
        if (seen := _observed(*row)) is not None:
            yield seen


def _observed(
    trace_id: str, service: str | None, details: TraceDocument, at_ns: int, revision: int
) -> tuple[Key, Observation] | None:
    figures, sampling = details.get(FIGURES), details.get("sampling", {})
    probability = sampling.get("probability")
    if figures is None or not probability:
        return None
    cluster = details.get("cluster")
    key = Key(service or UNKNOWN_SERVICE, details.get("environment") or UNKNOWN_ENVIRONMENT, APPLICATION)
    return key, Observation(
        identity=trace_id, at_ns=at_ns, passed=True, weight=1.0 / float(probability),
        selection="forced" if sampling.get("selection") == "forced" else "random", revision=revision,
        metrics={str(name): float(value) for name, value in figures["values"].items()},
        cluster=None if cluster is None else str(cluster),
    )  # fmt: skip

"""Pull metrics: reading traces from Langfuse, as Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from scoring.status.pull_snapshot import PullSnapshot

from . import families as f
from .collect import MetricValues
from .judge_metrics import Series


class PullMetrics:
    """Counters that follow what a standing says since the start. ``reasons`` are all that an error may have."""

    def __init__(self, counted: MetricValues, reasons: Iterable[str]) -> None:
        self._counted = counted
        self._told: Counter[tuple[f.Family, str]] = Counter()
        for reason in reasons:
            counted.counter(f.PULL_ERRORS, reason)

    def follow(self, standing: PullSnapshot) -> None:
        """Bring the counters up to date."""
        self._follow(f.PULL_ROWS, standing.rows)
        self._follow(f.PULL_TRACES, standing.taken)
        for reason, total in standing.errors:
            self._follow(f.PULL_ERRORS, total, reason)

    def _follow(self, family: f.Family, total: int, *labels: str) -> None:
        key = (family, "".join(labels))
        self._counted.counter(family, *labels).inc(total - self._told[key])
        self._told[key] = total


def pull_gauges(standing: PullSnapshot) -> Iterator[Series]:
    """The gauges of one moment."""
    if standing.lag_s is not None:
        yield f.PULL_LAG, (), standing.lag_s
    if standing.read_s is not None:
        yield f.PULL_LAST_SUCCESS, (), standing.read_s

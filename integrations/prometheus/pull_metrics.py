"""Pull metrics: reading traces from Langfuse, as Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from scoring.status.pull_snapshot import PullSnapshot

from . import families as f
from .collect import MetricValues
from .judge_metrics import Series


class PullMetrics:
    """Counters that follow a snapshot's totals since the start. ``reasons`` are all that an error may have."""

    def __init__(self, counted: MetricValues, reasons: Iterable[str]) -> None:
        self._counted = counted
        self._counted_before: Counter[tuple[f.Family, str]] = Counter()
        for reason in reasons:
            counted.counter(f.PULL_ERRORS, reason)

    def follow(self, snapshot: PullSnapshot) -> None:
        """Bring the counters up to date."""
        self._follow(f.PULL_ROWS, snapshot.rows)
        self._follow(f.PULL_TRACES, snapshot.taken)
        for reason, total in snapshot.errors:
            self._follow(f.PULL_ERRORS, total, reason)

    def _follow(self, family: f.Family, total: int, *labels: str) -> None:
        key = (family, "".join(labels))
        self._counted.counter(family, *labels).inc(total - self._counted_before[key])
        self._counted_before[key] = total


def pull_gauges(snapshot: PullSnapshot) -> Iterator[Series]:
    """The gauges of one moment."""
    if snapshot.lag_s is not None:
        yield f.PULL_LAG, (), snapshot.lag_s
    if snapshot.read_s is not None:
        yield f.PULL_LAST_SUCCESS, (), snapshot.read_s

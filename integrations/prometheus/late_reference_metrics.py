"""Late reference metrics: verdicts whose reference changed late, as Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from scoring.status.late_reference_snapshot import LateReferenceSnapshot

from . import families as f
from .collect import MetricValues
from .judge_metrics import Series


class LateReferenceMetrics:
    """Counters that follow a snapshot's totals since the start. ``reasons`` are all that a failure may have."""

    def __init__(self, counted: MetricValues, reasons: Iterable[str]) -> None:
        self._counted = counted
        self._counted_before: Counter[tuple[f.Family, str]] = Counter()
        known = tuple(reasons)
        for family, labels in ((f.BELATED, ("revised", "unchanged") if known else ()), (f.BELATED_FAILED, known)):
            for label in labels:
                counted.counter(family, label)

    def follow(self, snapshot: LateReferenceSnapshot) -> None:
        """Bring the counters up to date."""
        self._follow(f.BELATED, "revised", snapshot.revised)
        self._follow(f.BELATED, "unchanged", snapshot.unchanged)
        for reason, total in snapshot.failures:
            self._follow(f.BELATED_FAILED, reason, total)

    def _follow(self, family: f.Family, label: str, total: int) -> None:
        self._counted.counter(family, label).inc(total - self._counted_before[family, label])
        self._counted_before[family, label] = total


def late_reference_gauges(snapshot: LateReferenceSnapshot) -> Iterator[Series]:
    """The gauges of one moment."""
    yield f.BELATED_GIVEN_UP, (), float(snapshot.given_up)

"""Belated metrics: verdicts whose reference changed late, as Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from scoring.status.late_reference_snapshot import LateReferenceSnapshot

from . import families as f
from .collect import MetricValues
from .judge_metrics import Series


class LateReferenceMetrics:
    """Counters that follow what a standing says since the start. ``reasons`` are all that a failure may have."""

    def __init__(self, counted: MetricValues, reasons: Iterable[str]) -> None:
        self._counted = counted
        self._told: Counter[tuple[f.Family, str]] = Counter()
        known = tuple(reasons)
        for family, labels in ((f.BELATED, ("revised", "unchanged") if known else ()), (f.BELATED_FAILED, known)):
            for label in labels:
                counted.counter(family, label)

    def follow(self, standing: LateReferenceSnapshot) -> None:
        """Bring the counters up to date."""
        self._follow(f.BELATED, "revised", standing.revised)
        self._follow(f.BELATED, "unchanged", standing.unchanged)
        for reason, total in standing.failures:
            self._follow(f.BELATED_FAILED, reason, total)

    def _follow(self, family: f.Family, label: str, total: int) -> None:
        self._counted.counter(family, label).inc(total - self._told[family, label])
        self._told[family, label] = total


def belated_gauges(standing: LateReferenceSnapshot) -> Iterator[Series]:
    """The gauges of one moment."""
    yield f.BELATED_GIVEN_UP, (), float(standing.given_up)

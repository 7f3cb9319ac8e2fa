"""Continuous metrics with limits: counters that PromQL makes the same shares of, and the gauges of the last look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sidejudge.scoring.status.metric_limit import MetricLimit
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.status.status import Status

from . import families as f
from .collect import MetricValues, Series


class LimitMetrics:
    """Counts, for each limit, how far the values of all traffic keep to it."""

    def __init__(
        self, counted: MetricValues, limits: Sequence[MetricLimit],
        bounded: Callable[[str | None, str | None], tuple[str, str]],
    ) -> None:  # fmt: skip
        self._counter, self._limits, self._bounded = counted.counter, limits, bounded

    def zeros(self, service: str, environment: str) -> None:
        """Let the counters of a place that is new begin at 0."""
        for limit in self._limits:
            if limit.concerns(service):
                who = (service, environment, limit.rubric, limit.name)
                self._counter(f.LIMITED_WEIGHT, *who)
                self._counter(f.LIMITED_WEIGHT_SQUARED, *who)
                for level, _ in limit.levels:
                    self._counter(f.LIMITED_KEPT_WEIGHT, *who, level)

    def values(
        self, service: str | None, environment: str | None, rubric: str, values: Mapping[str, float], weight: float
    ) -> None:
        """Count the values of a first verdict, or of a trace's figures (``rubric`` is then empty)."""
        for limit in self._limits:
            value = values.get(limit.measure)
            if value is None or limit.rubric != rubric or not limit.concerns(service or ""):
                continue
            who = (*self._bounded(service, environment), rubric, limit.name)
            self._counter(f.LIMITED_WEIGHT, *who).inc(weight)
            self._counter(f.LIMITED_WEIGHT_SQUARED, *who).inc(weight * weight)
            for level, bound in limit.levels:
                self._counter(f.LIMITED_KEPT_WEIGHT, *who, level).inc(weight * limit.kept(value, bound))


def limit_gauges(
    statuses: Iterable[MetricStatus], limits: Iterable[MetricLimit],
    bounded: Callable[[str | None, str | None], tuple[str, str]],
) -> Iterator[Series]:  # fmt: skip
    """The statuses of the last look, and the limits in force."""
    for limit in limits:
        for level, bound in limit.levels:
            yield f.LIMITED_LIMIT, (limit.rubric, limit.name, level), bound
            yield f.LIMITED_THRESHOLD, (limit.rubric, limit.name, level), limit.threshold(bound)
    shown: set[tuple[str, ...]] = set()
    for each in statuses:
        where = bounded(each.service, each.environment)
        who = (*where, each.limit.rubric, each.limit.name)
        if who in shown or (OTHER in where and OTHER not in (each.service, each.environment)):
            continue  # of several that share the label values of the rest, no one's value is that of the rest
        shown.add(who)
        for status in (each for each in Status if each is not Status.NO_DATA):
            yield f.LIMITED_STATUS, (*who, status.value), float(status is each.appraisal.status)
        if each.estimate is not None:
            yield f.LIMITED_VALUE, who, each.estimate.value
            yield f.LIMITED_EFFECTIVE, who, each.estimate.effective_n
            if each.estimate.lower is not None:
                yield f.LIMITED_LOWER, who, each.estimate.lower
            if each.estimate.upper is not None:
                yield f.LIMITED_UPPER, who, each.estimate.upper

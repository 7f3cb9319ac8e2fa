"""Collect: all declared families as one collector: what was counted, and the gauges of the moment of a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from sidejudge.scoring.alerts.lifecycle import Posted
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.snapshots import (
    ExportSnapshot,
    FleetSnapshot,
    JudgeSnapshot,
    LateReferenceSnapshot,
    PullSnapshot,
)

from .families import Family

Series: TypeAlias = tuple[Family, tuple[str, ...], float]
"""A family, the label values of one of its series, and its value."""
_Named: TypeAlias = tuple[Family, tuple[str, ...]]
"""A series: its family and its label values."""


def known(labels: tuple[str, ...], *values: tuple[Family, float | None]) -> Iterator[Series]:
    """One series with these labels of each family whose value is known."""
    return ((family, labels, value) for family, value in values if value is not None)


Sampled: TypeAlias = Mapping[Family, Sequence[tuple[Sequence[str], float]]]
"""Gauges of one moment: for a family, label values and value of each of its series."""


class MetricValues:
    """The counters, histograms and set gauges of these families, each a metric of the Prometheus client.

    Args:
        families: All that there may be.
        bounds: Bounds of histograms in place of those that they declare.
        added_up: The label values that a series is counted under; without it its own.
    """

    def __init__(
        self,
        families: Iterable[Family],
        *,
        bounds: Mapping[Family, tuple[float, ...]] | None = None,
        added_up: Callable[[Family, tuple[str, ...]], tuple[str, ...]] | None = None,
    ) -> None:
        self._added_up = added_up
        self._counters: dict[Family, Counter] = {}
        self._gauges: dict[Family, Gauge] = {}
        self._histograms: dict[Family, Histogram] = {}
        # A series that was used before: the client takes 2 µs to find it, by locks and copies of its label values.
        self._counter_series: dict[_Named, Counter] = {}
        self._histogram_series: dict[_Named, Histogram] = {}
        self._followed: dict[_Named, float] = {}
        for family in families:
            name, text, labels = family.name, family.help, family.labels
            if family.kind == "histogram":
                self._histograms[family] = Histogram(
                    name, text, labels, buckets=(bounds or {}).get(family, family.buckets), registry=None
                )
            elif family.kind == "counter":
                self._counters[family] = Counter(name, text, labels, registry=None)
            else:
                self._gauges[family] = Gauge(name, text, labels, registry=None)

    def __contains__(self, family: Family) -> bool:
        return family in self._counters or family in self._gauges or family in self._histograms

    def counter(self, family: Family, *labels: str) -> Counter:
        """The series of a counter with these label values; it appears as 0 when it is first used."""
        named = family, labels
        if (series := self._counter_series.get(named)) is None:
            made = self._counters[family]
            series = self._counter_series[named] = made.labels(*self._shown(family, labels)) if labels else made
        return series

    def zeros(self, *series: tuple[Family, *tuple[Iterable[str], ...]]) -> None:
        """Let counters begin at 0: of each family every series with these values of its labels."""
        for family, *values in series:
            for labels in product(*values):
                self.counter(family, *labels)

    def follow(self, totals: Iterable[Series]) -> None:
        """Bring counters up to totals that somebody else counts since the start."""
        for family, labels, total in totals:
            key = family, labels
            self.counter(family, *labels).inc(total - self._followed.get(key, 0))
            self._followed[key] = total

    def remove(self, family: Family, *labels: str) -> None:
        """A series of a counter ends, where there is one."""
        self._counter_series.pop((family, labels), None)
        self._counters[family].remove(*labels)

    def histogram(self, family: Family, *labels: str) -> Histogram:
        """The series of a histogram with these label values."""
        named = family, labels
        if (series := self._histogram_series.get(named)) is None:
            made = self._histograms[family]
            series = self._histogram_series[named] = made.labels(*self._shown(family, labels)) if labels else made
        return series

    def _shown(self, family: Family, labels: tuple[str, ...]) -> tuple[str, ...]:
        return labels if self._added_up is None else self._added_up(family, labels)

    def gauge(self, family: Family, *labels: str) -> Gauge:
        """The series of a gauge that is set now and then."""
        return self._gauges[family].labels(*labels) if labels else self._gauges[family]

    def metric(self, family: Family) -> Metric:
        """A family with all of its series, except the ``_created`` ones."""
        made = self._counters.get(family) or self._gauges.get(family) or self._histograms[family]
        (found,) = made.collect()
        found.samples = [sample for sample in found.samples if not sample.name.endswith("_created")]
        return found


@dataclass(slots=True, eq=False)
class Families(Collector):
    """All families as one collector.

    ``gather`` is called at each scrape and takes what belongs to the moment; what it returns makes the gauges of it,
    in whatever thread the scrape is written.
    """

    order: Sequence[Family]
    counted: MetricValues
    infos: Mapping[Family, Mapping[str, str]]
    gather: Callable[[], Callable[[], Sampled]]

    def describe(self) -> Iterable[Metric]:
        """Names and types: what a registry needs to refuse a doubled name."""
        for family in self.order:
            yield MetricValues([family]).metric(family) if family in self.counted else self._shown(family, {})

    def collect(self) -> Iterator[Metric]:
        return self.of(self.gather())

    def at_once(self, made: Callable[[], Sampled] | None = None) -> CollectorRegistry:
        """A registry with the values of this moment, which any thread may write out; with the gauges of ``made``."""
        made, registry = made or self.gather(), CollectorRegistry()
        registry.register(_Moment(lambda: self.of(made)))
        return registry

    def of(self, made: Callable[[], Sampled]) -> Iterator[Metric]:
        """All families, with these gauges."""
        sampled = made()
        for family in self.order:
            yield self.counted.metric(family) if family in self.counted else self._shown(family, sampled)

    def _shown(self, family: Family, sampled: Sampled) -> Metric:
        if family in self.infos:
            info = InfoMetricFamily(family.name.removesuffix("_info"), family.help)
            info.add_metric((), dict(self.infos[family]))
            return info
        gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
        for values, value in sampled.get(family, ()):
            gauge.add_metric(values, value)
        return gauge


class _Moment(Collector):
    """A collector that describes nothing before it is read."""

    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self._collect = collect

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        return self._collect()


CONNECTION_STATES = ("starting", "ok", "waiting", "retrying", "stopped")
"""States of a connection, as the snapshots of exports and of the source name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSize:
    """What waits: how many items, and since when the oldest does (seconds since the epoch, ``None`` when none does)."""

    items: int
    oldest_s: float | None = None

    @classmethod
    def since(cls, items: int, oldest_ns: int | None) -> QueueSize:
        """The same, the oldest since a time in ns."""
        return cls(items=items, oldest_s=None if oldest_ns is None else oldest_ns / 1e9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The gauges of one moment. It is made at every scrape and must be quick: no query, no file."""

    services: Iterable[ServiceStatus] = ()
    unanswered: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """How many traces stand for those without an answer here, by service, environment and rubric."""
    behind: Mapping[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)
    """The same of those behind a slow judge, and how many of them pass if they are like what it answered."""
    traces_open: int = 0
    sampling_rate: float | None = None
    load_share: float = 1.0
    behind_s: float = 0.0
    queues: Mapping[str, QueueSize] = field(default_factory=dict)
    spool_bytes: int | None = None
    forward_buffer_bytes: int | None = None
    contents_bytes: int | None = None
    judge: JudgeSnapshot | None = None
    exports: Iterable[ExportSnapshot] = ()
    connections: Mapping[str, str] = field(default_factory=dict)
    pull: PullSnapshot | None = None
    fleet: FleetSnapshot | None = None
    late_references: LateReferenceSnapshot | None = None
    anomalies: Mapping[str, bool] = field(default_factory=dict)
    alerts: Sequence[Posted] = ()
    agreement: AgreementSnapshot | None = None
    failures: Sequence[FailureGroup] = ()
    metrics: Sequence[MetricStatus] = ()

"""Collect: the library's collectors, built from the declarations, behind one collector of our own.

The library adds a ``_created`` sample to every counter and histogram unless a process-wide switch is thrown. Kept out
of any registry and passed on without those samples, its collectors stay as they are and so does the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from .families import Family

Instrument: TypeAlias = Counter | Gauge | Histogram
Sampled: TypeAlias = Mapping[Family, Sequence[tuple[Sequence[str], float]]]
"""Gauges of one moment: for a family, label values and value of each of its series."""


def instrument(family: Family) -> Instrument:
    """The library's collector for a family that is counted as things happen."""
    if family.kind == "counter":
        return Counter(family.name, family.help, family.labels, registry=None)
    if family.kind == "histogram":
        return Histogram(family.name, family.help, family.labels, buckets=family.buckets, registry=None)
    return Gauge(family.name, family.help, family.labels, registry=None)


class Families(Collector):
    """All families as one collector: ``instruments`` hold what was counted, ``sample`` is asked at each scrape."""

    def __init__(
        self,
        order: Sequence[Family],
        instruments: Mapping[Family, Instrument],
        infos: Mapping[Family, Mapping[str, str]],
        sample: Callable[[], Sampled],
    ) -> None:
        self._order, self._instruments, self._infos, self._sample = order, instruments, infos, sample

    def describe(self) -> Iterable[Metric]:
        """Names and types without samples: what a registry needs to refuse a doubled name."""
        for family in self._order:
            if family in self._instruments:
                yield from self._instruments[family].describe()
            else:
                yield self._gauge(family, ())

    def collect(self) -> Iterator[Metric]:
        sampled = self._sample()
        for family in self._order:
            if family in self._instruments:
                for metric in self._instruments[family].collect():
                    metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
                    yield metric
            elif family in self._infos:
                info = InfoMetricFamily(family.name.removesuffix("_info"), family.help)
                info.add_metric((), dict(self._infos[family]))
                yield info
            else:
                yield self._gauge(family, sampled.get(family, ()))

    @staticmethod
    def _gauge(family: Family, series: Iterable[tuple[Sequence[str], float]]) -> Metric:
        gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
        for values, value in series:
            gauge.add_metric(values, value)
        return gauge

"""Collect: everything that is declared as one collector: what was counted, and what is asked for at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from .counted import MetricValues
from .families import Family

Sampled: TypeAlias = Mapping[Family, Sequence[tuple[Sequence[str], float]]]
"""Gauges of one moment: for a family, label values and value of each of its series."""


class Families(Collector):
    """All families as one collector; ``sample`` is asked at each scrape."""

    def __init__(
        self,
        order: Sequence[Family],
        counted: MetricValues,
        infos: Mapping[Family, Mapping[str, str]],
        sample: Callable[[], Sampled],
    ) -> None:
        self._order, self._counted, self._infos, self._sample = order, counted, infos, sample

    def describe(self) -> Iterable[Metric]:
        """Names and types: what a registry needs to refuse a doubled name."""
        for family in self._order:
            yield MetricValues([family]).metric(family)

    def collect(self) -> Iterator[Metric]:
        sampled = self._sample()
        for family in self._order:
            if family in self._counted:
                yield self._counted.metric(family)
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

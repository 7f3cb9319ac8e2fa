"""Counted: what moves as things happen, held until a scrape asks for it.

The library's own counters and histograms are made for threads and for several processes: each move takes a lock and
several times as long as adding up does, and a trace moves a dozen. These here live on the event loop alone. How they
are shown at a scrape is the library's again.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import inf

from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from .families import Family


class CounterValue:
    """One series of a counter, or of a gauge that is set now and then."""

    __slots__ = ("exemplar", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.exemplar: Exemplar | None = None

    def inc(self, amount: float = 1.0, exemplar: Mapping[str, str] | None = None) -> None:
        """Add to it; ``exemplar`` names who did. ``ValueError`` for less than nothing: a counter never goes down."""
        if amount < 0:
            raise ValueError(f"a counter goes up, got {amount!r}")
        self.value += amount
        if exemplar is not None:
            self.exemplar = Exemplar(dict(exemplar), amount, time.time())


class HistogramValue:
    """One series of a histogram: how many values fell between which bounds, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Take in a value; one that equals a bound lies below it."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class MetricValues:
    """The series of these families. One without labels is there from the start, the others when they are first met."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._numbers: dict[Family, dict[tuple[str, ...], CounterValue]] = {}
        self._spreads: dict[Family, dict[tuple[str, ...], HistogramValue]] = {}
        for family in families:
            if family.kind == "histogram":
                self._spreads[family] = {} if family.labels else {(): HistogramValue(family.buckets)}
            else:
                self._numbers[family] = {} if family.labels else {(): CounterValue()}

    def __contains__(self, family: Family) -> bool:
        return family in self._numbers or family in self._spreads

    def number(self, family: Family, *labels: str) -> CounterValue:
        """The series of a counter or gauge with these label values."""
        series = self._numbers[family]
        found = series.get(labels)
        if found is None:
            found = series[_fitting(family, labels)] = CounterValue()
        return found

    def spread(self, family: Family, *labels: str) -> HistogramValue:
        """The series of a histogram with these label values."""
        series = self._spreads[family]
        found = series.get(labels)
        if found is None:
            found = series[_fitting(family, labels)] = HistogramValue(family.buckets)
        return found

    def metric(self, family: Family) -> Metric:
        """A family as the library shows it, with all of its series."""
        if family.kind == "histogram":
            histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
            names = [floatToGoString(bound) for bound in (*family.buckets, inf)]  # type: ignore[no-untyped-call]  # the library's
            for labels, spread in self._spreads[family].items():
                histogram.add_metric(labels, list(zip(names, accumulate(spread.counts), strict=True)), spread.sum)
            return histogram
        if family.kind == "counter":
            counter = CounterMetricFamily(family.name, family.help, labels=family.labels)
            for labels, number in self._numbers[family].items():
                counter.add_metric(labels, number.value, exemplar=number.exemplar)
            return counter
        gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
        for labels, number in self._numbers[family].items():
            gauge.add_metric(labels, number.value)
        return gauge


def _fitting(family: Family, labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(labels) != len(family.labels):
        raise ValueError(f"{family.name} has the labels {family.labels}, got {labels}")
    return labels

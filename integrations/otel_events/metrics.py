"""Metrics: what the monitor exposes to Prometheus as one OTLP request, by the records of OpenTelemetry's SDK.

Values are cumulative since the process began. Bounds of histograms are Prometheus' own; their counts are no longer sums
over the lower buckets.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Iterator, Mapping

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric as PrometheusMetric
from prometheus_client.samples import Sample

from sidejudge.scoring.trace.loop_guard import OWN_SCOPE, OWN_SERVICE

_CUMULATIVE = AggregationTemporality.CUMULATIVE


def metrics_request(
    families: Iterable[PrometheusMetric],
    *,
    version: str,
    instance: str,
    attributes: Mapping[str, str],
    began_ns: int,
    now_ns: int,
) -> bytes:
    """The families as a compressed request.

    Args:
        families: Families with their samples.
        version: The monitor's version.
        instance: The name of this process, the same in all of its requests.
        attributes: Further attributes of the resource, such as the Pod.
        began_ns: When the process began to count, ns since the epoch.
        now_ns: The present.
    """
    stated = {"service.name": OWN_SERVICE, "service.version": version, "service.instance.id": instance, **attributes}
    scope = ScopeMetrics(
        scope=InstrumentationScope(OWN_SCOPE, version),
        metrics=[made for family in families if (made := _metric(family, began_ns, now_ns)) is not None],
        schema_url="",
    )
    data = MetricsData([ResourceMetrics(resource=Resource(stated), scope_metrics=[scope], schema_url="")])
    return gzip.compress(encode_metrics(data).SerializeToString(), compresslevel=5)


def _metric(family: PrometheusMetric, began_ns: int, now_ns: int) -> Metric | None:
    if family.type == "histogram":
        points = list(_distributions(family.samples, began_ns, now_ns))
        return _of(family, Histogram(points, _CUMULATIVE)) if points else None
    values = [
        NumberDataPoint(dict(sample.labels), began_ns, now_ns, sample.value)
        for sample in family.samples
        if not math.isnan(sample.value) and not sample.name.endswith("_created")
    ]
    if not values:
        return None
    counts = family.type == "counter"
    return _of(family, Sum(values, _CUMULATIVE, is_monotonic=True) if counts else Gauge(values))


def _of(family: PrometheusMetric, data: Sum | Gauge | Histogram) -> Metric:
    # Under the names that Prometheus shows, so that rules and dashboards hold for what a Collector writes there.
    name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
    return Metric(name=name, description=family.documentation, unit="", data=data)


def _distributions(samples: Iterable[Sample], began_ns: int, now_ns: int) -> Iterator[HistogramDataPoint]:
    buckets: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, {})[float(sample.labels["le"])] = sample.value
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    for labels, upper in buckets.items():
        bounds = sorted(upper)
        each = [upper[bound] - (upper[bounds[n - 1]] if n else 0.0) for n, bound in enumerate(bounds)]
        yield HistogramDataPoint(
            attributes=dict(labels), start_time_unix_nano=began_ns, time_unix_nano=now_ns,
            count=int(upper[bounds[-1]]), sum=sums.get(labels, 0.0), bucket_counts=[int(count) for count in each],
            explicit_bounds=[bound for bound in bounds if math.isfinite(bound)], min=math.nan, max=math.nan,
        )  # fmt: skip

"""Metrics pushed over OTLP are those that a scrape shows, and the last go when the process ends."""

from __future__ import annotations

import gzip

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.receiver import receiving
from tests.monitor.runtime.test_app import ANY, root
from tests.otlp_requests import request

pytest.importorskip("opentelemetry.exporter.otlp.proto.common", reason="needs the extra otel")
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


def pushed(got) -> dict[tuple, float]:
    """Every number of a request, by name and attributes; of a histogram its count and sum."""
    found = {}
    (resource,) = ExportMetricsServiceRequest.FromString(gzip.decompress(got.body)).resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "sidejudge"
    for metric in resource.scope_metrics[0].metrics:
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            labels = tuple(sorted((a.key, a.value.string_value) for a in point.attributes))
            if kind == "histogram":
                assert sum(point.bucket_counts) == point.count
                assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                found |= {(metric.name + "_count", labels): point.count, (metric.name + "_sum", labels): point.sum}
            else:
                found[metric.name, labels] = getattr(point, point.WhichOneof("value"))
    return found


async def test_the_last_values_are_pushed_when_the_process_ends(started):
    with receiving() as fake:
        app = await started(**ANY, sinks={"otel_metrics": {"endpoint": fake.url, "every": "1h"}})
        await app.post(request([root(1), root(2)]))
        await app.settled(2)
        text = (await app.http.get(app.api + "/metrics")).text
        await app.monitor.stop()
    assert [got.path for got in fake.got] == ["/v1/metrics"] * 2, "at once, and at the end"
    last = pushed(fake.got[-1])
    assert sum(value for (name, _), value in last.items() if name == "sidejudge_verdicts_total") == 2
    scraped = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }
    assert scraped.keys() == last.keys()
    moves = ("sidejudge_exports_last", "sidejudge_spool", "sidejudge_start", "sidejudge_open", "sidejudge_ready")
    assert {key for key in scraped if scraped[key] != last[key] and not key[0].startswith(moves)} == set()


async def test_a_collector_that_is_away_costs_nothing_but_a_line_in_the_log(started, caplog):
    app = await started(**ANY, sinks={"otel_metrics": {"endpoint": "http://127.0.0.1:1", "timeout": "1s"}})
    await app.post(request([root(1)]))
    assert (await app.settled(1))["ended"]["scored"] == 1
    await app.monitor.stop()
    lines = [each for each in caplog.records if getattr(each, "destination", "") == "otel_metrics"]
    assert len(lines) == 1

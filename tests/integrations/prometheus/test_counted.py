"""What is counted here is shown as the library shows what it counted itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from integrations.prometheus.counted import MetricValues
from integrations.prometheus.families import Family

COUNTER = Family(name="things_total", kind="counter", labels=("service", "reason"), help="Things.")
ALONE = Family(name="alone_total", kind="counter", help="Things without labels.")
GAUGE = Family(name="latest_seconds", kind="gauge", labels=("destination",), help="When.")
HISTOGRAM = Family(name="took_seconds", kind="histogram", labels=("model",), help="How long.", buckets=(0.1, 1.0, 2.5))
LABELS = st.sampled_from(["a", "b", 'with "quotes"'])


def shown(metric: Metric) -> tuple[object, ...]:
    samples = [
        (s.name, s.labels, s.value, s.exemplar and (s.exemplar.labels, s.exemplar.value))
        for s in metric.samples
        if not s.name.endswith("_created")
    ]
    return metric.name, metric.documentation, metric.type, samples


def one(collector: Collector) -> Metric:
    (metric,) = collector.collect()
    return metric


@given(st.lists(st.tuples(LABELS, LABELS, st.floats(0, 1e6), st.booleans())))
def test_counters_are_as_the_librarys(moves):
    counted = MetricValues([COUNTER])
    theirs = Counter(COUNTER.name, COUNTER.help, COUNTER.labels, registry=None)
    for service, reason, amount, named in moves:
        exemplar = {"trace_id": "7" * 32} if named else None
        counted.number(COUNTER, service, reason).inc(amount, exemplar)
        theirs.labels(service, reason).inc(amount, exemplar)
    assert shown(counted.metric(COUNTER)) == shown(one(theirs))


@given(st.lists(st.tuples(LABELS, st.one_of(st.sampled_from([0.1, 1.0, 2.5]), st.floats(0, 10)))))
def test_histograms_are_as_the_librarys(moves):
    counted = MetricValues([HISTOGRAM])
    theirs = Histogram(HISTOGRAM.name, HISTOGRAM.help, HISTOGRAM.labels, buckets=HISTOGRAM.buckets, registry=None)
    for model, value in moves:
        counted.spread(HISTOGRAM, model).observe(value)
        theirs.labels(model).observe(value)
    assert shown(counted.metric(HISTOGRAM)) == shown(one(theirs))


def test_gauges_are_as_the_librarys():
    counted, theirs = MetricValues([GAUGE]), Gauge(GAUGE.name, GAUGE.help, GAUGE.labels, registry=None)
    counted.number(GAUGE, "jsonl").value = 7.5
    theirs.labels("jsonl").set(7.5)
    assert shown(counted.metric(GAUGE)) == shown(one(theirs))


def test_what_has_no_labels_is_there_from_the_start():
    assert shown(MetricValues([ALONE]).metric(ALONE)) == shown(one(Counter(ALONE.name, ALONE.help, registry=None)))
    assert not MetricValues([COUNTER]).metric(COUNTER).samples


def test_a_counter_does_not_go_down_and_has_all_of_its_labels():
    counted = MetricValues([COUNTER])
    with pytest.raises(ValueError, match="goes up"):
        counted.number(COUNTER, "shop", "late").inc(-1)
    with pytest.raises(ValueError, match="has the labels"):
        counted.number(COUNTER, "shop")

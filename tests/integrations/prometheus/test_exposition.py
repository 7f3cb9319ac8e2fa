from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from sidejudge.integrations.prometheus.exposition import OPENMETRICS, TEXT, expose, restricted

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0", OPENMETRICS),
        ('Application/OpenMetrics-Text; Version="1.0.0"', OPENMETRICS),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
        ("application/openmetrics-text; version=2.0.0", TEXT),
        (
            "application/openmetrics-text;version=2.0.0;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5",
            OPENMETRICS,
        ),
        ("application/openmetrics-text;version=1.0.0;q=0", TEXT),
        ("application/openmetrics-text;q=0.1,text/plain;q=0.9", TEXT),
        ("application/openmetrics-text;q=nan", TEXT),
    ],
)
def test_the_format_is_the_best_that_is_truly_spoken(accept, content_type):
    assert expose(CollectorRegistry(), accept)[1] == content_type


@given(st.text(max_size=200))
def test_no_accept_header_breaks_it_or_makes_it_claim_version_2(accept):
    _, content_type = expose(CollectorRegistry(), accept)
    assert content_type in (TEXT, OPENMETRICS)


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text"])
@pytest.mark.parametrize(
    "names",
    [
        ["a_total"], ["a"], ["b"], ["h_bucket", "h_sum"], ["h"], ["b", "a_total", "b"], ["i_info"], ["none"],
        ["b_more"], [""], ["é"], ["a_total", "b", "h_count", "i_info"],
    ],
)  # fmt: skip
def test_the_series_of_some_names_are_those_that_the_library_leaves(accept, names):
    registry = CollectorRegistry()
    Counter("a", "A # B.", ["l"], registry=registry).labels('x y{"\n# HELP b').inc()
    Gauge("b", "b 1\nb 2", registry=registry).set(3)
    Gauge("b_more", "More.", ["l"], registry=registry).labels("b").set(4)
    Gauge("empty", "None.", ["l"], registry=registry)
    Histogram("h", "H.", registry=registry, buckets=(1, 2)).observe(1, {"trace_id": "b 1"})
    Info("i", "I.", registry=registry).info({"v": "1"})
    made = expose(registry, accept)[0]
    theirs, _ = expose(registry.restricted_registry(names), accept)  # type: ignore[arg-type]  # as its own server does
    ours = restricted(made, names)
    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())  # families of a set are in no order
    assert [line for line in made.splitlines() if line in ours.splitlines()] == ours.splitlines()

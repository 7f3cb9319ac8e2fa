from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from sidejudge.integrations.prometheus.exposition import OPENMETRICS, TEXT, expose

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

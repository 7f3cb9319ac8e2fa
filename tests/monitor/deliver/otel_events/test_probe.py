"""Trial: doctor asks the endpoint with requests that hold nothing."""

from __future__ import annotations

import pytest

from sidejudge.monitor.config.sinks import OtelEventsSink
from sidejudge.monitor.deliver.otel_events.sink import try_endpoint
from tests.fakes.receiver import Act, receiving


@pytest.fixture
def fake():
    with receiving() as server:
        yield server


def section(url: str) -> OtelEventsSink:
    return OtelEventsSink(endpoint=url)


async def test_an_endpoint_that_takes_both_is_well_and_has_been_told_nothing(fake):
    found, remedy = await try_endpoint(section(f"{fake.url}/otlp"))
    assert (found, remedy) == (f"{fake.url}/otlp takes traces and logs", "")
    assert [(got.path, got.body) for got in fake.got] == [("/otlp/v1/traces", b""), ("/otlp/v1/logs", b"")]


async def test_one_that_refuses_or_is_not_there_is_told_with_a_remedy(fake):
    fake.act = lambda number: Act(status=404) if number else Act()
    found, remedy = await try_endpoint(section(fake.url))
    assert found.startswith("/v1/logs: it answered 404")
    assert "signals: [traces]" in remedy
    fake.act = lambda _: Act(status=401, body=b"who?")
    found, remedy = await try_endpoint(section(fake.url))
    assert "authorization" in remedy
    fake.act = lambda _: Act(reset=True)
    found, remedy = await try_endpoint(section(fake.url))
    assert "the connection failed" in found
    assert "endpoint" in remedy

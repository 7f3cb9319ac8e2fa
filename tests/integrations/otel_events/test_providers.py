"""Providers of our own: the global ones stay as they are, and the environment of an application is not obeyed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from sidejudge.integrations.otel_events.providers import telemetry

SCRIPT = """
import json
from opentelemetry import _logs, trace
from sidejudge.integrations.otel_events.providers import telemetry

before = trace._TRACER_PROVIDER, _logs._internal._LOGGER_PROVIDER
made = telemetry(version="1", environment=None, clock_ns=lambda: 7)
made.tracer.start_span("one", attributes={str(n): "x" * 100 for n in range(10)}).end()
made.logger.emit(event_name="two", attributes={"a": "x" * 100})
span, event = made.spans.waiting(1)[0].body, made.events.waiting(1)[0].body
print(json.dumps([
    before == (None, None) == (trace._TRACER_PROVIDER, _logs._internal._LOGGER_PROVIDER),
    dict(span.resource.attributes), len(span.attributes), len(span.attributes["1"]),
    len(event.log_record.attributes["a"]),
]))
"""
UNRULY = {
    "OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "team=red", "OTEL_TRACES_SAMPLER": "always_off",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_ATTRIBUTE_COUNT_LIMIT": "1",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3",
    "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3", "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT": "0",
}  # fmt: skip


def test_an_applications_environment_says_nothing_to_them_and_nothing_global_is_touched():
    reported = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env={**os.environ, **UNRULY}
    )
    untouched, resource, attributes, length, of_event = json.loads(reported.stdout)
    assert untouched
    assert (resource["service.name"], resource.get("team")) == ("sidejudge", None)
    assert "deployment.environment.name" not in resource
    assert (attributes, length, of_event) == (10, 100, 100)


def test_what_is_written_is_bounded_and_marked():
    made = telemetry(version="1", environment="own", clock_ns=lambda: 7, room=2)
    span = made.tracer.start_span("one", attributes={f"k{n}": n for n in range(200)})
    span.set_attribute("long", "x" * 10_000)
    span.end()
    ended = made.spans.waiting(1)[0].body
    assert len(ended.attributes["long"]) == 2_000
    assert len(ended.attributes) == 64
    assert ended.instrumentation_scope.name == "sidejudge.judge"
    assert ended.resource.attributes["deployment.environment.name"] == "own"

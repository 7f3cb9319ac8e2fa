"""While there is no verdict the page says what came in, what became of it, and what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.dashboards.pages.status_page import next_step
from sidejudge.integrations.otlp.server.traffic import Receiving
from sidejudge.monitor.ingest.outcomes import EndReason
from tests.dashboards.pages.test_status_page import page

QUIET = Receiving(
    protocols=("http",), encrypted=False, authenticated=False, requests=0, spans=0, log_records=0, refused={}, dropped=0
)
NONE = {reason.value: 0 for reason in EndReason}


@pytest.mark.parametrize(
    ("receiving", "stated"),
    [
        (QUIET, "Nothing has come in."),
        (replace(QUIET, requests=7), "7 requests came in, none with a span."),
        (replace(QUIET, requests=7, refused={401: 5, 415: 2}), "7 requests refused (401, 415)"),
        (None, "Nothing has come in."),
    ],
)
def test_without_a_trace_it_says_how_to_send_one_or_why_none_came(receiving, stated):
    assert stated in next_step(0, 0, NONE, receiving, 4317).happened


def test_traces_that_are_open_are_waited_for():
    step = next_step(3, 3, NONE, QUIET, 4317)
    assert "3 still open" in step.happened
    assert "once it is whole" in step.advice


@pytest.mark.parametrize("reason", [reason.value for reason in EndReason if reason is not EndReason.SCORED])
def test_every_way_to_end_without_a_verdict_has_advice(reason):
    step = next_step(12, 2, NONE | {reason: 9, "scored": 1}, QUIET, 4317)
    assert f"9 ended as {reason.replace('_', ' ')}." in step.happened
    assert "The outcomes below" not in step.advice


def test_the_page_shows_it_and_links_to_what_helps():
    shown = page(receiving=QUIET, seen=4, open=0, ended=NONE | {"unavailable": 4})
    assert "4 ended as unavailable" in shown
    assert '<a href="/verdicts?passed=none">' in shown
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://THIS-HOST:4317\n" in page(receiving=QUIET, seen=0, open=0, ended=NONE)


def test_services_stand_before_everything_else():
    shown = page()
    assert shown.index('id="services"') < shown.index('id="tiles"') < shown.index('id="outcomes"')

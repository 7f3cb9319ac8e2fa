"""Failures in groups: on the page of a service, as a metric, in the report; and from a trace to a test."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import yaml
from msgspec import convert

from sidejudge.scoring.notices.wording import report_report
from sidejudge.scoring.trace.time_units import DAY_NS
from tests.monitor.api.still import SAID
from tests.monitor.api.test_pages import page
from tests.otlp_requests import LOW

SERVICE = "/services?service=shop&environment=unknown&rubric=workflow&last=1d"
WORDS = {
    "rubrics": {"words": {"metrics": [{"id": "said", "check": {"contains-all": ["Some day."]}}]}},
    "routes": [{"rubrics": ["workflow", "words"], "scenario": "any"}],
}
"""A rubric whose reason quotes contents, beside one whose reason names a tool."""


async def failed(still, **sections):
    s = still(**sections)
    for number in range(1, 4):
        await s.take(number)
        await s.judge()
    return s


async def test_the_page_of_a_service_shows_groups_of_failures_with_their_latest_traces(still):
    s = await failed(still)
    shown = (await s.get(SERVICE)).text
    card = shown.partition('id="failures"')[2].partition("</section>")[0]
    assert "Failures in groups" in card
    assert f'href="{page(3)}"' in card
    assert re.search(r'data-name="now">3<', card), card
    assert "lookup" in card, "the reason names the tool that was not called"


async def test_the_first_page_shows_the_groups_of_all_services_without_contents_where_they_are_not_shown(still):
    s = await failed(still, **WORDS)
    for caller, quotes in (("127.0.0.1", "not found: Some day."), ("10.0.0.1", "not found: …")):
        card = (await s.get("/", caller=caller)).text.partition('id="groups"')[2].partition("</section>")[0]
        assert quotes in card, caller
        assert ("Some day" in card) == (caller == "127.0.0.1")


async def test_who_may_not_see_contents_sees_groups_with_names_and_without_contents(still):
    s = await failed(still, **WORDS)
    for caller, quotes in (("127.0.0.1", "not found: Some day."), ("10.0.0.1", "not found: …")):
        for rubric, why in (("workflow", "missing: lookup"), ("words", quotes)):
            shown = (await s.get(SERVICE.replace("workflow", rubric), caller=caller)).text
            card = shown.partition('id="failures"')[2].partition("</section>")[0]
            assert re.search(r'data-name="now">3<', card), (rubric, caller)
            assert f">{why}<" in card, (rubric, caller)


async def test_a_metric_counts_the_groups_of_the_last_day_without_their_words(still):
    s = await failed(still)
    await s.monitor.failures.refresh()
    lines = [line for line in (await s.get("/metrics")).text.splitlines() if line.startswith("sidejudge_failure_group")]
    (line,) = lines
    assert re.fullmatch(r'\S+\{group="[0-9a-f]{8}",metric="tools",rubric="workflow"\} 3\.0', line)


async def test_the_daily_report_lists_the_most_frequent_failures(still):
    receiver = {"webhook": {"url": "http://127.0.0.1:1/x", "secret": "x" * 16}}
    s = await failed(still, **WORDS, alerts={"report": {"at": "08:00"}, "notify": [receiver]})
    report = await s.monitor.notifications.daily.report(s.now - DAY_NS, s.now + 1, s.now + 1)
    text = report_report(report).text
    assert "Most frequent failures:" in text
    assert "of workflow: 3 (group " in text
    assert "missing: lookup" in text
    assert "of words: 3 (group " in text
    assert "not found: …" in text, "a receiver sees names and no contents"
    assert convert(json.loads(json.dumps(asdict(report))), type(report)) == report


async def test_a_failing_trace_can_be_copied_as_a_test_by_those_who_see_contents(still):
    s = await failed(still)
    await s.take(9, tail=LOW)
    shown = (await s.get(page(1))).text
    block = shown.partition("copy as test")[2].partition('<pre tabindex="0">')[2].partition("</pre>")[0]
    (test,) = yaml.safe_load(block.replace("&#39;", "'").replace("&#34;", '"'))
    assert test["input"] == SAID["langfuse.observation.input"]
    assert test["expected"] == "(what would have been right)"
    assert "regression" in test["tags"]
    assert "copy as test" not in (await s.get(page(1), caller="10.0.0.1")).text

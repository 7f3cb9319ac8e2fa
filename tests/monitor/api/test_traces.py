"""Ended traces over the API and on their page: how each ended, and why it has no verdict."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.store import connection
from sidejudge.monitor.api.verdict_schemas import TracesBody
from tests.monitor.api.still import SAID, Still
from tests.otlp_requests import HIGH, S, request, span, trace

LLM = {**SAID, "langfuse.observation.type": "generation"}
ROUTES = [{"name": "shop", "match": {"service": "shop", "name": "order-*"}, "rubrics": ["run_health"]}]


@pytest.fixture
async def still(configured):
    s = Still(configured(routes=ROUTES, default_rubrics=[], sampling={"rate": 1.0}))
    for number, (service, name) in enumerate([("shop", "order-1"), ("shop", "refund"), ("desk", "order-2"), ("", "x")]):
        spans = [S(trace_id=trace(number), span_id=span(number + 1), name=name, attributes=LLM)]
        await s.monitor.intake.consume(request(spans, {"service.name": service}))
        await s.judge()
    yield s
    s.monitor.store.close()


async def listed(still, query="", **more):
    answer = await still.get(f"/v1/traces{query}", **more)
    assert answer.status_code == 200, answer.text
    TracesBody.model_validate(answer.json())
    return answer.json()


@pytest.mark.parametrize("path", ["/v1/traces?reason=late", "/v1/verdicts?state=incomplete", "/v1/compare?by=release"])
async def test_a_search_that_finds_little_ends_in_time_and_names_what_makes_it_shorter(still, monkeypatch, path):
    monkeypatch.setattr(connection, "_LONGEST_S", -1.0)
    monkeypatch.setattr(connection, "_INSTRUCTIONS", 1)
    answer = await still.get(path)
    assert (answer.status_code, answer.json()["remedy"]) == (503, "narrow it by time, service or rubric"), answer.text
    assert (await still.get("/traces", accept="text/html")).status_code == 503


async def test_a_trace_without_a_rubric_says_which_condition_of_each_route_failed(still):
    found = (await listed(still, "?reason=no_rubric"))["traces"]
    assert [(each["service"] or None, each["name"], each["why"]) for each in found] == [
        (None, "x", "shop: name: order-*, service: shop does not hold"),
        ("desk", "order-2", "shop: service: shop does not hold"),
        ("shop", "refund", "shop: name: order-* does not hold"),
    ]
    one = (await listed(still, "?reason=no_rubric&service=desk"))["traces"]
    assert [each["trace_id"] for each in one] == [trace(2).hex()]
    (unnamed,) = (await listed(still, "?service=unknown_service"))["traces"]
    assert unnamed["name"] == "x"
    story = (await still.get(f"/traces/{trace(2).hex()}")).text
    assert "is for others: service: shop does not hold" in story


async def test_a_scored_trace_has_its_verdicts_in_short(still):
    (found,) = (await listed(still, "?reason=scored"))["traces"]
    (verdict,) = found["verdicts"]
    assert (verdict["rubric"], verdict["state"]) == ("run_health", "valid")
    assert verdict["passed"] in (True, False)


async def test_a_trace_that_failed_says_why_and_quotes_only_where_contents_are_shown(still):
    spans = [S(trace_id=trace(20), span_id=span(1), name="order-9", attributes=LLM)]
    spans += [
        S(trace_id=trace(20), span_id=span(2), parent_id=span(1), name="find_secret",
          attributes={"langfuse.observation.type": "tool", "langfuse.observation.level": "ERROR",
                      "langfuse.observation.status_message": "secret 42"})
    ]  # fmt: skip
    await still.monitor.intake.consume(request(spans))
    await still.judge()
    mine, theirs = [
        next(each for each in (await listed(still, caller=caller))["traces"] if each["trace_id"] == trace(20).hex())
        for caller in ("127.0.0.1", "10.0.0.1")
    ]
    assert mine["verdicts"][0]["passed"] is False
    assert mine["why"].startswith("run_health: ")
    assert "find_secret" in mine["why"]
    assert "find_secret" in theirs["why"]
    assert "secret 42" not in json.dumps(theirs)
    assert theirs["why"].startswith("run_health: ")


async def test_pages_follow_each_other_without_a_gap_and_end(still):
    seen, cursor = [], ""
    while True:
        page = await listed(still, f"?limit=1{cursor}")
        seen += [each["trace_id"] for each in page["traces"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == [trace(number).hex() for number in (3, 2, 1, 0)]
    assert [each["trace_id"] for each in (await listed(still, "?since=2100-01-01T00:00:00"))["traces"]] == []


async def test_the_page_lists_them_and_the_outcomes_link_to_it(still):
    text = (await still.get("/")).text
    assert 'href="/traces?reason=no_rubric"' in text
    text = (await still.get("/traces?reason=no_rubric&service=desk")).text
    assert f'href="/traces/{trace(2, HIGH).hex()}"' in text
    assert "service: shop does not hold" in text
    assert "order-1" not in text
    assert 'href="/v1/traces?reason=no_rubric&amp;service=desk"' in text
    assert "No trace matches" in (await still.get("/traces?reason=crashed")).text


@pytest.mark.parametrize("query", ["?reason=lost", "?cursor=x", "?limit=1001", "?rubric=qa"])
async def test_what_is_asked_wrongly_is_refused_with_a_remedy(still, query):
    answer = await still.get(f"/v1/traces{query}")
    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "remedy"}


async def test_what_failed_is_named_without_what_it_quotes_to_callers_from_elsewhere(still):
    def fails(case):
        raise ValueError(case.model_output)

    still.monitor.router.route = fails
    await still.take(9, attributes=LLM)
    await still.judge()
    (mine,) = (await listed(still, "?reason=error"))["traces"]
    (theirs,) = (await listed(still, "?reason=error", caller="10.0.0.1"))["traces"]
    assert mine["why"] == "ValueError: Tomorrow."
    assert theirs["why"] == "ValueError: …"

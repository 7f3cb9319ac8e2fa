"""What a hostile operator or network does to scores under way: each arrives once, or is given up with its reason."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.store.archive import read_dead
from sidejudge.monitor.config.langfuse import LangfuseSink
from sidejudge.monitor.deliver.langfuse.sink import LangfuseScores
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, answer, only
from tests.fakes.openai import Act
from tests.langfuse_bench import score, trace

HOUR_NS = 3600 * 10**9


@pytest.fixture
def batching(bench):
    bench.fake.scores.takes_events = True
    return bench


def wanted(numbers):
    return {score(number)["id"]: 0.5 for number in numbers}


async def test_half_of_a_batch_that_is_refused_is_given_up_score_by_score_and_the_other_half_is_stored(batching):
    for number in range(40):
        await batching.end(number, score(number, "half" if number % 2 else 0.5, dataType="NUMERIC"))
    await batching.settle()
    assert batching.values() == wanted(range(0, 40, 2))
    assert {dead.trace_id for dead in read_dead(batching.store.path)} == {trace(n) for n in range(1, 40, 2)}


async def test_what_is_reported_as_taken_and_as_refused_is_taken_and_counted_once(batching):
    def both(request):
        act = batching.fake._act(request)
        if request.path != "/ingestion" or not request.body["batch"]:
            return act
        done = json.loads(act.body)["successes"]
        errors = [{"id": each["id"], "status": 400, "message": "refused"} for each in done]
        return answer({"successes": [{"id": "unknown", "status": 201}, *reversed(done), None], "errors": errors}, 207)

    batching.fake.standing_fault = both
    for number in range(10):
        await batching.end(number, score(number))
    await batching.settle()
    assert (batching.handed, batching.failed) == (10, {})
    assert batching.values() == wanted(range(10))


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("body", [{"accepted": 10, "rejected": 0, "errors": []}, {}, []], ids=str)
async def test_a_207_to_an_array_that_refuses_none_is_read_back_before_any_score_is_given_up(bench, body, count):
    bench.fake.mode = Mode.NEW

    def odd(request):
        act = bench.fake._act(request)
        return answer(body, 207) if request.path == "/scores" and request.body != [] else act

    bench.fake.standing_fault = odd
    for number in range(count):
        await bench.end(number, score(number))
    await bench.settle()
    assert bench.values() == wanted(range(count))
    assert read_dead(bench.store.path) == []
    assert bench.failed.total() == 0


async def test_keys_that_are_rotated_under_way_lose_nothing(batching):
    for number in range(100):
        await batching.end(number, score(number))
    await batching.step()
    batching.fake.standing_fault = lambda request: (
        faults.error(401, "Invalid credentials")(request) if request.path != "/health" else None
    )
    for number in range(100, 150):
        await batching.end(number, score(number))
    await batching.step(20)
    assert batching.delivery.snapshot().state == "stopped"
    assert "secret_key" in batching.delivery.snapshot().reason
    batching.fake.standing_fault = None
    await batching.settle()
    assert batching.values() == wanted(range(150))
    assert read_dead(batching.store.path) == []


async def test_a_project_that_is_another_behind_the_same_keys_is_noticed_within_the_hour(batching, caplog):
    await batching.end(1, score(1))
    await batching.settle()
    batching.fake.project = {"id": "proj-other", "name": "Other"}
    batching.fake.configs.all.clear()
    batching.now_ns += HOUR_NS
    await batching.end(2, score(2))
    await batching.settle()
    assert [server.project_id for server in batching.met] == ["proj-test", "proj-other"]
    assert batching.delivery.snapshot().project == "Other"
    assert "another project" in caplog.text
    (made,) = batching.fake.configs.all
    (second,) = [row for row in batching.fake.scores.stored() if row["traceId"] == trace(2)]
    assert second["configId"] == made["id"], "the config of the former project is not named"


async def test_a_batch_endpoint_that_goes_and_comes_back_is_used_again_within_the_hour(batching):
    batching.fake.scores.takes_events = False
    await batching.end(1, score(1))
    await batching.settle()
    assert batching.batches() == []
    batching.fake.scores.takes_events = True
    batching.now_ns += HOUR_NS
    await batching.end(2, score(2))
    await batching.settle()
    assert [len(batch) for batch in batching.batches()] == [1]
    assert batching.values() == wanted([1, 2])


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry_after": "90"}, 90),
        ({"retry_after": "Sun, 22 Nov 2026 10:01:30 GMT", "date": "Sun, 22 Nov 2026 10:00:00 GMT"}, 90),
        ({"retry_after": "Fri, 01 Jan 2100 00:00:00 GMT", "date": "Sun, 22 Nov 2026 10:00:00 GMT"}, 3600),
    ],
    ids=["seconds", "date by the server's clock", "a date far off"],
)
async def test_a_limit_is_waited_for_in_both_its_forms_whatever_our_clock_shows(batching, headers, wait_s):
    await batching.end(1, score(1))
    limit = answer({"message": "Rate limit exceeded"}, 429, **headers)
    batching.fake.fails(lambda _: limit)
    began_ns = batching.now_ns
    await batching.settle()
    waited_s = (batching.now_ns - began_ns) / 1e9
    assert wait_s <= waited_s <= wait_s + 200  # what was sent is looked for after a minute
    assert batching.values() == wanted([1])


async def test_large_comments_and_names_of_any_script_arrive_in_bodies_that_are_taken(batching):
    scores = [
        score(number, name=f"qualität_ответ_品質_{number}", comment="ü\x00\ud83d" * 33_000) for number in range(10)
    ]
    for number, each in enumerate(scores):
        await batching.end(number, each)
    await batching.settle()
    assert batching.values() == {each["id"]: 0.5 for each in scores}
    assert max(len(request.raw) for request in batching.fake.requested("POST", "/ingestion")) < 1_048_576


async def test_scores_that_a_changed_setting_leaves_out_while_they_wait_are_not_there_in_the_end(batching):
    batching.fake.standing_fault = faults.database_away()
    await batching.end(1, score(1), score(1, name="qa_metric"), score(1, name="qa_other"))
    await batching.step(3)
    await batching.end(1, score(1), revision=2)
    batching.fake.standing_fault = None
    await batching.settle()
    assert batching.values() == wanted([1])


@pytest.mark.parametrize("path", ["/ingestion", "/v3/scores"])
async def test_an_endpoint_that_answers_with_a_login_page_loses_nothing(batching, path):
    method = "POST" if path == "/ingestion" else "GET"
    await batching.end(1, score(1))
    await batching.step()
    batching.fake.standing_fault = only(method, path, faults.login_page())
    await batching.end(2, score(2))
    await batching.step(10)
    batching.fake.standing_fault = None
    await batching.settle()
    assert batching.values() == wanted([1, 2])


FIREWALLS = {
    "a page, forbidden": faults.proxy_page(403),
    "JSON, forbidden": faults.error(403, "Forbidden"),
    "a bad request": faults.proxy_page(400),
    "JSON of its own": lambda _: answer({"code": "blocked"}, 400),
    "not acceptable": faults.proxy_page(406),
    "not found": faults.proxy_page(404),
    "a page with 200": faults.login_page(),
    "a redirect": lambda _: Act(302, b"", {"location": "/blocked"}),
}


@pytest.mark.parametrize("firewall", FIREWALLS)
@pytest.mark.parametrize(("mode", "events"), [(Mode.NEW, False), (Mode.DUAL, True), (Mode.DUAL, False)])
async def test_scores_whose_contents_a_firewall_refuses_let_the_others_by_and_are_given_up(
    bench, firewall, mode, events
):
    def refuses(request):
        return FIREWALLS[firewall](request) if request.method == "POST" and b"UNION SELECT" in request.raw else None

    bench.fake.mode, bench.fake.scores.takes_events, bench.fake.standing_fault = mode, events, refuses
    bad = [score(4, comment="UNION SELECT", name=name) for name in ("qa_score", "qa_a", "qa_b", "qa_c")]
    for number in range(4):
        await bench.end(number, score(number))
    await bench.end(4, *bad)
    for number in range(5, 60):
        await bench.end(number, score(number))
    await bench.step(5)
    assert len(bench.values()) == 59
    for number in range(60, 72):
        await bench.end(number, score(number))
        await bench.step()
        bench.now_ns += 120 * 10**9
    assert len(bench.values()) == 71
    assert {dead.trace_id for dead in read_dead(bench.store.path)} == {trace(4)}
    assert bench.store.outbox.counts().dead == len(bad)


async def test_where_all_is_refused_no_score_is_given_up_however_long(bench):
    bench.fake.mode = Mode.NEW
    for number in range(100):
        await bench.end(number, score(number))
    bench.fake.standing_fault = only("POST", "/scores", faults.suspended())
    for _ in range(20):
        await bench.step()
    assert (bench.delivery.snapshot().state, bench.store.outbox.counts().dead) == ("stopped", 0)
    bench.fake.standing_fault = None
    await bench.settle()
    assert len(bench.values()) == 100


async def test_keys_of_another_project_after_a_restart_are_named_with_what_waits_for_it(bench, caplog):
    def monitor():
        section = LangfuseSink(base_url=bench.fake.base_url, public_key="pk", secret_key="sk")
        scores_out = LangfuseScores(
            section, langfuse=bench.langfuse, store=bench.store, rubrics={}, counters=bench,
            clock_ns=lambda: bench.now_ns,
        )  # fmt: skip
        return scores_out.deliveries[0]

    await monitor().step()
    await monitor().step()
    assert "another project" not in caplog.text
    await bench.end(1, score(1))
    bench.fake.project = {"id": "proj-other", "name": "Other"}
    await monitor().step()
    (warned,) = [record for record in caplog.records if "another project" in record.getMessage()]
    assert (warned.project, warned.before, warned.waiting) == ("Other", "Test Project", 1)

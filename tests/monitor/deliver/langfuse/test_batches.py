"""Scores many at a time, where the server has ``POST ingestion``: what is kept, what is refused, and how fast it is."""

from __future__ import annotations

import os

import pytest

from sidejudge.integrations.langfuse.observations import instant
from sidejudge.integrations.langfuse.sending import EVENTS, traces_per_minute
from sidejudge.integrations.store.archive import read_dead
from sidejudge.integrations.store.outbox import LOOKS_NS
from sidejudge.monitor.deliver.langfuse.delivery import MOST_AT_ONCE
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, only
from tests.langfuse_bench import START_NS, score, trace

INGESTION = ("POST", "/ingestion")


@pytest.fixture
def batching(bench):
    bench.fake.scores.takes_events = True
    return bench


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
async def test_a_batch_keeps_the_timestamps_in_every_version(batching, mode):
    batching.fake.mode = mode
    for number in range(3):
        await batching.end(number, score(number))
    await batching.settle()
    found = {row["id"]: row["timestamp"] for row in batching.fake.scores.stored()}
    assert found == {score(n)["id"]: instant(START_NS + n) for n in range(3)}
    assert bool(batching.posts()) is not bool(batching.batches()), "in one body or the other"
    assert bool(batching.posts()) is (mode is Mode.NEW), "arrays go before batches where they are taken"


@pytest.mark.parametrize("takes_events", [True, False])
async def test_what_never_left_is_counted_neither_as_handed_over_nor_as_failed(batching, takes_events):
    batching.fake.scores.takes_events = takes_events
    for number in range(50):
        await batching.end(number, score(number))
    await batching.step()
    batching.handed, held = 0, batching.fake.scores.written
    for number in range(50, 150):
        await batching.end(number, score(number))
    path = "/ingestion" if takes_events else "/scores"
    batching.fake.standing_fault = only("POST", path, faults.error(500, "Internal Server Error"))
    await batching.step()
    assert batching.fake.scores.written == held
    assert (batching.handed, batching.failed) == (n := EVENTS if takes_events else 1, {"server_error": n})


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
async def test_a_revision_takes_the_place_of_what_it_revises_in_every_version(batching, mode):
    batching.fake.mode = mode
    for revision, value in enumerate((0.25, 0.75, 0.25), 1):
        await batching.end(1, score(1, value), revision=revision)
        await batching.settle()
        assert batching.values() == {score(1)["id"]: value}
    times = [event["timestamp"] for batch in batching.batches() for event in batch]
    assert times == sorted(set(times)), "of two writings of one time the earlier is shown"


async def test_of_a_batch_only_the_score_that_is_refused_is_given_up(batching):
    for number in range(10):
        await batching.end(number, score(number, "much" if number == 4 else 0.5, dataType="NUMERIC"))
    await batching.settle()
    assert set(batching.values()) == {score(n)["id"] for n in range(10) if n != 4}
    (dead,) = read_dead(batching.store.path)
    assert dead.trace_id == trace(4)
    assert "expected number" in dead.reason
    assert len(batching.batches()) == 1, "the others were taken with it"
    assert (batching.handed, batching.failed) == (10, {"refused": 1})


@pytest.mark.parametrize("status", [404, 405, 410])
async def test_where_ingestion_goes_away_scores_go_the_older_way(batching, status):
    await batching.end(1, score(1))
    await batching.settle()
    batching.fake.standing_fault = only(*INGESTION, faults.error(status, "gone"))
    await batching.end(2, score(2))
    await batching.settle()
    assert len(batching.values()) == 2
    assert len(batching.posts()) == 1


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (faults.error(401, "Invalid credentials."), "stopped"),
        (faults.suspended(), "stopped"),
        (faults.rate_limited(30), "retrying"),
        (faults.store_away(), "retrying"),
        (faults.proxy_page(), "retrying"),
        (faults.hangs(), "retrying"),
        (faults.resets(), "retrying"),
        (lambda _: faults.answer({"successes": [], "errors": []}, 207), "retrying"),
        (lambda _: faults.answer({"successes": 7, "errors": True}, 207), "retrying"),
    ],
)
async def test_an_outage_of_any_kind_costs_no_score_of_a_batch(batching, fault, state):
    await batching.step()
    for number in range(60):
        await batching.end(number, score(number))
    batching.langfuse._timeout_s = 0.2
    batching.fake.standing_fault = only(*INGESTION, lambda request: fault(request) if request.body["batch"] else None)
    await batching.step(4)
    assert batching.delivery.snapshot().state == state
    assert batching.store.outbox.counts().dead == 0
    batching.fake.standing_fault = None
    await batching.settle()
    assert len(batching.values()) == 60


async def test_one_score_at_which_the_server_fails_lets_the_others_of_its_batch_by(batching):
    def chokes(request):
        names = [event["body"]["traceId"] for event in request.body["batch"]]
        return faults.store_away()(request) if trace(3) in names else None

    batching.fake.standing_fault = only(*INGESTION, chokes)
    for number in range(10):
        await batching.end(number, score(number))
    await batching.step(30)
    assert set(batching.values()) == {score(n)["id"] for n in range(10) if n != 3}


async def test_a_score_that_is_too_large_alone_is_given_up_and_not_its_batch(batching):
    await batching.end(1, score(1, comment="c" * 1_100_000))
    await batching.end(2, score(2))
    await batching.settle()
    assert set(batching.values()) == {score(2)["id"]}
    assert "too large (HTTP 413)" in read_dead(batching.store.path)[0].reason


async def test_an_answer_that_is_lost_doubles_nothing(batching):
    await batching.step()
    for number in range(5):
        await batching.end(number, score(number))
    batching.fake.fails(*[lambda _: None] * 2, faults.lost_answer(batching.fake))
    await batching.settle()
    assert len(batching.values()) == 5


async def test_n_traces_of_13_scores_take_fewer_than_n_requests_reading_back_included(batching):
    traces = int(os.environ.get("SIDEJUDGE_TRACES", "60"))
    names = ("qa_score", "qa_pass", "qa_state", *(f"qa_m{number}" for number in range(10)))
    values = {"qa_pass": 1.0, "qa_state": "valid"}
    for number in range(traces):
        await batching.end(number, *(score(number, values.get(name, 0.5), name) for name in names))
    await batching.step()
    before = len(batching.fake.requests)
    await batching.settle(2000)
    used = len(batching.fake.requests) - before + 5  # of the first step
    assert len(batching.values()) == traces * 13
    assert sum(map(len, batching.batches())) == traces * 13, "each score is sent once"
    assert used <= 0.7 * traces
    assert traces_per_minute(600, 13, scores_per_request=EVENTS) > 600


async def test_reading_back_keeps_pace_with_sending_while_much_waits(batching):
    for number in range(3 * MOST_AT_ONCE):
        await batching.end(number, score(number))
    await batching.step()
    batching.now_ns += LOOKS_NS
    await batching.step()
    counts = batching.store.outbox.counts()
    assert (counts.waiting, counts.unseen) == (MOST_AT_ONCE, MOST_AT_ONCE), "what was sent first is read back"

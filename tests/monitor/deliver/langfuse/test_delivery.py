"""Delivery: every score arrives once, with its last value, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from sidejudge.integrations.store.archive import read_dead, replay_dead
from sidejudge.monitor.deliver.langfuse.delivery import MOST_AT_ONCE, MOST_ATTEMPTS
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, only
from tests.langfuse_bench import START_NS, score, trace

POST = ("POST", "/scores")
SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS


@pytest.mark.parametrize("mode", Mode)
async def test_every_version_and_write_mode_takes_scores(bench, mode):
    bench.fake.mode = mode
    for number in range(40):
        await bench.end(number, score(number, number / 40), score(number, 1.0, "qa_pass"))
    await bench.settle()
    assert bench.values() == {
        **{score(n)["id"]: n / 40 for n in range(40)},
        **{score(n, 1.0, "qa_pass")["id"]: True for n in range(40)},
    }
    assert (bench.store.outbox.counts().dead, bench.failed.total()) == (0, 0)
    arrays = [body for body in bench.posts() if isinstance(body, list)]
    assert bool(arrays) is (mode is Mode.NEW)
    assert bench.delivery.snapshot().state == "ok"


async def test_a_revision_replaces_the_value_under_the_same_id_name_and_time(bench):
    bench.fake.mode = Mode.NEW
    await bench.end(1, score(1, 0.25))
    await bench.settle()
    bench.now_ns += 30 * 3600 * 10**9  # the next day
    await bench.end(1, score(1, 0.75, metadata={"revision": 2}), revision=2)
    await bench.settle()
    (row,) = bench.fake.scores.stored()
    assert (row["value"], row["metadata"]["revision"], row["name"]) == (0.75, 2, "qa_score")
    times = [body[0]["timestamp"] for body in bench.posts()]
    assert len(times) == 2
    assert times[0] == times[1]


async def test_what_is_said_again_is_not_sent_again(bench):
    for _ in range(3):
        await bench.end(1, score(1))
        await bench.settle()
    assert len(bench.posts()) == 1


async def test_a_score_that_is_not_said_any_more_is_overwritten_at_once_and_deleted_after_it_had_time_to_be_stored(
    bench,
):
    await bench.end(1, score(1), score(1, 1.0, "qa_pass"))
    await bench.step()
    assert len(bench.values()) == 2
    await bench.end(1, score(1), revision=2)
    await bench.step(3)
    assert bench.values() == {score(1)["id"]: 0.5, score(1, 1.0, "qa_pass")["id"]: "withdrawn"}
    bench.now_ns += 60 * 10**9
    await bench.settle()
    assert bench.values() == {score(1)["id"]: 0.5}
    assert bench.store.outbox.counts().waiting == 0


@pytest.mark.parametrize("retry_after_s", [80_000, 10**11])
async def test_the_daily_limit_of_deletions_keeps_no_score_waiting(bench, retry_after_s):
    await bench.end(1, score(1))
    await bench.settle()
    await bench.end(1, revision=2)
    bench.fake.standing_fault = only("DELETE", f"/scores/{score(1)['id']}", faults.rate_limited(retry_after_s, 50))
    deletions = []
    for _ in range(100):
        bench.now_ns += 30 * 10**9
        await bench.step()
        deletions = [request.path for request in bench.fake.requests if request.method == "DELETE"]
        if deletions:
            break
    assert deletions == [f"/scores/{score(1)['id']}"]
    await bench.end(2, score(2))
    await bench.step(2)
    assert score(2)["id"] in bench.values()
    assert bench.delivery.snapshot().state == "ok"


async def test_an_array_with_one_that_is_refused_is_sent_one_by_one_and_only_that_one_is_given_up(bench):
    bench.fake.mode = Mode.NEW
    for number in range(10):
        await bench.end(number, score(number, "much" if number == 4 else 0.5, dataType="NUMERIC"))
    await bench.settle()
    assert set(bench.values()) == {score(n)["id"] for n in range(10) if n != 4}
    (dead,) = read_dead(bench.store.path)
    assert (dead.trace_id, dead.attempts) == (trace(4), 0)
    assert "expected number, received string" in dead.reason
    assert (bench.handed, bench.failed) == (10, {"refused": 1})


async def test_that_scores_were_given_up_is_logged_once_a_minute_at_most_and_not_again_for_the_same(bench, caplog):
    bench.fake.mode = Mode.NEW

    async def reported_after(seconds: int) -> list[int]:
        bench.now_ns += seconds * 10**9
        await bench.step()
        return [each.given_up for each in caplog.records if "given up" in each.message]

    await bench.end(1, score(1, "much", dataType="NUMERIC"))
    await bench.settle()
    assert await reported_after(10) == [1]
    await bench.end(2, score(2, "much", dataType="NUMERIC"))
    await bench.settle()
    assert bench.store.outbox.counts().dead == 2
    assert await reported_after(10) == [1]
    assert await reported_after(61) == [1, 2]
    assert await reported_after(61) == [1, 2]


async def test_a_server_that_takes_single_scores_is_found_out_though_its_version_promises_arrays(bench, fake):
    fake.mode = Mode.DUAL
    fake.standing_fault = only("GET", "/health", lambda _: faults.answer({"status": "OK", "version": "4.60.0"}))
    for number in range(3):
        await bench.end(number, score(number))
    await bench.settle()
    kinds = [type(body) for body in bench.posts()]
    assert kinds == [dict, dict, dict]
    assert len(bench.values()) == 3


@pytest.mark.parametrize(
    ("fault", "state", "reason"),
    [
        (faults.error(401, "Invalid credentials."), "stopped", "check public_key and secret_key"),
        (faults.suspended(), "stopped", "ingestion is suspended"),
        (faults.error(404, "not here"), "stopped", "check sinks.langfuse.base_url"),
        (faults.gone(), "stopped", "check sinks.langfuse.base_url"),
        (faults.rate_limited(30), "retrying", "rate limited (HTTP 429)"),
        (faults.resources(), "retrying", "too expensive (HTTP 422)"),
        (faults.store_away(), "retrying", "server error (HTTP 500)"),
        (faults.proxy_page(), "retrying", "a page in place of an answer"),
        (faults.login_page(), "retrying", "not langfuse"),
        (faults.hangs(), "retrying", "timeout"),
        (faults.resets(), "retrying", "unreachable"),
    ],
)
async def test_an_outage_of_any_kind_is_told_and_loses_nothing(bench, fault, state, reason):
    for number in range(30):
        await bench.end(number, score(number))
    bench.langfuse._timeout_s = 0.2
    bench.fake.standing_fault = only(*POST, fault)
    await bench.step(4)
    reported = bench.delivery.snapshot()
    assert (reported.state, reason in reported.reason) == (state, True), reported.reason
    assert bench.store.outbox.counts().dead == 0
    assert bench.failed.total() > 0
    assert "sk-lf" not in reported.reason
    bench.fake.standing_fault = None
    await bench.settle()
    assert len(bench.values()) == 30
    assert bench.delivery.snapshot().state == "ok"


async def test_what_the_server_asks_for_is_waited_for(bench):
    await bench.end(1, score(1))
    bench.fake.standing_fault = only(*POST, faults.rate_limited(45))
    await bench.step()
    assert 45 <= bench.pauses[-1] <= 47


async def test_a_stop_is_asked_again_after_minutes_and_not_hammered(bench):
    await bench.end(1, score(1))
    bench.fake.standing_fault = faults.error(401, "Invalid credentials.")
    await bench.step(3)
    assert all(150 <= pause <= 300 for pause in bench.pauses)


async def test_after_an_outage_scores_arrive_in_the_order_of_their_age(bench):
    bench.fake.standing_fault = only(*POST, faults.store_away())
    for number in range(50):
        bench.now_ns += 10**9
        await bench.end(number, score(number))
    while bench.now_ns < START_NS + 3600 * 10**9:
        await bench.step()
    assert bench.store.outbox.counts().waiting == 50
    bench.fake.standing_fault = None
    before = len(bench.posts())
    await bench.settle()
    order = [int(body["traceId"], 16) for body in bench.posts()[before:]]
    # What was tried last before it was known that the server is back goes first; the others follow by age.
    assert order[1:] == sorted(order[1:])
    assert sorted(order) == list(range(50))
    assert bench.store.outbox.counts().dead == 0


@pytest.mark.parametrize(
    ("failures", "sent"),
    [
        (1, [0, 160 // 4, 80, 160, 200]),  # a fourth, then twice as many each time
        (2, [0, 0, 1, 200, 200]),  # the server was away: one is tried
    ],
)
async def test_after_an_array_that_failed_fewer_go_and_after_an_outage_one_then_all(bench, failures, sent):
    bench.fake.mode = Mode.NEW
    left = failures

    def fails(request):
        nonlocal left
        left -= bool(request.body)  # the probe has none
        return faults.store_away()(request) if request.body and left >= 0 else None

    bench.fake.standing_fault = only(*POST, fails)
    await bench.end(1, *(score(1, name=f"qa_{number}") for number in range(160)))
    await bench.step()
    await bench.end(2, *(score(2, name=f"qa_{number}") for number in range(440)))
    stored = [len(bench.fake.scores.stored())]
    for _ in sent[1:]:
        await bench.step()
        stored.append(len(bench.fake.scores.stored()))
    assert [after - before for before, after in itertools.pairwise([0, *stored])] == sent


@pytest.mark.parametrize("failures", [0, 1])
async def test_a_flush_sends_all_that_waits_and_ends_at_the_first_failure(bench, failures):
    bench.fake.mode = Mode.NEW
    for number in range(2 * MOST_AT_ONCE + 1):
        await bench.end(number, score(number))
    bench.fake.fails(*[lambda _: None] * 7, *[faults.store_away()] * failures)
    await asyncio.wait_for(bench.delivery.flush(), 20)
    waiting = bench.store.outbox.counts().waiting
    assert (waiting > 0, bench.delivery.snapshot().state) == ((True, "retrying") if failures else (False, "ok"))
    bench.now_ns += HOUR_NS
    before = len(bench.fake.requests)
    await asyncio.wait_for(bench.delivery.flush(), 20)
    assert len(bench.fake.requests) == before, "nothing waits, or what is away is left to the steps"


async def test_before_its_first_step_it_counts_nothing(bench):
    shown = bench.delivery.snapshot()
    assert (shown.waiting, shown.oldest_s, shown.unseen, shown.dead, shown.unarrived, shown.held) == (
        0,
        None,
        0,
        0,
        0,
        0,
    )


async def test_one_score_at_which_the_server_fails_lets_the_others_by_and_is_given_up(bench):
    def chokes(request):
        sent = request.body if isinstance(request.body, list) else [request.body]
        return faults.store_away()(request) if any(s["traceId"] in (trace(3), trace(4)) for s in sent) else None

    bench.fake.standing_fault = only(*POST, chokes)
    for number in range(10):
        await bench.end(number, score(number))
    await bench.step(20)
    assert len(bench.values()) == 8
    for number in range(10, 200):
        await bench.end(number, score(number))
        await bench.step()
        bench.now_ns += 30 * 10**9
        if bench.store.outbox.counts().dead == 2:
            break
    assert {dead.trace_id for dead in read_dead(bench.store.path)} == {trace(3), trace(4)}
    assert f"failed {MOST_ATTEMPTS} times while others were taken" in read_dead(bench.store.path)[0].reason


async def test_a_score_is_tried_eight_times_while_others_are_taken(bench):
    bench.fake.standing_fault = only(*POST, lambda r: faults.store_away()(r) if trace(0) in str(r.body) else None)
    await bench.end(0, score(0))
    for number in range(1, 100):
        await bench.end(number, score(number))
        await bench.step(2)
        bench.now_ns += 600 * SECOND_NS
    tried = [body for body in bench.posts() if body["traceId"] == trace(0)]
    assert (len(tried), len(bench.values())) == (8, 99)
    assert [dead.trace_id for dead in read_dead(bench.store.path)] == [trace(0)]


async def test_an_outage_however_long_counts_against_no_score(bench):
    bench.fake.standing_fault = only(*POST, faults.store_away())
    await bench.end(0, score(0))
    for _ in range(20):
        bench.now_ns += 600 * SECOND_NS
        await bench.step()
    assert len(bench.posts()) > 2 * MOST_ATTEMPTS
    assert bench.store.outbox.counts().dead == 0
    bench.fake.standing_fault = None
    bench.now_ns += HOUR_NS
    await bench.settle()
    assert len(bench.values()) == 1


async def test_a_score_that_is_too_large_is_given_up_with_the_reason(bench):
    await bench.end(1, score(1, comment="c" * 1_100_000))
    await bench.end(2, score(2))
    await bench.settle()
    assert set(bench.values()) == {score(2)["id"]}
    assert "too large (HTTP 413)" in read_dead(bench.store.path)[0].reason


async def test_what_was_given_up_is_sent_again_on_demand(bench):
    await bench.end(1, score(1, "much", dataType="NUMERIC"))
    await bench.settle()
    (dead,) = read_dead(bench.store.path)
    bench.fake.standing_fault = only(*POST, lambda r: faults.answer({"id": r.body["id"]}))
    assert replay_dead(bench.store.path, [dead.id]) == 1
    await bench.step()
    assert bench.store.outbox.counts().dead == 0
    assert bench.store.outbox.counts().unseen == 1


@pytest.mark.parametrize(("asked_s", "waits_s"), [(5, 60), (90, 90)])
async def test_a_deletion_that_is_limited_is_asked_for_again_after_a_minute_at_least(bench, asked_s, waits_s):
    await bench.end(1, score(1))
    await bench.settle()
    await bench.end(1, revision=2)
    bench.fake.standing_fault = only("DELETE", f"/scores/{score(1)['id']}", faults.rate_limited(asked_s, 50))
    while not [each for each in bench.fake.requests if each.method == "DELETE"]:
        bench.now_ns += SECOND_NS
        await bench.delivery.step()
    bench.now_ns += waits_s * SECOND_NS
    assert bench.store.outbox.due(bench.now_ns - 1, 1) == []
    assert len(bench.store.outbox.due(bench.now_ns, 1)) == 1


async def test_how_long_the_oldest_waits_is_shown_in_seconds(bench):
    bench.fake.standing_fault = only(*POST, faults.store_away())
    await bench.end(1, score(1))
    bench.now_ns += 90 * SECOND_NS
    await bench.delivery.step()
    assert bench.delivery.snapshot().oldest_s == START_NS / 1e9


async def test_a_lost_answer_doubles_nothing(bench):
    bench.fake.mode = Mode.NEW
    bench.fake.fails(*[lambda _: None] * 5, lambda _: None, lambda _: None, faults.lost_answer(bench.fake))
    for number in range(5):
        await bench.end(number, score(number))
    await bench.settle()
    assert len(bench.values()) == 5


async def test_a_revision_that_comes_while_its_forerunner_is_sent_is_sent_after_it(bench):
    await bench.end(1, score(1, 0.25))
    (row,) = bench.store.outbox.due(bench.now_ns, 10)
    await bench.end(1, score(1, 0.75), revision=2)
    await bench.store.outbox.taken([row], bench.now_ns, verify=True)  # word of the forerunner
    await bench.settle()
    assert bench.values() == {score(1)["id"]: 0.75}


async def test_another_process_goes_on_where_one_ended(bench):
    for number in range(20):
        await bench.end(number, score(number))
    bench.fake.standing_fault = only(*POST, faults.hangs())
    bench.langfuse._timeout_s = 0.1
    await bench.step()
    bench.fake.standing_fault = None
    bench.delivery = bench.new_delivery()
    await bench.settle()
    assert len(bench.values()) == 20


async def test_configs_are_found_again_and_made_once(bench):
    for number, value in ((1, 0.5), (2, 0.7)):
        await bench.end(number, score(number, value), score(number, 1.0, "qa_pass"), score(number, "valid", "qa_state"))
    await bench.settle()
    bench.delivery = bench.new_delivery()
    await bench.end(3, score(3), score(3, 0.0, "qa_pass"))
    await bench.settle()
    made = {config["name"]: config for config in bench.fake.configs.all}
    assert len(made) == len(bench.fake.configs.all) == 3
    assert (made["qa_score"]["minValue"], made["qa_score"]["maxValue"]) == (0.0, 1.0)
    assert [c["label"] for c in made["qa_state"]["categories"]] == ["valid", "invalid"]
    assert all(row["configId"] == made[row["name"]]["id"] for row in bench.fake.scores.stored())
    assert bench.met[0].project_id == "proj-test"

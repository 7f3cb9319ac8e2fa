"""Looks: when Langfuse is asked whether it has what it took, and what becomes of what it has not."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.existing_scores import MOST_IDS
from sidejudge.integrations.otlp.wire.chunk import Chunk, ChunkOrigin
from sidejudge.integrations.store.archive import read_dead
from sidejudge.integrations.store.outbox import LOOKS_NS, PendingScore
from sidejudge.monitor.deliver.langfuse.delivery import IDLE_S
from sidejudge.monitor.deliver.langfuse.reading_back import time_in_array
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode, only
from tests.langfuse_bench import START_NS, score, trace

POST = ("POST", "/scores")
SECOND_NS = 10**9
MIDNIGHT_NS = (START_NS // (86_400 * SECOND_NS) + 1) * 86_400 * SECOND_NS


async def test_an_early_look_finds_what_is_stored_and_misses_nothing(bench):
    await bench.end(1, score(1))
    await bench.step()
    with bench.fake.scores.forgetting():
        await bench.end(2, score(2))
        await bench.step()
    assert await bench.delivery.reading_back.look_early()
    assert bench.store.outbox.counts().unseen == 1
    assert not await bench.delivery.reading_back.look_early()
    (row,) = bench.store.outbox.unseen(bench.now_ns + 60 * 10**9, 10)
    assert (row.id, row.missed) == (score(2)["id"], 0)


@pytest.mark.parametrize(("count", "pause_s"), [(MOST_IDS - 1, IDLE_S), (MOST_IDS, 0.0), (MOST_IDS + 1, 0.0)])
async def test_it_rests_once_it_has_looked_for_all_that_may_be_there(bench, count, pause_s):
    bench.fake.scores.takes_events = True
    await bench.end(1, *(score(1, name=f"qa_{number}") for number in range(count)))
    await bench.step()
    bench.now_ns += LOOKS_NS
    assert await bench.delivery.step() == pause_s
    assert bench.store.outbox.counts().unseen == max(0, count - MOST_IDS)
    assert await bench.delivery.step() == IDLE_S


async def test_a_server_is_asked_hourly_what_it_is_and_met_again_where_that_changed(bench):
    for later_ns, version, asked, met in (
        (0, "4.16.0", 1, ["4.16.0"]),
        (3600 * SECOND_NS - 1, "4.62.0", 1, ["4.16.0"]),
        (1, "4.16.0", 2, ["4.16.0"]),
        (3600 * SECOND_NS, "4.62.0", 3, ["4.16.0", "4.62.0"]),
    ):
        bench.now_ns += later_ns
        bench.fake.mode = Mode(version)
        await bench.delivery.step()
        assert len(bench.fake.requested("GET", "/health")) == asked
        assert [server.version for server in bench.met] == met


@pytest.mark.parametrize("restarts", [True, False])
async def test_what_waits_by_a_clock_that_was_ahead_is_due_once_it_is_set_back(bench, restarts):
    await bench.end(1, score(1))
    await bench.step()  # sent, and to be looked for
    await bench.end(2, score(2))
    (row,) = bench.store.outbox.due(bench.now_ns, 10)
    await bench.store.outbox.postpone([row], bench.now_ns + SECOND_NS, "busy", counts=False)
    bench.now_ns -= 30 * 86_400 * SECOND_NS
    if restarts:
        bench.delivery = bench.new_delivery()
    await bench.step(2)
    assert set(bench.values()) == {score(1)["id"], score(2)["id"]}
    bench.now_ns += LOOKS_NS
    await bench.step()
    assert bench.store.outbox.counts().unseen == 0


async def test_a_200_that_stored_nothing_is_found_and_the_score_is_sent_again_without_its_config(bench):
    await bench.end(1, score(1))
    await bench.step()
    bench.fake.configs.all[0]["isArchived"] = True  # between finding it and using it
    await bench.end(2, score(2))
    await bench.settle()
    assert set(bench.values()) == {score(1)["id"], score(2)["id"]}
    assert bench.failed["not_stored"] == 1
    assert "configId" not in bench.posts()[-1]


@pytest.mark.parametrize("revised", [False, True])
@pytest.mark.parametrize("mode", [Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_a_config_that_somebody_renames_does_not_take_the_scores_along(bench, mode, revised):
    bench.fake.mode = mode
    await bench.end(1, score(1))
    await bench.settle()
    bench.fake.configs.all[0]["name"] = "Quality"
    number = 1 if revised else 2
    await bench.end(number, score(number, 0.75, metadata={"revision": 2}), revision=2)
    await bench.settle()
    found = {(row["id"], row["name"]): row["value"] for row in bench.fake.scores.stored()}
    assert found[score(number)["id"], "qa_score"] == 0.75
    assert bench.store.outbox.counts().dead == 0
    if mode is Mode.DUAL:
        assert {name for _, name in found} == {"qa_score"}
    assert [config["name"] for config in bench.fake.configs.all] == ["Quality", "qa_score"]


async def test_a_score_that_is_never_stored_though_others_are_is_given_up(bench):
    forgets = faults.forgets(bench.fake)
    bench.fake.standing_fault = only(*POST, lambda r: forgets(r) if r.body and r.body["traceId"] == trace(1) else None)
    await bench.end(1, score(1))
    for number in range(2, 200):
        await bench.end(number, score(number))
        await bench.step()
        bench.now_ns += 60 * 10**9
        if bench.store.outbox.counts().dead:
            break
    (dead,) = read_dead(bench.store.path)
    assert dead.trace_id == trace(1)
    assert "not stored, though it was sent again" in dead.reason


def shows_nothing(request):
    """As a plan that hides what is old: scores and traces of that time are not shown."""
    return faults.answer({"data": [], "meta": {"totalPages": 0}}) if request.method == "GET" else None


@pytest.mark.parametrize(("days", "shown"), [(28, None), (30, "older"), (30, None)], ids=["young", "older", "hidden"])
async def test_a_score_older_than_anything_that_is_shown_is_given_up_once_and_for_that_reason(
    bench, caplog, days, shown
):
    def plan(request):
        if request.path in ("/v3/scores", "/v2/scores") and request.params.get("limit") == "100":
            return shows_nothing(request)
        if request.path in ("/v2/observations", "/traces"):
            seen = [{"id": "1", "traceId": trace(9)}] if shown else []
            return faults.answer({"data": seen, "meta": {"totalPages": 1}})
        return None

    bench.fake.standing_fault = plan
    bench.now_ns += days * 86_400 * SECOND_NS
    await bench.end(1, score(1))
    for seconds in (0, 20, 25, 300, 900):
        bench.now_ns += seconds * SECOND_NS
        await bench.delivery.step()
    dead = read_dead(bench.store.path)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    if days < 29 or shown:
        assert not dead
        assert bench.failed == {"not_arrived": 1, "not_stored": 1}
    else:
        assert ["hides what is older" in each.reason for each in dead] == [True]
        assert bench.failed == {"hidden": 1}
        assert ["shows nothing as old" in each for each in told] == [True]
        assert len(bench.posts()) == 1


async def test_while_nothing_at_all_is_stored_nothing_is_given_up(bench):
    bench.fake.standing_fault = only(*POST, faults.forgets(bench.fake))
    await bench.end(1, score(1))
    for _ in range(300):
        await bench.step()
        bench.now_ns += 120 * 10**9
    assert bench.store.outbox.counts().dead == 0
    bench.fake.standing_fault = None


async def looked_for_after(bench, seconds: int) -> None:
    """The next look is due after so many seconds, and then comes."""
    bench.now_ns += seconds * SECOND_NS
    assert bench.store.outbox.unseen(bench.now_ns - 1, 1) == []
    assert bench.store.outbox.counts().unseen == 1
    await bench.delivery.step()


async def test_what_is_not_there_is_looked_for_soon_later_and_late_before_it_is_sent_again(bench):
    bench.fake.standing_fault = only(*POST, faults.forgets(bench.fake))
    await bench.end(1, score(1))
    await bench.delivery.step()
    for times in (1, 2):
        for seconds in (20, 25, 300, 900):
            assert len(bench.posts()) == times
            await looked_for_after(bench, seconds)
        if times == 1:
            assert bench.store.outbox.counts().waiting == 1
            await bench.delivery.step()
    assert (bench.failed["not_arrived"], bench.failed["not_stored"]) == (1, 1), "named once"
    for seconds in (3600, 25, 300, 900, 3600):  # nothing is stored there at all: its workers are behind
        await looked_for_after(bench, seconds)
    assert len(bench.posts()) == 2


async def test_where_another_writing_is_shown_the_second_look_decides_whether_it_is_written_again(bench):
    bench.fake.scores.takes_events = True
    await bench.end(1, score(1, 0.25))
    await bench.settle()
    bench.fake.standing_fault = only("POST", "/ingestion", faults.forgets(bench.fake))
    await bench.end(1, score(1, 0.75, metadata={"revision": 2}), revision=2)
    await bench.delivery.step()
    for writings in (2, 3, 4, 5):
        assert len(bench.batches()) == writings
        await looked_for_after(bench, 20)
        assert len(bench.batches()) == writings
        await looked_for_after(bench, 25)
        await bench.delivery.step()
    assert (bench.store.outbox.counts().dead, len(bench.batches()), bench.failed["not_arrived"]) == (1, 5, 1)
    assert "shows another writing of it, though it was written again" in read_dead(bench.store.path)[0].reason


async def test_a_trace_that_upstream_has_not_taken_is_asked_for_less_and_less_and_its_scores_end_after_a_day(bench):
    spans = Chunk(trace_id=bytes.fromhex(trace(1)), payload=b"", headers=(), origin=ChunkOrigin("svc", None, 0))
    await bench.store.append([spans], bench.now_ns, untaken=True)
    await bench.end(1, score(1))
    bench.delivery._untaken, began_ns = bench.store.untaken, bench.now_ns
    for seconds in (60, 60, 300, 1800, 7200, 7200):
        bench.now_ns += seconds * SECOND_NS
        assert bench.store.untaken.to_ask_for(bench.now_ns - 1, 1) == []
        assert len(bench.store.untaken.to_ask_for(bench.now_ns, 1)) == 1
        await bench.delivery.step()
    bench.now_ns = began_ns + 24 * 3600 * SECOND_NS
    await bench.delivery.step()
    assert bench.store.outbox.counts().waiting == 1
    bench.now_ns += 1
    await bench.delivery.step()
    assert (bench.store.outbox.counts().waiting, bench.failed["no_trace"], bench.posts()) == (0, 1, [])


@pytest.mark.parametrize(
    ("at_ns", "missed", "moved_ms"),
    [(START_NS, 1, 0), (START_NS, 2, 2), (START_NS, 5, 5), (MIDNIGHT_NS - 3_000_000, 2, 2), (MIDNIGHT_NS - 1, 2, 0)],
)
def test_what_did_not_replace_the_writing_before_goes_a_little_later_on_the_same_day(at_ns, missed, moved_ms):
    row = PendingScore(
        id="a", version=1, at_ns=at_ns, queued_ns=at_ns, attempts=0, missed=missed, body="{}", written_ms=0
    )
    assert time_in_array(row) == at_ns + moved_ms * 1_000_000


async def test_a_slow_worker_is_waited_for(bench):
    bench.fake.visible_after_s = 0.4
    await bench.end(1, score(1))
    await bench.step()
    bench.now_ns += 61 * 10**9
    await bench.step()
    assert bench.store.outbox.counts().unseen == 1
    bench.fake.visible_after_s = 0
    await bench.settle()
    assert len(bench.posts()) == 1

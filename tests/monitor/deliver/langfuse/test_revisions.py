"""What Langfuse shows is the last writing, whatever transport it took, in whatever order requests arrived."""

from __future__ import annotations

import logging
import random

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse
from sidejudge.integrations.langfuse.observations import instant
from sidejudge.integrations.langfuse.scores import WRITTEN
from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.outbox import DELETES_NS
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.cli import doctor_checks
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, Mode, only
from tests.langfuse_bench import START_NS, Bench, score, trace

SECOND = 10**9
HOUR = 3600 * SECOND
TRANSPORTS = [(Mode.DUAL, True), (Mode.EVENTS_ONLY, True), (Mode.V3, True), (Mode.DUAL, False), (Mode.NEW, False)]
by_transport = pytest.mark.parametrize(
    ("mode", "events"), TRANSPORTS, ids=lambda each: each.value if isinstance(each, Mode) else f"events={each}"
)


def revision(number, value, name="qa_score", **more):
    metadata = {"revision": number, "state": "valid", **more.pop("metadata", {})}
    return score(1, value, name, comment=f"as of revision {number}", metadata=metadata, **more)


def shown(bench, name="qa_score"):
    (row,) = [row for row in bench.fake.scores.stored() if row["name"] == name]
    return row


@by_transport
async def test_the_latest_of_many_revisions_is_shown_whole(bench, mode, events):
    bench.fake.mode, bench.fake.scores.takes_events = mode, events
    for number in range(1, 6):
        both = (revision(number, number / 8), revision(number, float(number % 2), "qa_pass"))
        await bench.end(1, *both, revision=number)
        await bench.settle()
        row = shown(bench)
        assert (row["value"], row["comment"]) == (number / 8, f"as of revision {number}")
        assert (row["metadata"]["revision"], shown(bench, "qa_pass")["value"]) == (number, bool(number % 2))
    assert bench.failed.total() == 0
    if events or mode is Mode.NEW:
        assert row["timestamp"] == instant(START_NS + 1), "a score keeps the time of its trace"


@by_transport
@pytest.mark.parametrize("settled", [True, False], ids=["read back", "at once"])
async def test_revisions_take_effect_after_restarts_and_with_a_clock_that_is_set_back(bench, mode, events, settled):
    bench.fake.mode, bench.fake.scores.takes_events = mode, events
    for number, step in enumerate((0, -HOUR, 30 * HOUR, -50 * HOUR, 1), 1):
        bench.now_ns += step
        bench.delivery = bench.new_delivery()
        await bench.end(1, revision(number, number / 8), revision=number)
        if settled:
            await bench.settle()
        else:
            await bench.step()
    bench.now_ns += HOUR
    await bench.settle()
    assert (shown(bench)["value"], shown(bench)["metadata"]["revision"]) == (5 / 8, 5)


async def test_event_timestamps_of_a_score_strictly_grow_over_kills_lost_answers_and_clock_steps(bench):
    bench.fake.scores.takes_events = True
    draw = random.Random(3)
    seen: dict[str, tuple[str, float]] = {}
    for number in range(1, 30):
        bench.now_ns += draw.choice((-40 * HOUR, -SECOND, 0, 1, SECOND, 90 * SECOND, 30 * HOUR))
        if draw.random() < 0.5:
            bench.fake.fails(faults.lost_answer(bench.fake))
        if draw.random() < 0.5:  # killed: all that is known is in the store
            bench.delivery = bench.new_delivery()
        await bench.end(1, revision(number, number / 64), revision=number)
        await bench.step(draw.choice((1, 3)))
    for event in (event for batch in bench.batches() for event in batch):
        before = seen.get(event["body"]["id"])
        now = (event["timestamp"], event["body"]["value"])
        assert before is None or now == before or (now[0] > before[0] and now[1] > before[1])
        seen[event["body"]["id"]] = now
    bench.now_ns += 100 * HOUR
    await bench.settle()
    assert shown(bench)["value"] == 29 / 64


async def test_of_what_was_never_taken_the_time_of_the_score_is_kept_when_it_is_revised(bench):
    bench.fake.scores.takes_events = True
    bench.fake.standing_fault = only("POST", "/ingestion", faults.store_away())
    await bench.end(1, revision(1, 0.25))
    await bench.step(2)
    bench.now_ns += HOUR
    await bench.end(1, revision(2, 0.75), revision=2)
    bench.fake.standing_fault = None
    await bench.settle()
    assert (shown(bench)["value"], shown(bench)["timestamp"][:19]) == (0.75, instant(START_NS)[:19])


async def test_the_transport_may_change_between_revisions(bench):
    for number, (mode, events) in enumerate([*TRANSPORTS[3:4], *TRANSPORTS[:1], *TRANSPORTS[3:4], *TRANSPORTS[:2]], 1):
        bench.fake.mode, bench.fake.scores.takes_events = mode, events
        bench.delivery = bench.new_delivery()
        server_s = START_NS / 1e9 + 20 * 3600 + number * 600  # far ahead of ours: what it stamps itself is later
        bench.fake.clock_s = lambda server_s=server_s: server_s
        bench.now_ns -= 2 * HOUR
        await bench.end(1, revision(number, number / 8), revision=number)
        await bench.settle()
        assert shown(bench)["value"] == number / 8


async def test_an_event_that_arrives_again_after_a_later_one_changes_nothing(bench):
    bench.fake.scores.takes_events = True
    for number in (1, 2, 3):
        await bench.end(1, revision(number, number / 8), revision=number)
        await bench.settle()
    for batch in bench.batches():
        await bench.langfuse.post("ingestion", {"batch": [{**event, "id": f"late-{event['id']}"} for event in batch]})
    assert shown(bench)["value"] == 3 / 8


@pytest.fixture
async def second(bench, tmp_path):
    """Another monitor of the same project, with a store of its own."""
    access = Access(base_url=bench.fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
    store = Store(tmp_path / "second.sqlite")
    async with Langfuse(access, budget=bench.langfuse.budget, timeout_s=1.0) as langfuse:
        yield Bench(bench.fake, store, langfuse)
    store.close()


@pytest.mark.parametrize("apart", [0, HOUR, -HOUR], ids=["same clock", "an hour ahead", "an hour behind"])
async def test_of_two_monitors_the_one_that_wrote_last_is_shown_and_neither_writes_for_ever(bench, second, apart):
    bench.fake.scores.takes_events = True
    for number in range(1, 5):
        writer = (bench, second)[number % 2]
        writer.now_ns = START_NS + number * 600 * SECOND + (apart if writer is second else 0)
        await writer.end(1, revision(number, number / 8), revision=number)
        await writer.settle()
    assert shown(bench)["value"] == 4 / 8
    before = bench.fake.scores.written
    for each in (bench, second):
        each.now_ns += 3 * HOUR
        await each.settle()
        await each.step(3)
    assert (shown(bench)["value"], bench.fake.scores.written) == (4 / 8, before)


async def test_two_monitors_that_each_judge_for_the_first_time_agree_in_the_end(bench, second):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.step(2)
    second.now_ns += 5 * SECOND
    await second.end(1, revision(1, 0.75))
    await second.settle()
    bench.now_ns = second.now_ns
    await bench.settle()
    assert (shown(bench)["value"], bench.store.outbox.counts().dead, second.store.outbox.counts().dead) == (0.75, 0, 0)


@by_transport
@pytest.mark.parametrize("late", [0, 100, 2 * 3600], ids=lambda each: f"{each} s after")
async def test_a_lower_revision_of_another_monitor_never_stays_in_place_of_a_higher_one(
    bench, second, caplog, mode, events, late
):
    bench.fake.mode, bench.fake.scores.takes_events = mode, events
    for number in (1, 2, 3):
        await bench.end(1, revision(number, number / 8), revision=number)
        await bench.settle()
    second.now_ns = bench.now_ns + late * SECOND
    for number in (1, 2):
        await second.end(1, revision(number, (number + 4) / 8), revision=number)
        await second.settle()
    bench.now_ns = max(bench.now_ns, second.now_ns) + 2 * HOUR
    for _ in range(4):
        await bench.step()
        await bench.settle()
        bench.now_ns += 2 * HOUR
    assert (shown(bench)["value"], shown(bench)["metadata"]["revision"]) == (3 / 8, 3)
    if second.failed["overtaken"]:
        assert "another monitor" in caplog.text
    else:
        assert (bench.failed["not_arrived"], "not shown there" in caplog.text) == (1, True)
    before = bench.fake.scores.written
    await second.settle()
    # One that Langfuse took in the same millisecond as the higher revision is given up, which is counted and named.
    assert (bench.fake.scores.written, bench.store.outbox.counts().dead) == (before, 0)
    assert second.store.outbox.counts().dead <= second.failed["not_arrived"]


@pytest.mark.parametrize(
    "refuses",
    [faults.store_away(), faults.resets(), lambda _: faults.answer({"message": "no"}, 403)],
    ids=["500", "reset", "403"],
)
async def test_while_it_cannot_be_read_what_is_there_revisions_wait_and_first_writings_go(bench, second, refuses):
    bench.fake.mode = Mode.NEW
    for number in (1, 2, 3):
        await bench.end(1, revision(number, number / 8), revision=number)
        await bench.settle()
    second.now_ns = bench.now_ns
    await second.step()  # it asks what the server is
    for number in (1, 2):
        await second.end(1, revision(number, (number + 4) / 8), revision=number)
    await second.end(2, score(2, 0.5))
    bench.fake.standing_fault = only("GET", "/v3/scores", refuses)
    await second.delivery.step()
    both = {score(1)["id"]: 3 / 8, score(2)["id"]: 0.5}
    assert bench.values() == both
    assert second.delivery.status.state in ("retrying", "stopped")
    bench.fake.standing_fault = None
    second.now_ns += HOUR
    await second.settle()
    assert (bench.values(), second.store.outbox.counts().waiting, second.failed["overtaken"]) == (both, 0, 1)


@pytest.mark.parametrize(
    ("mode", "after_ns", "reads", "value"),
    [
        (Mode.NEW, 300 * SECOND, 0, 0.75),  # nobody can have revised it, and what comes last is shown
        (Mode.NEW, 300 * SECOND + 1, 1, 0.5),
        (Mode.DUAL, 300 * SECOND + 1, 1, 0.5),
        (Mode.EVENTS_ONLY, 300 * SECOND + 1, 0, 0.5),  # taken as events, of which the time decides
    ],
)
async def test_before_a_first_writing_that_comes_late_it_is_read_whether_it_was_revised(
    bench, second, mode, after_ns, reads, value
):
    bench.fake.mode, bench.fake.scores.takes_events = mode, mode is Mode.EVENTS_ONLY
    for number in (1, 2):
        await bench.end(1, revision(number, number / 4), revision=number)
        await bench.settle()
    second.now_ns = START_NS + 1 + after_ns
    await second.step()  # it asks what the server is
    second.now_ns = START_NS + 1 + after_ns
    await second.end(1, revision(1, 0.75))
    before = len(asked_for(bench, score(1)["id"]))
    await second.step()
    assert len(asked_for(bench, score(1)["id"])) - before == reads
    assert (shown(bench)["value"], second.failed["overtaken"]) == (value, reads)


def asked_for(bench, score_id):
    return [each for each in bench.fake.requests if each.method == "GET" and score_id in str((each.path, each.query))]


async def test_a_writing_that_a_server_takes_up_late_does_not_stay_over_the_revision_that_came_before_it(bench):
    bench.fake.mode = Mode.NEW
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    (first,) = bench.posts()
    await bench.end(1, revision(2, 0.75), revision=2)
    await bench.settle()
    await bench.langfuse.post("scores", first)
    assert shown(bench)["value"] == 0.25
    bench.now_ns += HOUR
    await bench.step()
    await bench.settle()
    assert shown(bench)["value"] == 0.75
    reads = len(bench.fake.requested("GET", "/v3/scores"))
    for _ in range(5):
        bench.now_ns += HOUR
        await bench.step()
    assert len(bench.fake.requested("GET", "/v3/scores")) <= reads + 6, "only the probe asks for more"


def adversity(fake, draw):
    """A server that answers late or breaks off after storing, fails, limits, and refuses a part of an array."""

    def fault(request):
        if request.method != "POST" or request.path not in ("/scores", "/ingestion") or draw.random() > 0.4:
            return None
        kind = draw.choice(("lost answer", "500 after storing", "500", "429", "207"))
        if kind == "207" and isinstance(request.body, list) and request.body:
            fake._act(request)
            return faults.answer({"accepted": 0, "rejected": 1, "errors": [{"message": "busy"}]}, 207)
        if kind in ("lost answer", "500 after storing"):
            act = fake._act(request)
            return faults.resets()(request) if kind == "lost answer" else faults.answer({"message": act.status}, 500)
        return faults.rate_limited(1)(request) if kind == "429" else faults.store_away()(request)

    return fault


@pytest.mark.parametrize(
    ("mode", "events"), [TRANSPORTS[0], TRANSPORTS[3], TRANSPORTS[4]], ids=["events", "one", "arrays"]
)
@pytest.mark.parametrize("skew", [0, 40, -40], ids=lambda each: f"clock {each:+} s")
async def test_whatever_order_a_server_takes_up_a_request_in_and_whatever_it_loses_the_last_revisions_are_there(
    bench, mode, events, skew
):
    draw = random.Random(skew)
    scores = bench.fake.scores
    bench.fake.mode, scores.takes_events, scores.loses_every = mode, events, 20
    scores.takes_up = lambda items: draw.sample(items, len(items))
    bench.fake.clock_s = lambda: bench.now_ns / 1e9 + skew
    bench.fake.standing_fault = adversity(bench.fake, draw)
    for round_ in range(1, 4):
        for number in range(12):
            metadata = {"revision": round_, "state": "valid"}
            await bench.end(number, score(number, number / 16 + round_ / 64, metadata=metadata), revision=round_)
        await bench.step(3)
        bench.now_ns += draw.choice((0, 600)) * SECOND
    for _ in range(200):
        if not bench.store.outbox.counts().waiting + bench.store.outbox.counts().unseen:
            break
        await bench.step()
        bench.now_ns += 20 * SECOND
    wanted = {score(number)["id"]: number / 16 + 3 / 64 for number in range(12)}
    assert bench.values() == wanted
    assert bench.store.outbox.counts().dead == 0
    for sent in [*bench.posts(), *([event["body"] for event in batch] for batch in bench.batches())]:
        ids = [each["id"] for each in sent] if isinstance(sent, list) else [sent["id"]]
        assert len(set(ids)) == len(ids), "two writings of one score in one request"


STALE = [
    pytest.param({"value": 0.75}, id="value"),
    pytest.param({"comment": "another"}, id="comment"),
    pytest.param({"metadata": {"state": "invalid"}}, id="metadata"),
    pytest.param({"metadata": {"metrics": '{"a":[0.5,"good"]}'}}, id="values of metrics"),
    pytest.param({"value": "not counted", "dataType": "CATEGORICAL"}, id="type"),
]


@pytest.mark.parametrize("changed", STALE)
async def test_a_revision_that_does_not_arrive_is_named_within_a_minute_and_written_again(bench, caplog, changed):
    bench.fake.scores.takes_events = True
    first = revision(1, 0.25, metadata={"metrics": '{"a":[0.25,"fail"]}'})
    await bench.end(1, first)
    await bench.settle()
    revised = {**first, **changed, "metadata": {**first["metadata"], **changed.get("metadata", {}), "revision": 2}}
    await bench.end(1, revised, revision=2)
    bench.fake.standing_fault = only("POST", "/ingestion", faults.forgets(bench.fake))
    await bench.step()
    bench.fake.standing_fault = None
    began_ns = bench.now_ns
    with caplog.at_level(logging.WARNING):
        while bench.now_ns < began_ns + 60 * SECOND and not bench.delivery.snapshot().unarrived:
            await bench.step()
    assert bench.delivery.snapshot().unarrived == 1
    assert bench.failed["not_arrived"] == 1
    (line,) = doctor_checks._unarrived(bench.store.path)
    assert (line.grade, line.found) == ("warn", f"1 are not shown as they were written: qa_score of {1:032x}")
    (record,) = [each for each in caplog.records if "not shown there" in each.message]
    assert record.scores == f"qa_score of {1:032x}"
    await bench.settle()
    row = shown(bench)
    assert (row["value"], row["comment"]) == (revised["value"], revised["comment"])
    assert {**row["metadata"], **revised["metadata"]} == row["metadata"]
    await bench.step(10)
    assert (bench.delivery.snapshot().unarrived, bench.store.outbox.counts().dead) == (0, 0)
    assert [each.grade for each in doctor_checks._unarrived(bench.store.path)] == ["ok"]


async def test_what_is_never_shown_is_given_up_with_the_reason_after_some_writings(bench):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    await bench.end(1, revision(2, 0.75), revision=2)
    forgets = faults.forgets(bench.fake)
    bench.fake.standing_fault = only("POST", "/ingestion", forgets)
    await bench.settle()
    counts = bench.store.outbox.counts()
    assert (counts.dead, counts.unarrived) == (1, 0)
    assert 3 <= len(bench.batches()) <= 5


async def test_what_a_person_changes_in_langfuse_is_left_as_they_changed_it(bench):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    await bench.end(1, revision(2, 0.75), revision=2)
    await bench.step()
    bench.fake.scores.edit(score(1)["id"], value=0.5)
    await bench.settle()
    assert (shown(bench)["value"], bench.failed.total()) == (0.5, 0), "neither missed nor another monitor's"


@pytest.mark.parametrize("looks", [0, 1])
async def test_what_a_person_changes_of_a_first_writing_stays_though_it_was_not_looked_for_before(bench, looks):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.step()
    for _ in range(looks):  # it is not visible yet
        bench.fake.visible_after_s = 1e9
        bench.now_ns += 20 * SECOND
        await bench.delivery.step()
        bench.fake.visible_after_s = 0.0
    bench.fake.scores.edit(score(1)["id"], value=0.5)
    await bench.settle()
    assert (shown(bench)["value"], bench.failed["overtaken"], len(bench.batches())) == (0.5, 0, 1)


async def test_a_revision_of_a_score_that_a_person_changed_has_not_arrived_before_it_is_shown(bench):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    bench.fake.scores.edit(score(1)["id"], value=0.5)
    bench.now_ns += HOUR
    await bench.end(1, revision(2, 0.75), revision=2)
    bench.fake.standing_fault = only("POST", "/ingestion", faults.forgets(bench.fake))
    await bench.delivery.step()
    bench.fake.standing_fault = None
    bench.now_ns += 60 * SECOND
    await bench.settle()
    assert shown(bench)["value"] == 0.75


@pytest.mark.parametrize(
    ("ahead_ms", "believed", "value"),
    [
        (-21_000, False, 0.75),
        (-19_000, True, 0.5),
        (5_000, True, 0.5),
        (5_001, False, 0.5),  # by the second look it is of the past
        (3_600_000, False, 0.75),
    ],
)
async def test_a_word_of_the_same_revision_stays_if_it_is_later_than_ours_and_not_of_the_future(
    bench, ahead_ms, believed, value
):
    """Of the future is what is more than five seconds ahead of our clock."""
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    bench.now_ns = bench.now_ns // SECOND * SECOND + HOUR
    await bench.end(1, revision(2, 0.75), revision=2)
    await bench.delivery.step()
    bench.now_ns += 20 * SECOND
    there = shown(bench)
    written = instant(bench.now_ns + ahead_ms * 10**6)
    bench.fake.scores.edit(there["id"], value=0.5, metadata={**there["metadata"], WRITTEN: written})
    await bench.delivery.step()
    assert bench.failed["overtaken"] == believed
    await bench.settle()
    assert shown(bench)["value"] == value
    assert value == 0.5 or bench.batches()[-1][-1]["timestamp"] > written, "of two of one time the earlier is shown"


async def test_a_score_that_comes_back_before_its_deletion_was_done_outlives_it(bench):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    await bench.end(1, revision=2)  # it has no such score
    await bench.step(2)
    bench.fake.scores.deletes_after_s = 1e9
    bench.now_ns += 61 * SECOND
    await bench.settle()
    assert shown(bench)["value"] == "withdrawn"
    await bench.end(1, revision(3, 0.75), revision=3)
    await bench.settle()
    assert shown(bench)["value"] == 0.75
    bench.fake.scores.remove(score(1)["id"])  # the deletion is done at last
    began_ns = bench.now_ns
    while not bench.fake.scores.stored() and bench.now_ns < began_ns + DELETES_NS:
        bench.now_ns += 120 * SECOND
        await bench.step()
    assert shown(bench)["value"] == 0.75
    assert bench.now_ns - began_ns < 2 * HOUR


async def test_a_score_that_is_withdrawn_while_its_revision_waits_is_overwritten_too(bench):
    bench.fake.scores.takes_events, bench.fake.scores.deletes_after_s = True, 1e9
    await bench.end(1, revision(1, 0.25))
    await bench.settle()
    bench.fake.standing_fault = only("POST", "/ingestion", faults.store_away())
    await bench.end(1, revision(2, 0.5), revision=2)
    await bench.step(2)
    await bench.end(1, revision=3)  # it has no such score
    bench.fake.standing_fault = None
    bench.now_ns += HOUR
    await bench.settle()
    assert shown(bench)["value"] == "withdrawn", "the first writing stands there until the deletion is done"


async def test_a_score_that_was_never_there_is_not_written_to_be_withdrawn(bench):
    bench.fake.scores.takes_events = True
    bench.fake.standing_fault = only("POST", "/ingestion", faults.store_away())
    await bench.end(1, revision(1, 0.25))
    await bench.step()
    bench.fake.standing_fault = None
    await bench.end(1, revision=2)
    await bench.settle()
    assert [event for batch in bench.batches()[1:] for event in batch] == []


async def test_a_store_that_knows_of_no_writing_finds_that_another_is_shown(bench, second):
    bench.fake.scores.takes_events = True
    await bench.end(1, revision(1, 0.25))
    await bench.end(1, revision(2, 0.5), revision=2)
    await bench.settle()
    second.now_ns = bench.now_ns + HOUR
    await second.end(1, revision(2, 0.75), revision=2)
    await second.settle()
    assert shown(bench)["value"] == 0.75


@by_transport
async def test_a_conversation_replaces_an_earlier_one_of_its_id_that_the_store_does_not_know_any_more(
    bench, mode, events
):
    bench.fake.mode, bench.fake.scores.takes_events = mode, events
    talk = {"traceId": None, "sessionId": "talk"}
    for number in (1, 2, 3):
        await bench.end(1, revision(number, number / 8, **talk), revision=number)
        await bench.settle()
    erase(bench.store.path, [bytes.fromhex(trace(1))], scores=False, now_ns=bench.now_ns)
    pause_ns = 1000 * SECOND
    bench.now_ns = max(bench.now_ns, START_NS + pause_ns) + HOUR  # it was judged long after its end
    await bench.end(pause_ns, revision(1, 0.75, **talk))
    await bench.settle()
    assert (shown(bench)["value"], bench.failed["overtaken"]) == (0.75, 0)

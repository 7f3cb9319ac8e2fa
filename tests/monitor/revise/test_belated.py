"""References that come after the spans were let go: revised where it can be, told where not, and never made worse."""

from __future__ import annotations

import json
import random

import pytest

from sidejudge.monitor.config.warnings import cautions
from sidejudge.monitor.evaluate.references.lookup import SETTLES_NS
from sidejudge.monitor.revise.reevaluation import MOST_HELD, RevisionFailure
from sidejudge.monitor.revise.schedule import AGAIN_AFTER_S, SHARE
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import observations_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, Mode
from tests.waiting import until

HOUR_S = 3600
EVERY_MODE = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value, indirect=True)


@EVERY_MODE
async def test_a_reference_that_comes_changes_and_goes_is_followed_each_time(opened):
    scene = await opened()
    await scene.judge(wrong=False)
    await scene.delivered()
    at_first = {name: row["value"] for name, row in scene.scores().items()}
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (2, True)
    await scene.delivered()
    scene.expect({**scene.right[1], "detected_keywords": ["of another call"]})
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (3, False)
    await scene.delivered()
    scene.expect(None)
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (4, None)
    assert scene.monitor.outcomes.balance().revisions == 3
    scene.now_ns += 10 * 60 * 10**9  # a deletion waits for what may still be on its way there
    await scene.delivered()
    await scene.until(lambda: {name: row["value"] for name, row in scene.scores().items()} == at_first)


async def test_what_is_read_from_langfuse_anyway_is_revised_likewise(opened):
    scene = await opened()
    project = {**langfuse(scene.fake), "poll": "200ms", "settle": "100ms"}
    source = {"langfuse": project, "otlp": {"http": "127.0.0.1:0"}}
    await scene.restart(sources=source)
    scene.arrive_in_langfuse()
    await scene.until(lambda: bool(scene.verdicts()))
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (2, False)
    assert scene.monitor.outcomes.balance().seen == 1


@pytest.mark.parametrize("noticed", [True, False], ids=["before the restart", "while it was down"])
async def test_a_restart_in_between_changes_nothing(opened, noticed):
    scene = await opened()
    await scene.judge()
    await scene.pass_by(hours=26)
    if noticed:
        scene.fake.standing_fault = away
        scene.expect(scene.right[1])
        await scene.look()
        assert (await scene.story())["belated"]["attempts"] == 0
    await scene.monitor.stop()
    scene.fake.standing_fault = None
    scene.expect(scene.right[1])
    await scene.begin()
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (2, False)
    assert scene.monitor.outcomes.balance().seen == 0, "it was seen by the process before"


def langfuse(fake):
    return {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}


def away(request):
    return faults.database_away()(request) if request.path.startswith(("/v2/observations", "/traces")) else None


async def three_owed(opened):
    """Three traces were judged yesterday; today there are references for them."""
    scene = await opened()
    for number in (1, 2, 3):
        await scene.judge(number)
    await scene.pass_by(hours=26)
    for number in (1, 2, 3):
        scene.expect(scene.right[number], number)
    return scene


async def test_while_langfuse_is_away_it_waits_and_no_trace_is_blamed(opened):
    scene = await three_owed(opened)
    scene.fake.standing_fault = away
    await scene.look(rounds=40)
    reported = (await scene.get("/v1/status"))["belated"]
    assert (reported["state"], reported["waiting"], reported["given_up"]) == ("retrying", 3, 0)
    assert sum(reported["failures"].values()) <= 3, "an outage may begin between two requests"
    assert {scene.verdict(number)["revision"] for number in (1, 2, 3)} == {1}
    scene.fake.standing_fault = None
    scene.now_ns += 2 * HOUR_S * 10**9
    await scene.go_on(rounds=20)
    assert {scene.verdict(number)["revision"] for number in (1, 2, 3)} == {2}
    assert (await scene.get("/v1/status"))["belated"]["state"] == "ok"


async def test_a_trace_that_is_gone_from_langfuse_keeps_its_verdict_and_is_given_up_with_the_reason(opened):
    scene = await opened()
    await scene.judge(in_langfuse=False)
    before = scene.verdict()
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()
    story = await scene.story()
    assert (story["belated"]["reason"], story["belated"]["given_up"]) == ("gone", False)
    for wait_s in AGAIN_AFTER_S:
        await scene.go_on()
        scene.now_ns += wait_s * 10**9
    await scene.go_on()
    attempts = len(AGAIN_AFTER_S) + 1
    assert (await scene.story())["belated"] | {"since": ""} == {
        "since": "", "attempts": attempts, "reason": "gone", "given_up": True, "next_attempt": None,
    }  # fmt: skip
    requested = len(scene.reads())
    scene.now_ns += 24 * HOUR_S * 10**9
    await scene.look()
    assert len(scene.reads()) == requested, "it is not tried for ever"
    assert scene.verdict() == before
    assert (await scene.sample("sidejudge_belated_attempts_failed_total"))['{reason="gone"}'] == attempts
    assert (await scene.sample("sidejudge_belated_given_up"))[""] == 1
    page = await scene.page(f"/traces/{before['trace_id']}")
    assert "Langfuse had nothing of the trace" in page

    # Another change begins anew, after a restart too.
    scene.arrive_in_langfuse()
    await scene.restart()
    await scene.look()
    assert scene.verdict() == before
    scene.expect({"detected_keywords": ["another"]})
    await scene.look()
    assert scene.verdict()["revision"] == 2
    assert "belated" not in await scene.story()


@pytest.mark.parametrize("later_s", [AGAIN_AFTER_S[0], -25 * HOUR_S])
async def test_a_trace_of_which_langfuse_has_less_than_was_judged_keeps_its_verdict_until_it_has_all(opened, later_s):
    scene = await opened()
    await scene.judge(in_langfuse=False)
    before = scene.verdict()
    rows = scene.arrive_in_langfuse(most=1)
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()
    assert scene.verdict() == before
    assert (await scene.story())["belated"]["reason"] == "incomplete"
    observations_of(scene.fake).put(*rows[1:])
    scene.now_ns += later_s * 10**9  # or the clock was ahead, and was set back
    await scene.go_on()
    assert scene.verdict()["revision"] == 2


async def test_a_trace_whose_contents_are_not_there_any_more_keeps_its_verdict(opened):
    scene = await opened()
    await scene.judge(in_langfuse=False)
    before = scene.verdict()
    rows = scene.arrive_in_langfuse(most=0)
    observations_of(scene.fake).put(*({**row, "input": "", "output": "", "metadata": {}} for row in rows))
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()
    assert scene.verdict() == before
    assert (await scene.story())["belated"]["reason"] in (RevisionFailure.INCOMPLETE, RevisionFailure.OTHER_RUBRICS)


@pytest.mark.parametrize(
    "broken",
    [
        faults.error(500, "Internal Server Error"), faults.error(403, "the contents are refused"),
        faults.error(404, "Not found"), faults.error(413, "Request entity too large"), lambda _: faults.page(200),
    ],
    ids=["500", "403", "404", "413", "page"],
)  # fmt: skip
async def test_a_trace_that_cannot_be_read_lets_the_others_by(opened, broken):
    scene = await three_owed(opened)
    bad = scene.verdict(2)["trace_id"]
    scene.fake.standing_fault = lambda request: broken(request) if request.params.get("traceId") == bad else None
    await scene.look(rounds=10)
    assert [scene.verdict(number)["revision"] for number in (1, 2, 3)] == [2, 1, 2]
    assert (await scene.story(2))["belated"]["reason"] == "unreadable"
    scene.now_ns += 8 * HOUR_S * 10**9
    for _ in AGAIN_AFTER_S:
        await scene.go_on(rounds=10)
        scene.now_ns += 8 * HOUR_S * 10**9
        assert (await scene.get("/v1/status"))["belated"]["state"] in ("ok", "retrying"), (
            "nobody is needed for the others"
        )
    assert (await scene.story(2))["belated"]["given_up"], "nor is it tried for ever"


async def test_it_was_drawn_once_and_is_not_drawn_again(opened):
    scene = await opened(sampling={"rate": 0.75, "rules": []})
    await scene.judge()
    assert scene.verdict()["sampling_probability"] == 0.75
    await scene.pass_by(hours=26)
    await scene.restart(sampling={"rate": 0.000001})
    scene.expect(scene.right[1])
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["sampling_probability"]) == (2, 0.75)
    assert (await scene.story())["sampling"]["selection"] == "random"
    assert scene.monitor.outcomes.balance().ended == {}, "neither sampled out nor refused as late"


async def test_the_present_is_not_told_of_yesterday(opened):
    scene = await opened(alerts={"window": "1h"})
    await scene.judge()
    await scene.pass_by(hours=26)
    await scene.judge(2, wrong=False)
    scene.expect(scene.right[1])
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (2, False)
    for _ in range(2):
        (standing,) = scene.monitor.view.status().services
        assert (standing.estimate, standing.incomplete) == (None, 1), "only what was judged in the last hour counts"
        await scene.restart()


async def test_counters_count_the_first_verdict_and_the_revision_as_one(opened):
    scene = await opened()
    await scene.judge()
    await scene.pass_by(hours=26)
    names = [f"sidejudge_{name}" for name in ("verdicts_total", "verdicts_incomplete_total", "traces_total")]
    names.append("sidejudge_evaluation_lag_seconds_count")
    before = [await scene.sample(name) for name in names]
    assert any(before)
    scene.expect(scene.right[1])
    await scene.look()
    assert [await scene.sample(name) for name in names] == before
    assert sum((await scene.sample("sidejudge_verdicts_revised_total")).values()) == 1
    assert (await scene.sample("sidejudge_belated_traces_total"))['{outcome="revised"}'] == 1


async def test_a_window_that_reaches_back_to_the_first_verdict_has_the_revision_in_its_place(opened):
    scene = await opened(alerts={"window": "48h"})
    await scene.judge()
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()

    (reported,) = scene.monitor.view.status().services
    assert (reported.incomplete, reported.estimate.n) == (0, 1)
    await scene.restart()
    (reported,) = scene.monitor.view.status().services
    assert (reported.incomplete, reported.estimate.n) == (0, 1)
    scene.now_ns += 23 * HOUR_S * 10**9
    (reported,) = scene.monitor.view.status().services
    assert reported.estimate is None, "it leaves the window when the first verdict would have"


async def test_what_comes_later_than_reevaluate_within_changes_nothing(opened):
    scene = await opened(references=[{"langfuse_dataset": "golden", "reevaluate_within": "30h"}])
    await scene.judge()
    await scene.pass_by(hours=31)
    scene.expect(scene.right[1])
    await scene.look()
    assert scene.reads() == []
    assert scene.monitor.store.late_references.status().waiting == 0


async def test_verdicts_are_kept_for_as_long_as_they_may_be_revised(opened, tmp_path):
    scene = await opened(store={"path": str(tmp_path / "state.sqlite"), "retention": "1h"})
    await scene.judge()
    await scene.pass_by(hours=150)
    assert scene.verdict()["revision"] == 1
    scene.expect(scene.right[1])
    await scene.look()
    assert scene.verdict()["revision"] == 2
    await scene.pass_by(hours=20)
    assert scene.verdicts() == [], "counted from the first verdict"


async def test_without_langfuse_it_is_counted_and_said_and_what_helps(opened, tmp_path, caplog):
    path = tmp_path / "golden.jsonl"
    path.write_text("")
    scene = await opened(sinks={}, references=[{"file": str(path), "key": "trace_id"}])
    (cause, remedy), *_ = [each for each in cautions(scene.monitor.config) if each[0].startswith("references")]
    assert "later than 10m after a verdict changes nothing" in cause
    assert "sources.langfuse" in remedy
    await scene.judge()
    await scene.pass_by(hours=2)
    for expected in ("right", "right", "better"):
        path.write_text(json.dumps({"trace_id": scene.verdict()["trace_id"], "expected_outcome": expected}) + "\n")
        with caplog.at_level("WARNING", "sidejudge.late_references"):
            await scene.look()
    assert scene.verdict()["revision"] == 1
    assert (await scene.sample("sidejudge_belated_attempts_failed_total"))['{reason="no_langfuse"}'] == 2
    assert (await scene.story())["belated"]["reason"] == "no_langfuse"
    assert (await scene.get("/v1/status"))["belated"]["state"] == "off"
    assert sum("sources.langfuse" in record.message for record in caplog.records) == 2

    # Whoever does what is said gets what was missed.
    scene.arrive_in_langfuse()
    await scene.restart(sinks={"langfuse": langfuse(scene.fake)})
    await scene.look()
    assert scene.verdict()["revision"] == 2


async def test_what_a_file_lacks_only_while_it_is_written_costs_nothing(opened, tmp_path):
    path = tmp_path / "golden.jsonl"
    scene = await opened(references=[{"file": str(path), "key": "trace_id"}])
    lines = [json.dumps({"trace_id": scene.id_of(number), "expected_outcome": "right"}) for number in (1, 2)]
    path.write_text("\n".join(lines))
    await scene.monitor.references.refresh()
    await scene.judge()
    await scene.pass_by(hours=26)
    path.write_text(lines[1])
    await scene.monitor.references.refresh()
    await scene.go_on()
    assert (await scene.story())["belated"]["reason"] is None
    path.write_text("\n".join(lines))
    await scene.look()
    assert (scene.verdict()["revision"], scene.reads()) == (1, [])
    assert "belated" not in await scene.story()


async def test_a_few_are_read_at_a_time_and_leave_most_of_the_budget_to_others(opened):
    scene = await opened()
    many = MOST_HELD + 3
    for number in range(1, many + 1):
        await scene.judge(number)
    await scene.pass_by(hours=26)
    for number in range(1, many + 1):
        scene.expect(scene.right[number], number)
    await scene.monitor.references.refresh()
    scene.now_ns += SETTLES_NS
    await scene.monitor.revisions.round()
    assert len(scene.reads()) == MOST_HELD
    await scene.monitor.revisions.round()
    assert len(scene.reads()) == MOST_HELD, "the clock stands still"
    per_minute = scene.monitor.config.sinks.langfuse.requests_per_minute
    scene.now_ns += int(MOST_HELD * 60e9 / (SHARE * per_minute)) + 1
    await scene.monitor.revisions.round()
    assert len(scene.reads()) == many
    await scene.go_on()
    assert {scene.verdict(number)["revision"] for number in range(1, many + 1)} == {2}


async def test_spans_that_come_after_all_are_refused_as_ever(opened):
    scene = await opened()
    await scene.judge()
    await scene.pass_by(hours=26)
    scene.expect(scene.right[1])
    await scene.look()
    revised = scene.verdict()
    await scene.post(scene.spans()[:1])
    await until(lambda: scene.monitor.intake.counts.late > 0)
    assert scene.verdict() == revised


@pytest.mark.parametrize("seed", [1, 2])
async def test_through_faults_of_every_kind_and_restarts_each_verdict_is_revised_once(opened, seed):
    dice, many = random.Random(seed), range(1, 7)
    scene = await opened()
    for number in many:
        await scene.judge(number, wrong=number % 2 == 0)
    await scene.delivered(many[-1])
    await scene.pass_by(hours=26)
    kinds = [faults.database_away(), faults.proxy_page(), faults.resets(), faults.resets(20), faults.resources()]
    scene.fake.standing_fault = lambda request: dice.choice(kinds)(request) if dice.random() < 0.3 else None
    for number in many:
        scene.expect(scene.right[number], number)
        await scene.look(rounds=2)
        if dice.random() < 0.4:
            await scene.restart()
    scene.fake.standing_fault = None
    for _ in AGAIN_AFTER_S:
        await scene.look(rounds=10)
        scene.now_ns += AGAIN_AFTER_S[-1] * 10**9
    await scene.go_on(rounds=10)
    assert [scene.verdict(number)["revision"] for number in many] == [2] * len(many)
    for number in many:
        reported, known = scene.verdict(number), scene.known_at_once(number).to_json()
        assert [reported[key] for key in ("state", "composite", "passed", "reason")] == [
            known[key] for key in ("state", "composite", "passed", "reason")
        ]
        assert reported["passed"] is not None
    reported = scene.monitor.store.late_references.status()
    assert (reported.waiting, reported.over) == (0, 0)
    await scene.until(lambda: not scene.monitor.store.outbox.counts().waiting)
    for number in many:
        passes = scene.scores(number)["entity_pass"]["metadata"]
        assert (passes["state"], str(passes["revision"])) == (scene.verdict(number)["state"], "2")

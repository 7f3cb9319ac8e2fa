"""Sessions of history: the conversation of all turns in the range, and what is said of those that go on outside."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.langfuse.normalise import raw_spans
from sidejudge.integrations.langfuse.observations import instant, instant_ns
from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.runtime.app import Monitor
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import observations_of
from tests.fakes.langfuse.server import Mode
from tests.monitor.offline.backfill.conftest import MINUTE_NS, START_NS


def trace(number: int) -> str:
    return f"{number:032x}"


@pytest.fixture
def talk(scene):
    scene.config = Config.model_validate(
        {
            "sampling": {"rate": 1.0}, "routes": [{"rubrics": ["answer"]}],
            "sessions": {"routes": [{"rubrics": ["dimensions"]}]},
            "sinks": {"langfuse": scene.config.sinks.langfuse.model_dump()},
        }
    )  # fmt: skip

    def put(number: int, minutes_ago: float, session: str | None = "chat", **more) -> None:
        start_ns = START_NS - int(minutes_ago * MINUTE_NS)
        row = {
            "id": f"{number:016x}", "traceId": trace(number), "startTime": written(start_ns),
            "endTime": written(start_ns + 10**9), "name": "chat", "type": "AGENT", "isRootObservation": True,
            "input": json.dumps([{"role": "user", "content": f"question {number}"}]), "output": f"answer {number}",
            "sessionId": session or "", **more,
        }  # fmt: skip
        observations_of(scene.fake).put(row)

    return put


def written(at_ns: int) -> str:
    return instant(at_ns)


def session_scores(scene) -> dict[tuple[str, str], dict]:
    return {(row["sessionId"], row["name"]): row for row in scene.fake.scores.stored() if row["sessionId"]}


def sessions(scene) -> list[dict]:
    """Stories of what was judged as a session."""
    store = Store(scene.folder / "backfill.sqlite")
    try:
        verdicts = [verdict for verdict in store.verdicts_since(0) if verdict["trace_id"] is None]
        return [store.details(verdict["case_id"]) for verdict in verdicts]
    finally:
        store.close()


@pytest.mark.parametrize("mode", [Mode.V3, Mode.NEW], ids=lambda mode: mode.value)
async def test_the_turns_of_the_range_are_judged_as_one_conversation_whose_scores_are_the_sessions(scene, talk, mode):
    scene.fake.mode = mode
    for number, ago in ((1, 60), (2, 55), (3, 50)):
        talk(number, ago)
    talk(4, 58, None)
    at = await scene.run()
    (reported,) = sessions(scene)
    assert reported["traces"] == [trace(1), trace(2), trace(3)]
    assert (at.sessions, at.sessions_cut, at.done) == (1, 0, 4)
    rows = session_scores(scene)
    assert ("chat", "dimensions_state") in rows
    assert all(row["id"] == score_id("chat", name) for (_, name), row in rows.items())
    again = await scene.run()
    assert (again.sessions, again.before) == (0, 4)
    assert session_scores(scene) == rows


class EachAlone:
    """Every trace is a shard."""

    elsewhere = 0

    def __init__(self, drawn) -> None:
        self.drawn = drawn

    async def parts(self):
        for each in self.drawn:
            yield [each]


async def test_a_session_of_an_earlier_shard_is_not_looked_for_again(scene, talk):
    talk(1, 110, "early")
    for number in (2, 3, 4, 5):
        talk(number, 60, None)
    at = await scene.run(shards=EachAlone)
    assert (at.sessions, at.done) == (1, 5)
    asked = [request for request in scene.fake.requests if ("sessionId", "early") in request.query]
    assert len(asked) == 1


async def test_the_time_of_a_sessions_scores_is_the_end_of_its_last_turn(scene, talk):
    talk(1, 60)
    talk(2, 50)
    await scene.run()
    assert {row["timestamp"] for row in session_scores(scene).values()} == {written(START_NS - 50 * MINUTE_NS + 10**9)}


@pytest.mark.parametrize("mode", [Mode.V3, Mode.NEW], ids=lambda mode: mode.value)
@pytest.mark.parametrize(("first", "second"), [(125, 110), (10, -5)], ids=["before", "after"])
async def test_a_session_with_turns_outside_the_range_is_not_complete_and_is_said(scene, talk, mode, first, second):
    scene.fake.mode = mode
    talk(1, first)
    talk(2, second)
    at = await scene.run(minutes=120)
    (reported,) = sessions(scene)
    assert len(reported["traces"]) == 1
    assert reported["completion"] == "pressure"
    assert (at.sessions, at.sessions_cut) == (1, 1)
    assert reported["verdicts"][0]["state"] == "incomplete" or "complete" in json.dumps(reported["verdicts"])


async def test_a_part_of_a_session_replaces_nothing_that_langfuse_has_of_it(scene, talk):
    talk(1, 125, output="")
    talk(2, 115)
    await scene.run(minutes=130)
    whole = session_scores(scene)
    (scene.folder / "backfill.sqlite").unlink()
    for number in (3, 4):  # the second call has what the first left in its outbox
        at = await scene.run(minutes=120)
        assert (at.sessions, at.sessions_cut, at.revised, session_scores(scene)) == (1, 1, 0, whole)
        talk(number, 115 - number)


async def test_what_is_outside_the_range_by_more_than_a_pause_is_another_session(scene, talk):
    talk(1, 200)
    talk(2, 110)
    at = await scene.run(minutes=120)
    assert (at.sessions, at.sessions_cut) == (1, 0)


async def test_of_several_sessions_under_one_id_the_last_is_judged(scene, talk):
    talk(1, 110)
    talk(2, 108)
    talk(3, 40)
    await scene.run()
    (reported,) = sessions(scene)
    assert reported["traces"] == [trace(3)]


async def test_a_session_of_which_a_turn_cannot_be_read_is_not_complete(scene, talk):
    talk(1, 60)
    talk(2, 55)
    broken = faults.error(500, "Internal Server Error")
    scene.fake.standing_fault = lambda requested: (
        broken(requested) if requested.params.get("traceId") == trace(2) else None
    )
    at = await scene.run()
    assert at.unjudged == {"not read: server_error": 1}
    assert (at.sessions, at.sessions_cut) == (1, 1)
    scene.fake.standing_fault = None
    again = await scene.run()
    assert (again.before, again.sessions, again.sessions_cut) == (1, 1, 0)
    rows = session_scores(scene)
    assert {row["metadata"]["revision"] for row in rows.values()} == {2}


async def test_a_session_whose_other_turns_cannot_be_listed_is_not_complete_and_lets_the_others_by(scene, talk):
    talk(1, 60)
    refused = faults.error(403, "the contents are refused")
    scene.fake.standing_fault = lambda request: refused(request) if "sessionId" in request.params else None
    at = await scene.run(minutes=62)
    assert (at.sessions, at.sessions_cut) == (1, 1)
    scene.fake.standing_fault = None
    again = await scene.run(minutes=62)
    assert (again.sessions, again.sessions_cut) == (1, 0)


async def test_a_wider_range_takes_up_the_turns_that_an_earlier_call_has_read(scene, talk):
    talk(1, 125)
    talk(2, 110)
    cut = await scene.run(minutes=120)
    whole = await scene.run(minutes=130)
    assert (cut.sessions_cut, whole.sessions_cut, whole.sessions) == (1, 0, 1)
    assert sessions(scene)[-1]["traces"] == [trace(1), trace(2)]


async def test_sessions_are_drawn_by_their_id_and_their_traces_by_their_own(scene, talk):
    stated = scene.config.model_dump()
    stated["sampling"]["rate"], stated["sessions"]["sampling_rate"] = 1e-9, 1.0
    talk(1, 60)
    talk(2, 55)
    at = await scene.run(config=Config.model_validate(stated))
    assert at.unjudged == {"sampled_out": 2}
    assert at.sessions == 1
    assert session_scores(scene)
    assert not [row for row in scene.fake.scores.stored() if row["traceId"]]


async def test_with_a_filter_no_session_is_judged_for_its_turns_are_not_all_read(scene, talk):
    talk(1, 60)
    at = await scene.run(wanted=MatchSection.model_validate({"name": "chat"}))
    assert (at.done, at.sessions) == (1, 0)
    assert not session_scores(scene)


async def as_live(scene, tmp_path) -> dict[str, dict]:
    """What a live monitor would write of the same rows, by name of the score."""
    stated = scene.config.model_dump()
    stated["store"]["path"] = str(tmp_path / "live.sqlite")
    now = [START_NS]
    monitor = Monitor(Config.model_validate(stated), clock_ns=lambda: now[0])
    try:
        rows = sorted(observations_of(scene.fake).rows(), key=lambda row: row["startTime"])
        for row in rows:
            now[0] = instant_ns(row["endTime"]) + 10**9
            await monitor.intake.consume(encode_spans(raw_spans([row])))
            for minutes in (1, 2):
                monitor.pipeline.waiting.extend(monitor.judging.due())
                await monitor.pipeline.drain()
                now[0] += minutes * MINUTE_NS
        for _ in range(2):
            now[0] += 60 * MINUTE_NS
            monitor.pipeline.waiting.extend(monitor.judging.due())
            await monitor.pipeline.drain()
        bodies = [json.loads(row.body) for row in monitor.store.outbox.due(now[0] + MINUTE_NS, 1000)]
        return {body["name"]: body for body in bodies if body.get("sessionId")}
    finally:
        monitor.store.close()


async def test_a_session_of_history_is_told_as_a_live_monitor_tells_it(scene, talk, tmp_path):
    for number, ago in ((1, 60), (2, 57), (3, 50)):
        talk(number, ago)
    live = await as_live(scene, tmp_path)
    await scene.run()
    history = {body["name"]: body for body in scene.outbox() if body.get("sessionId")}
    assert history == live
    assert history


async def test_what_a_live_monitor_said_of_a_session_is_left_alone_where_it_is_the_same(scene, talk):
    talk(1, 60)
    talk(2, 55)
    await scene.run()
    rows = session_scores(scene)
    (scene.folder / "backfill.sqlite").unlink()
    at = await scene.run()
    assert session_scores(scene) == rows
    assert at.revised == 0

"""Verdicts in doubt are put into an annotation queue: once, the gravest first, and no more than people can look at."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.annotations import ListedScore
from sidejudge.integrations.store.sqlite import FinishedTrace
from sidejudge.monitor.config.langfuse import AnnotationQueueSection
from sidejudge.monitor.feedback.annotation_queue import AnnotationQueueFeeder
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.review_reason import JUDGES_DISAGREE
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.queues import queues
from tests.fakes.langfuse.server import FakeLangfuse, Mode, only
from tests.langfuse_bench import trace

HOUR_NS = 3600 * 10**9


@pytest.fixture
def fake():
    with FakeLangfuse(Mode.NEW, parts=[queues]) as server:
        server.queue_id = server.queues.add("doubtful")
        yield server


class Scene:
    def __init__(self, bench) -> None:
        self.bench, self.fake = bench, bench.fake

    async def routing(self, *, per_hour=10, queue="doubtful") -> AnnotationQueueFeeder:
        section = AnnotationQueueSection(name=queue, per_hour=per_hour)
        found = AnnotationQueueFeeder(section, self.bench.feedback_parts(qa=RUBRICS["qa"]))
        found.restore()
        await found.tick()
        return found

    async def judge(self, number, *flags, session=None, passed=True) -> None:
        """A verdict is committed."""
        self.bench.now_ns += 10**9
        score = {"metric": "m", "weight": 1.0, "value": 1.0, "method": "judge", "judge": {"flags": list(flags)}}
        verdict = {
            "rubric": "qa", "trace_id": None if session else trace(number), "session_id": session, "passed": passed,
            "composite": 1.0, "pass_mark": 0.8, "scores": [score], "service": "svc", "environment": None,
        }  # fmt: skip
        await self.bench.store.finish(
            FinishedTrace(
                trace_id=trace(number), service="svc", reason="scored", completion="rooted", revision=1, details={},
                closed_ns=self.bench.now_ns, verdicts=[verdict],
            )
        )  # fmt: skip

    def put(self):
        return [(kind, of if kind == "SESSION" else int(of, 16)) for kind, of in self.fake.queues.objects()]


@pytest.fixture
def scene(bench):
    return Scene(bench)


async def test_what_is_in_doubt_is_put_in_once_and_what_is_not_is_not(scene):
    routing = await scene.routing()
    await scene.judge(1, "credit for an empty answer")
    await scene.judge(2)
    await scene.judge(3, JUDGES_DISAGREE)
    await scene.judge(4, JUDGES_DISAGREE, session="s1")
    for _ in range(3):
        await routing.tick()
    assert scene.put() == [("TRACE", 3), ("SESSION", "s1"), ("TRACE", 1)]
    reported = routing.snapshot()
    assert (reported.put, reported.left_out, reported.reason) == (
        {"disagreement": 2, "contradiction": 1, "borderline": 0}, 0, "",
    )  # fmt: skip


async def test_what_was_judged_before_somebody_asked_for_it_is_left_alone(scene):
    await scene.judge(1, JUDGES_DISAGREE)
    scene.bench.now_ns += HOUR_NS
    routing = await scene.routing()
    await routing.tick()
    assert scene.put() == []


async def test_no_more_are_put_in_than_an_hour_allows_and_the_rest_is_left_out(scene):
    routing = await scene.routing(per_hour=3)
    for number in range(1, 6):
        await scene.judge(number, "credit for an empty answer")
    await routing.tick()
    assert len(scene.put()) == 3
    assert routing.snapshot().left_out == 2
    scene.bench.now_ns += HOUR_NS
    await routing.tick()
    await scene.judge(7, "credit for an empty answer")
    await routing.tick()
    assert [number for _, number in scene.put()] == [1, 2, 3, 7]


async def test_what_is_dated_ahead_of_a_clock_that_was_set_back_counts_in_no_hour(scene):
    routing = await scene.routing(per_hour=1)
    await scene.judge(1, "credit for an empty answer")
    await routing.tick()
    scene.bench.now_ns -= 24 * HOUR_NS
    await scene.judge(2, "credit for an empty answer")
    await routing.tick()
    assert [number for _, number in scene.put()] == [1, 2]


async def test_another_process_puts_nothing_in_twice(scene):
    routing = await scene.routing()
    await scene.judge(1, JUDGES_DISAGREE)
    await routing.tick()
    again = await scene.routing()
    await again.tick()
    assert scene.put() == [("TRACE", 1)]


async def test_a_graver_doubt_that_comes_while_no_answer_came_has_nothing_put_in_twice(scene):
    routing = await scene.routing()
    await scene.judge(1, "credit for an empty answer")
    path = f"/annotation-queues/{scene.fake.queue_id}/items"
    scene.fake.standing_fault = only("POST", path, faults.lost_answer(scene.fake))
    await routing.tick()
    scene.fake.standing_fault = None
    await scene.judge(2, JUDGES_DISAGREE)
    await routing.tick()
    assert scene.put() == [("TRACE", 1), ("TRACE", 2)]


@pytest.mark.parametrize("killed", [False, True])
async def test_where_no_answer_came_it_is_looked_for_before_it_is_put_in_again(scene, killed):
    routing = await scene.routing()
    await scene.judge(1, JUDGES_DISAGREE)
    path = f"/annotation-queues/{scene.fake.queue_id}/items"
    scene.fake.standing_fault = only("POST", path, faults.lost_answer(scene.fake))
    await routing.tick()
    assert scene.put() == [("TRACE", 1)]
    assert routing.snapshot().reason
    scene.fake.standing_fault = None
    routing = await scene.routing() if killed else routing
    await routing.tick()
    await routing.tick()
    assert scene.put() == [("TRACE", 1)]
    assert routing.snapshot().reason == ""


@pytest.mark.parametrize("fault", [faults.proxy_page(), faults.database_away(), faults.resets(), faults.error(401)])
async def test_an_outage_is_told_and_what_is_in_doubt_waits(scene, fault):
    routing = await scene.routing()
    await scene.judge(1, JUDGES_DISAGREE)
    scene.fake.standing_fault = fault
    await routing.tick()
    assert routing.snapshot().reason
    scene.fake.standing_fault = None
    await routing.tick()
    assert scene.put() == [("TRACE", 1)]
    assert routing.snapshot().reason == ""


async def test_what_the_queue_refuses_lets_the_others_by(scene):
    routing = await scene.routing()
    await scene.judge(1, JUDGES_DISAGREE)
    await scene.judge(2, JUDGES_DISAGREE)
    refusal = faults.error(400, "Invalid request data", error=[])
    path = f"/annotation-queues/{scene.fake.queue_id}/items"
    scene.fake.standing_fault = only("POST", path, lambda r: refusal(r) if r.body["objectId"] == trace(1) else None)
    await routing.tick()
    await routing.tick()
    assert scene.put() == [("TRACE", 2)]


@pytest.mark.parametrize(
    ("queue", "stated"), [("nobody made it", "no annotation queue"), ("twin", "2 annotation queues")]
)
async def test_a_queue_that_cannot_be_told_is_said_and_nothing_is_put_in(scene, queue, stated):
    scene.fake.queues.add("twin")
    scene.fake.queues.add("twin")
    routing = await scene.routing(queue=queue)
    await scene.judge(1, JUDGES_DISAGREE)
    await routing.tick()
    assert scene.put() == []
    assert stated in routing.snapshot().reason


async def test_a_queue_that_was_made_anew_is_found_again(scene):
    routing = await scene.routing()
    await scene.judge(1, JUDGES_DISAGREE)
    await routing.tick()
    scene.fake.queues.all.clear()
    scene.fake.queues.add("doubtful")
    await scene.judge(2, JUDGES_DISAGREE)
    await routing.tick()
    await routing.tick()
    assert [number for _, number in scene.put()] == [1, 2]


async def test_labels_on_what_was_put_in_are_known_as_asked_for(scene):
    routing = await scene.routing()
    await scene.judge(1, JUDGES_DISAGREE)
    await routing.tick()
    again = await scene.routing()

    def label(number, queue=None):
        return ListedScore(
            id="x", subject=trace(number), kind="trace", observation=None, name="qa_pass", value=1.0, correction=False,
            author="ann", queue=queue, at_ns=0,
        )  # fmt: skip

    assert again.requested_for(label(1))
    assert not again.requested_for(label(2))
    assert routing.requested_for(label(2, scene.fake.queue_id))
    assert not routing.requested_for(label(2, "another"))

"""Docket: what waits for a judge waits in order, within bounds, and nothing else waits behind it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from sidejudge.integrations.embed import EmbeddingError
from sidejudge.integrations.otlp.wire.tracestate import NEVER, randomness
from sidejudge.integrations.store.sqlite import StoreError
from sidejudge.monitor.evaluate.backends import EMBEDDINGS_OUT, OUTAGE, OVER_BUDGET, Backends
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.evaluate.judge_queue import DeferredTraces
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.metrics.settle import settle
from sidejudge.scoring.questions.kinds import GradeAnswer, SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import BEHIND, Failed, Judgement, Method, Scored, is_of_outage
from sidejudge.scoring.verdict.documents import failed_reasons
from tests.linear_time import steps
from tests.monitor.evaluate.bench import NOW, ORIGIN, PipelineBench, rubric
from tests.otlp_requests import S, span, trace
from tests.waiting import until

SECOND = 10**9
SAID = {"langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow."}
YES = Answer(value=True, method=Method.JUDGE)


def judged(case):
    settled = settle((yield (GradeAnswer(),)), bool)
    return Scored(value=1.0, method=Method.JUDGE) if isinstance(settled, tuple) else settled


RUBRICS = {"answer": rubric("answer", judged), "workflow": rubric("workflow", lambda _: Scored(value=1.0))}


class Scripted:
    """A judge whose answers are let through one by one, and which can be out of reach."""

    def __init__(self):
        self.outage: str | None = None
        self.reachable = False
        self.shares = {"high": 1.0, "normal": 1.0, "low": 1.0}
        self.requested: list[str] = []
        self.reply: object = YES
        self.gate = asyncio.Event()
        self.gate.set()
        self.most = self.now = 0
        self.came: Counter = Counter()

    async def answer(self, case, questions, account):
        self.requested.append(case.trace_id)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.gate.wait()
        finally:
            self.now -= 1
        reply = self.reply(case) if callable(self.reply) else self.reply
        return dict.fromkeys(questions, reply)

    def can_answer(self, question):
        return isinstance(question, GradeAnswer)

    def share(self, priority):
        self.came[priority] += 1
        return self.shares[priority]


class Bench(PipelineBench):
    def __init__(self, path, routes=({"rubrics": ["answer"]},), rate=1.0, **more):
        self.judge = Scripted()
        evaluator = Evaluator(RUBRICS, others=Backends(order=(self.judge,), judge=self.judge))
        super().__init__(path, evaluator, routes, sampling={"rate": rate}, attributes=SAID, **more)

    async def ended(self, count, seconds=20):
        async with asyncio.timeout(seconds):
            while len(self.reported) < count:
                await self.pipeline.drain()
                await self.pipeline.pause(0.02)

    async def drained(self, laps=5):
        """Several turns of the loop, as many as change anything."""
        for _ in range(laps):
            await self.pipeline.drain()
            await asyncio.sleep(0.02)

    def numbers(self):
        return [int.from_bytes(ending.trace_id[:7], "big") for ending in self.reported]

    def requested(self):
        return [int(trace_id[:14], 16) for trace_id in self.judge.requested]


@pytest.fixture
async def bench(tmp_path):
    made = []

    def make(**more):
        made.append(Bench(tmp_path / "s.sqlite", **more))
        return made[-1]

    yield make
    for one in made:
        await one.judge_queue.close()
        one.store.close()


async def test_what_needs_the_judge_is_judged_and_told_like_all_else(bench):
    b = bench()
    await b.close(1)
    await b.ended(1)
    (ending,) = b.reported
    assert (ending.reason, ending.verdicts[0].passed, ending.verdicts[0].scores[0].result.method) == (
        EndReason.SCORED, True, Method.JUDGE,
    )  # fmt: skip
    details = b.store.details(trace(1))
    assert (details["reason"], details["sampling"]["judged_share"], b.store.open_traces()) == ("scored", 1.0, set())


async def test_what_needs_no_judge_does_not_wait_behind_what_does(bench):
    b = bench(routes=[{"match": {"name": "plain"}, "rubrics": ["workflow"]}, {"rubrics": ["answer"]}])
    b.judge.gate.clear()
    await b.close(1)
    await b.close(2, name="plain")
    await b.drained()
    assert (b.numbers(), b.judge_queue.under_way, b.judge_queue.knows(trace(1))) == ([2], 1, True)
    b.judge.gate.set()
    await b.ended(2)
    assert b.numbers() == [2, 1]


async def test_no_more_are_under_way_than_there_is_room_for_and_the_others_follow_in_order(bench):
    b = bench(room=3)
    b.judge.gate.clear()
    for number in range(10):
        await b.close(number)
    await b.drained()
    assert (b.judge_queue.under_way, b.judge_queue.waiting, b.requested()) == (3, 7, [0, 1, 2])
    b.judge.gate.set()
    await b.ended(10)
    assert (b.requested(), b.judge.most, b.judge_queue.waiting) == (list(range(10)), 3, 0)


async def test_an_outage_parks_what_needs_the_judge_and_it_resumes_in_order_of_age(bench):
    b = bench()
    b.judge.outage = "authentication failed"
    for number in range(6):
        await b.close(number)
        await b.drained(1)
        b.now += SECOND
    assert (b.reported, b.judge.requested, b.judge_queue.waiting, b.judge_queue.deferred.oldest_ns) == ([], [], 6, NOW)
    assert len(b.store.open_traces()) == 6
    b.judge.outage = None
    await b.close(6)
    await b.ended(7)
    assert b.requested() == list(range(7))
    assert {ending.reason for ending in b.reported} == {EndReason.SCORED}


async def test_after_an_outage_the_oldest_goes_alone_until_it_is_answered(bench):
    b = bench()
    b.judge.outage = "unreachable"
    for number in range(6):
        await b.close(number)
    await b.drained()
    b.judge.outage = None
    b.judge.gate.clear()
    await b.drained()
    assert b.requested() == [0]
    b.judge.gate.set()
    await b.ended(6)
    assert b.requested() == list(range(6))


async def test_what_was_being_asked_when_the_outage_began_is_asked_again_and_stands_where_it_stood(bench):
    b = bench(room=2)
    b.judge.gate.clear()
    for number in range(4):
        await b.close(number)
    await b.drained()
    b.judge.outage, b.judge.reply = "overloaded", NoAnswer(f"{OUTAGE}: overloaded", failed=True)
    b.judge.gate.set()
    await b.drained()
    assert (b.reported, b.judge_queue.waiting) == ([], 4)
    b.judge.outage, b.judge.reply = None, YES
    await b.ended(4)
    assert b.requested() == [0, 1, 0, 1, 2, 3]
    assert {ending.reason for ending in b.reported} == {EndReason.SCORED}


async def test_a_failure_of_one_case_is_its_own_and_ends_it(bench):
    b = bench()
    b.judge.reply = lambda case: (
        NoAnswer("parse_error: no JSON", failed=True) if case.trace_id == trace(1).hex() else YES
    )
    for number in range(3):
        await b.close(number)
    await b.ended(3)
    reasons = {ending.trace_id: ending.reason for ending in b.reported}
    assert reasons == {trace(0): EndReason.SCORED, trace(1): EndReason.JUDGE_FAILED, trace(2): EndReason.SCORED}
    assert b.store.details(trace(1))["verdicts"][0]["passed"] is None


async def test_what_waited_too_long_is_judged_without_the_judge(bench):
    b = bench(max_wait_ns=60 * SECOND)
    b.judge.outage = "credit exhausted"
    await b.close(1)
    await b.drained()
    b.now += 59 * SECOND
    await b.close(2)
    await b.drained()
    assert b.reported == []
    b.now += SECOND
    await b.ended(1)
    (ending,) = b.reported
    assert (ending.trace_id, ending.reason, ending.verdicts[0].passed) == (trace(1), EndReason.JUDGE_FAILED, None)
    assert "could not be asked in time: credit exhausted" in ending.verdicts[0].reason
    assert (b.judge.requested, b.judge_queue.waiting) == ([], 1)


async def test_what_waited_too_long_for_one_of_several_judges_is_judged_by_the_others(bench):
    b = bench(max_wait_ns=60 * SECOND)
    b.judge.outage, b.judge.reachable = "credit exhausted", True
    b.judge.reply = lambda case: NoAnswer(f"{OUTAGE}: out", failed=True) if case.trace_id == trace(2).hex() else YES
    for number in (1, 2):
        await b.close(number)
    await b.drained()
    assert (b.judge.requested, b.reported) == ([], [])
    b.now += 60 * SECOND
    await b.ended(2)
    assert {e.trace_id: e.reason for e in b.reported} == {trace(1): EndReason.SCORED, trace(2): EndReason.JUDGE_FAILED}
    assert (sorted(b.requested()), b.judge_queue.waiting, b.judge.came.total()) == ([1, 2], 0, 2)


async def test_what_waited_too_long_when_the_judge_comes_back_is_judged_and_not_called_too_much(bench):
    b = bench(max_wait_ns=60 * SECOND)
    b.judge.outage = "credit exhausted"
    await b.close(1)
    await b.drained()
    b.now += 60 * SECOND
    b.judge.outage, b.judge.reachable = None, True  # as a breaker that is half open
    await b.ended(1)
    assert (b.reported[0].reason, b.requested()) == (EndReason.SCORED, [1])


async def test_of_too_many_the_oldest_waits_no_longer(bench):
    b = bench(max_waiting=2)
    b.judge.outage = "unreachable"
    for number in range(5):
        await b.close(number)
    await b.ended(3)
    await b.drained()
    assert (sorted(b.numbers()), b.judge_queue.waiting) == ([0, 1, 2], 2)
    assert {ending.reason for ending in b.reported} == {EndReason.JUDGE_FAILED}


async def test_what_waits_too_long_behind_a_slow_judge_names_an_outage_only_where_it_waited_in_one(bench):
    b = bench(room=1, max_wait_ns=60 * SECOND)
    b.judge.outage = "credit exhausted"
    for number in (1, 2, 3):
        await b.close(number)
    await b.drained()

    def slow(_case):
        b.judge.gate.clear()
        return YES

    b.judge.outage, b.judge.reply = None, slow
    await b.ended(1)
    b.now += SECOND
    await b.close(4)
    await b.drained()
    assert (b.requested(), b.judge_queue.waiting) == ([1, 2], 2)
    b.now += 60 * SECOND
    await b.drained()
    b.judge.gate.set()
    await b.ended(4)
    reasons = {ending.trace_id: ending.verdicts[0].reason for ending in b.reported}
    assert "could not be asked in time: credit exhausted" in reasons[trace(3)]
    assert f"could not be asked in time: {BEHIND}" in reasons[trace(4)]
    of = {ending.trace_id: failed_reasons(ending.verdicts[0].to_json()) for ending in b.reported}
    assert [any(map(is_of_outage, of[trace(number)])) for number in (3, 4)] == [True, False]


async def test_late_spans_of_what_waits_are_judged_with_it_once(bench):
    b = bench()
    b.judge.outage = "unreachable"
    await b.close(1)
    await b.drained()
    await b.close(1, S(trace_id=trace(1), span_id=span(2), parent_id=span(1)), revision=2)
    await b.drained()
    b.judge.outage = None
    await b.ended(1)
    await b.drained()
    assert [(ending.revision, ending.chunks) for ending in b.reported] == [(1, 2)]
    assert b.store.open_traces() == set()


async def test_late_spans_of_what_is_under_way_wait_until_it_is_told(bench):
    b = bench()
    b.judge.gate.clear()
    await b.close(1)
    await b.drained()
    await b.close(1, S(trace_id=trace(1), span_id=span(2), parent_id=span(1)), revision=2)
    await b.drained()
    assert (b.reported, len(b.pipeline.waiting)) == ([], 1)
    b.judge.gate.set()
    await b.ended(2)
    assert [(ending.revision, ending.chunks, len(ending.changed)) for ending in b.reported] == [(1, 1, 1), (2, 2, 0)]


async def test_a_store_that_refuses_costs_no_second_question(bench):
    b = bench()
    b.store._write_connection.execute("PRAGMA query_only = ON")
    b.pipeline.waiting.append(Closing(trace_id=trace(1), completion="idle", revision=1, origin=ORIGIN))
    b.store._write_connection.execute("PRAGMA query_only = OFF")
    await b.close(2)
    b.pipeline.waiting.popleft()
    b.judge.gate.clear()
    await b.drained()
    b.store._write_connection.execute("PRAGMA query_only = ON")
    b.judge.gate.set()
    await until(lambda: bool(b.judge_queue.results))
    for _ in range(3):
        await asyncio.sleep(0.05)
        with pytest.raises(StoreError):
            await b.pipeline.drain()
    assert b.reported == []
    b.store._write_connection.execute("PRAGMA query_only = OFF")
    await b.ended(1)
    assert (b.requested(), b.numbers()) == ([2], [2])


async def test_ending_politely_leaves_what_is_under_way_open_and_commits_what_is_through(bench):
    b = bench()
    await b.close(1)
    await b.drained(1)
    b.judge.gate.clear()
    await b.close(2)
    await b.pipeline.drain()
    await until(lambda: bool(b.judge_queue.results) or bool(b.reported))
    await b.pipeline.close()
    assert (b.numbers(), b.store.open_traces()) == ([1], {trace(2)})


async def test_a_bug_in_a_judged_metric_costs_one_trace_its_verdict(bench, caplog):
    b = bench()

    def bug(case):
        if case.trace_id == trace(1).hex():
            raise RuntimeError("a bug of ours")
        return YES

    b.judge.reply = bug
    for number in (1, 2):
        await b.close(number)
    await b.ended(2)
    assert Counter(ending.reason for ending in b.reported) == {EndReason.ERROR: 1, EndReason.SCORED: 1}
    assert b.store.details(trace(1))["error"] == "RuntimeError: a bug of ours"


async def test_the_budget_thins_what_needs_the_judge_consistently_and_says_how_likely_it_was(bench):
    b = bench(rate=0.5, room=40)
    b.judge.shares["normal"] = 0.5
    tails = [((number * 2**56) // 64).to_bytes(7, "big") for number in range(64)]
    for number, tail in enumerate(tails):
        await b.close(number + 1, tail=b"\x00\x00" + tail)
    await b.ended(64)
    reasons = Counter(ending.reason for ending in b.reported)
    assert reasons == {EndReason.SAMPLED_OUT: 32, EndReason.OVER_BUDGET: 16, EndReason.SCORED: 16}
    for ending in b.reported:
        drawn = randomness(ending.trace_id) >= NEVER - NEVER // 4
        assert (ending.reason is EndReason.SCORED) == drawn
        assert [verdict.sampling_probability for verdict in ending.verdicts] == ([0.25] if drawn else [])
    assert sum(1 / v.sampling_probability for ending in b.reported for v in ending.verdicts) == 64, (
        "weights count them all"
    )
    over = next(ending for ending in b.reported if ending.reason is EndReason.OVER_BUDGET)
    assert over.details["sampling"] == {
        "probability": 0.5, "selection": "random", "rule": None, "judged_share": 0.5, "over_budget": ["answer"],
    }  # fmt: skip


async def test_rubrics_that_need_no_judge_are_not_thinned(bench):
    b = bench(routes=[{"rubrics": ["workflow", "answer"]}])
    b.judge.shares["normal"] = 0.0
    await b.close(1)
    await b.ended(1)
    (ending,) = b.reported
    assert (ending.reason, [(v.rubric, v.sampling_probability) for v in ending.verdicts]) == (
        EndReason.SCORED, [("workflow", 1.0)],
    )  # fmt: skip
    assert (ending.details["sampling"]["over_budget"], b.judge.requested) == (["answer"], [])


async def test_the_route_says_whose_traces_go_first(bench):
    b = bench(routes=[{"match": {"name": "vip"}, "rubrics": ["answer"], "priority": "high"}, {"rubrics": ["answer"]}])
    b.judge.shares |= {"high": 1.0, "normal": 0.0}
    await b.close(1, name="vip")
    await b.close(2)
    await b.ended(2)
    assert {ending.trace_id: ending.reason for ending in b.reported} == {
        trace(1): EndReason.SCORED, trace(2): EndReason.OVER_BUDGET,
    }  # fmt: skip


async def test_late_spans_do_not_draw_again(bench):
    b = bench()
    await b.close(1)
    await b.ended(1)
    b.judge.shares["normal"] = 0.0
    await b.close(1, S(trace_id=trace(1), span_id=span(2), parent_id=span(1)), revision=2)
    await b.ended(2)
    second = b.reported[1]
    assert (second.reason, second.withdrawn, second.verdicts[0].sampling_probability) == (EndReason.SCORED, (), 1.0)


async def test_what_was_drawn_before_an_outage_is_not_drawn_again_after_it(bench):
    b = bench()
    b.judge.shares["normal"] = 0.5
    b.judge.gate.clear()
    await b.close(1)
    await b.drained()
    b.judge.outage, b.judge.reply = "overloaded", NoAnswer(f"{OUTAGE}: overloaded", failed=True)
    b.judge.gate.set()
    await b.drained()
    b.judge.outage, b.judge.reply, b.judge.shares["normal"] = None, YES, 1.0
    await b.ended(1)
    assert b.reported[0].verdicts[0].sampling_probability == 0.5
    assert b.judge.came == {"normal": 1}, "the budget was asked once"


@pytest.mark.parametrize("asked", [True, False])
async def test_what_was_drawn_before_a_restart_is_not_drawn_again_after_it(bench, asked):
    """Whether the judge was out of reach when the process ended, or was being asked."""
    b = bench()
    b.judge.shares["normal"] = 0.5
    b.judge.gate.clear()
    await b.close(1)
    await b.drained()
    if not asked:
        b.judge.outage, b.judge.reply = "overloaded", NoAnswer(f"{OUTAGE}: overloaded", failed=True)
        b.judge.gate.set()
        await b.drained()
    await b.pipeline.close()
    b.store.close()
    again = bench()
    again.wait(1)
    await again.ended(1)
    assert again.reported[0].verdicts[0].sampling_probability == 0.5
    assert again.store.kept.room("judged_shares").all() == {}, "nothing is left of it"


async def test_a_failure_in_passing_is_tried_again_a_few_times_and_then_ends_it(bench):
    b = bench()
    b.judge.reply = NoAnswer(f"{OUTAGE}: timeout", failed=True)
    await b.close(1)
    await b.ended(1)
    assert (b.requested(), b.reported[0].reason) == ([1, 1, 1], EndReason.JUDGE_FAILED)


@pytest.mark.parametrize("why", ["bad request: context length", "bad answer: no JSON", "parse_error: score is missing"])
async def test_a_failure_that_cannot_change_is_not_tried_again(bench, why):
    b = bench()
    b.judge.reply = NoAnswer(why, failed=True)
    await b.close(1)
    await b.ended(1)
    assert (b.requested(), b.reported[0].reason) == ([1], EndReason.JUDGE_FAILED)


PAID = Judgement("m", "p", 0.25, call="1")


async def test_a_provider_that_does_not_greet_is_no_failure_of_the_trace(bench):
    """As after a long outage: each probe fails, and nothing of the trace is sent. Then its own failure is its first."""
    b = bench()
    await b.close(1)
    out = NoAnswer(f"{OUTAGE}: overloaded", failed=True)
    for _ in range(5):
        b.judge.outage, b.judge.reply = None, lambda _: (setattr(b.judge, "outage", "overloaded"), out)[1]
        await b.drained(2)
    assert (b.requested(), b.judge_queue.waiting) == ([1] * 5, 1)
    (place, _) = b.judge_queue.deferred._closings[trace(1)]
    assert place.attempts == 0
    b.judge.outage, b.judge.reply = None, NoAnswer(f"{OUTAGE}: timeout", failed=True, judgement=PAID)
    await b.ended(1)
    assert b.requested() == [1] * 8
    assert b.reported[0].verdicts[0].to_json()["judge"]["cost_usd"] == 0.25, "one call, however often it is told"


async def test_what_failed_before_an_answer_came_is_part_of_what_the_verdict_cost(bench):
    b = bench()
    answer = replace(YES, judgement=Judgement("m", "p", 0.5, call="2"))
    replies = iter([NoAnswer(f"{OUTAGE}: timeout", failed=True, judgement=PAID), answer])
    b.judge.reply = lambda _: next(replies)
    await b.close(1)
    await b.ended(1)
    judge = b.reported[0].verdicts[0].to_json()["judge"]
    assert (b.reported[0].reason, judge["cost_usd"], judge["calls"]) == (EndReason.SCORED, 0.75, 2)


async def test_what_was_drawn_and_could_not_be_paid_for_after_all_is_over_budget_and_no_failure(bench):
    b = bench(routes=[{"rubrics": ["answer"], "match": {"name": "a"}}, {"rubrics": ["workflow", "answer"]}])
    b.judge.reply = NoAnswer(f"{OVER_BUDGET}: the budget for judging is spent", failed=True)
    await b.close(1, name="a")
    await b.close(2, name="b")
    await b.ended(2)
    reported = {ending.trace_id: ending for ending in b.reported}
    assert (reported[trace(1)].reason, reported[trace(1)].verdicts) == (EndReason.OVER_BUDGET, ())
    assert [verdict.rubric for verdict in reported[trace(2)].verdicts] == ["workflow"]
    assert reported[trace(2)].details["sampling"]["over_budget"] == ["answer"]


class Vectors:
    """Embeddings whose endpoint can be out."""

    def __init__(self):
        self.outage: EmbeddingError | None = None
        self.never: set[str] = set()
        self.requested: list[str] = []

    async def answer(self, case, questions):
        asked = [question for question in questions if isinstance(question, SentenceSimilarity)]
        if asked:
            self.requested.append(case.trace_id)
        out = NoAnswer(f"{EMBEDDINGS_OUT}: refused", failed=True)
        is_out = self.outage is not None or case.trace_id in self.never
        reply = out if is_out else Answer(value=(1.0,), method=Method.EMBEDDING)
        return dict.fromkeys(asked, reply)


def compared(_case):
    (judged, alike) = yield (GradeAnswer(), SentenceSimilarity((("a", "b"),)))
    if isinstance(judged, Answer) and isinstance(alike, Answer):
        return Scored(value=1.0, method=Method.EMBEDDING)
    return Failed(next(reply.reason for reply in (alike, judged) if isinstance(reply, NoAnswer)))


@pytest.fixture
async def both(bench):
    """A bench whose traces named ``both`` need embeddings as well as the judge."""

    def make(**more):
        b = bench(routes=[{"match": {"name": "both"}, "rubrics": ["quality"]}, {"rubrics": ["answer"]}], **more)
        b.vectors, evaluator = Vectors(), b.judge_queue.stages.evaluator
        evaluator.others = Backends(order=(b.vectors, b.judge), judge=b.judge, embedding=b.vectors)
        evaluator.rubrics = {**RUBRICS, "quality": rubric("quality", compared)}
        return b

    return make


OUT = EmbeddingError("refused", outage=True)


async def test_what_waits_for_embeddings_costs_the_judge_nothing_and_holds_nothing_up(both):
    b = both(room=1)
    b.vectors.outage = OUT
    for number in range(3):
        await b.close(number, name="both")
    await b.drained()
    assert (b.numbers(), b.judge.requested, len(b.judge_queue.without_vectors)) == ([], [], 3)
    tried = len(b.vectors.requested)
    await b.close(3)
    await b.ended(1)
    await b.drained()
    assert (b.numbers(), len(b.vectors.requested)) == ([3], tried), "none is tried while they are out"
    b.vectors.outage = None
    await b.ended(4)
    assert (b.numbers(), b.requested()) == ([3, 0, 1, 2], [3, 0, 1, 2])
    assert all(ending.verdicts[0].passed for ending in b.reported)


async def test_a_judge_that_is_out_delays_nothing_that_needs_embeddings_alone(both):
    b = both()
    b.vectors.outage, b.judge.outage = OUT, "503"
    await b.close(0)
    await b.close(1, name="both")
    await b.drained()
    b.vectors.outage = None
    await b.drained()
    assert (len(b.judge_queue.deferred), len(b.judge_queue.without_vectors)) == (2, 0), "next it waits for the judge"
    b.judge.outage = None
    await b.ended(2)
    assert sorted(b.numbers()) == [0, 1]


async def test_embeddings_that_stay_out_are_done_without_after_the_longest_wait_and_the_judge_is_asked(both):
    b = both(max_wait_ns=60 * SECOND)
    b.vectors.outage, b.judge.reachable = OUT, True
    await b.close(0, name="both")
    await b.drained()
    b.now += 61 * SECOND
    await b.ended(1)
    (ending,) = b.reported
    result = ending.verdicts[0].scores[0].result
    assert (str(result.reason), b.requested()) == (f"{EMBEDDINGS_OUT}: refused", [0])


async def test_late_spans_of_a_trace_that_waits_for_embeddings_are_judged_with_it(both):
    b = both()
    b.vectors.outage = OUT
    await b.close(0, name="both")
    await b.drained()
    b.wait(0, revision=2)
    await b.drained()
    assert (b.waiting(), b.judge_queue.waiting, b.judge_queue.knows(trace(0))) == ([], 1, True)
    b.vectors.outage = None
    await b.ended(1)
    assert [(ending.revision, ending.reason) for ending in b.reported] == [(1, EndReason.SCORED)]


async def test_after_an_outage_of_embeddings_what_needs_none_waits_behind_one_trace_of_that_line_at_most(both):
    b = both(room=1)
    b.vectors.outage = OUT
    for number in range(6):
        await b.close(number, name="both")
    await b.drained()
    b.now += SECOND
    b.judge.gate.clear()
    await b.close(6)
    await b.drained()
    await b.close(7)
    await b.close(8)
    await b.drained()
    b.vectors.outage = None
    b.judge.gate.set()
    await b.ended(9)
    assert [number for number in b.requested() if number > 5] == [6, 7, 8]
    assert max(map(b.requested().index, (7, 8))) <= 4


async def test_what_was_waited_for_too_long_for_want_of_room_still_waits_for_embeddings(both):
    b = both(room=1)
    b.judge_queue.deferred = DeferredTraces(max_waiting=1, max_wait_ns=SECOND)
    b.vectors.outage = OUT
    for number in range(4):
        await b.close(number, name="both")
    await b.drained()
    assert (b.numbers(), len(b.judge_queue.without_vectors)) == ([], 4)
    b.vectors.outage = None
    await b.ended(4)
    assert all(ending.verdicts[0].passed for ending in b.reported)


async def test_how_long_a_trace_waited_for_embeddings_does_not_count_as_a_wait_for_the_judge(both):
    b = both(max_wait_ns=60 * SECOND)
    b.vectors.outage = OUT
    await b.close(0, name="both")
    await b.drained()
    b.now += 50 * SECOND
    b.vectors.outage, b.judge.outage = None, "503"
    await b.drained()
    b.now += 50 * SECOND
    await b.drained()
    assert (b.numbers(), len(b.judge_queue.deferred)) == ([], 1)
    b.judge.outage = None
    await b.ended(1)
    assert b.reported[0].verdicts[0].passed


async def test_a_trace_for_which_alone_embeddings_are_out_keeps_no_other_from_them(both):
    b = both(room=1)
    b.vectors.never, b.vectors.outage = {trace(0).hex()}, OUT
    for number in range(4):
        await b.close(number, name="both")
    await b.drained()
    b.vectors.outage = None
    await b.drained()
    b.now += 5 * SECOND
    await b.ended(3)
    await b.drained()
    tried = b.vectors.requested.count(trace(0).hex())
    await b.drained()
    assert (b.numbers(), b.vectors.requested.count(trace(0).hex())) == ([1, 2, 3], tried), "it is tried now and then"
    b.vectors.never, b.now = set(), b.now + 5 * SECOND
    await b.ended(4)
    assert b.reported[3].verdicts[0].passed


async def test_whether_a_trace_is_here_takes_the_same_however_many_were_given_up(bench):
    queue = bench().judge_queue
    queue.capacity, queue.deferred = 0, DeferredTraces(max_waiting=1_000, max_wait_ns=0)

    async def asking(count: int) -> int:
        for number in range(count):
            queue.deferred.park(
                Closing(trace_id=trace(number), completion="idle", revision=1, origin=ORIGIN), queue.deferred.place(0)
            )
        await queue.resume()
        assert queue.waiting == count
        return steps(lambda: queue.holds(trace(9_999)))

    assert await asking(10) == await asking(500)

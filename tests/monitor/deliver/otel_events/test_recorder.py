"""Recorder: one own trace for each judging, whatever is judged beside it, and never at the cost of judging."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from sidejudge.integrations.otel_events.providers import telemetry
from sidejudge.integrations.provider.attempt import JudgeAttempt
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.monitor.deliver.otel_events import recorder as under_test
from sidejudge.monitor.deliver.otel_events.recorder import Recorder
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.result.result import Judgement, Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.loop_guard import own_trace_id
from sidejudge.scoring.verdict.verdict import reach_verdict
from tests.otlp_requests import trace

RUBRIC = RUBRICS["qa"]
USED = ProviderUsage(input_tokens=10, output_tokens=2, cost_usd=0.5)


class Bench:
    def __init__(self, *, rubrics=RUBRICS, **more):
        self.now_ns = 0
        self.telemetry = telemetry(version="1", environment=None, clock_ns=self.clock)
        self.recorder = Recorder(
            self.telemetry, rubrics=rubrics, clock_ns=self.clock, **{"traces": True, "events": True, **more}
        )

    def clock(self):
        self.now_ns += 1_000_000
        return self.now_ns

    def attempt(self, model="mistral/large", failure=None):
        self.recorder.attempted(JudgeAttempt(model=model, duration_s=0.0005, usage=USED, failure=failure))

    def end(self, number, revision=1, **found):
        case = case_of(number)
        results = {c.metric.id: Scored(value=1.0) for c in RUBRIC.criteria} | found
        verdict = reach_verdict(RUBRIC, case, results, created_at="2026-11-20T00:00:00.000Z", revision=revision)
        self.recorder.ended(TraceResult(
            trace_id=trace(number), service="shop", reason=EndReason.SCORED, completion="root_ended", revision=revision,
            chunks=1, ended_ns=self.clock(), details={}, verdicts=(verdict,), changed=(verdict,),
            root_span_id=case.root_span_id,
        ))  # fmt: skip

    def spans(self):
        return emptied(self.telemetry.spans)

    def events(self):
        return emptied(self.telemetry.events)


def emptied(queue):
    items = queue.waiting(10_000)
    queue.remove({item.seq for item in items})
    return [item.body for item in items]


def case_of(number):
    return Case(case_id=trace(number).hex(), trace_id=trace(number).hex(), root_span_id="b" * 16, model_output="x")


async def test_what_is_judged_at_the_same_time_is_told_apart():
    bench = Bench()

    async def judge(number):
        bench.recorder.judging(case_of(number))
        await asyncio.sleep(0)

        async def member(model):
            await asyncio.sleep(0)
            bench.attempt(model)

        await asyncio.gather(member("openai/a"), member("xai/b"))

    await asyncio.gather(*(judge(number) for number in range(20)))
    for number in range(20):
        bench.end(number)
    spans = bench.spans()
    roots = {s.context.trace_id: s.attributes["sidejudge.judged.trace_id"] for s in spans if s.name == "evaluate"}
    assert sorted(roots.values()) == [trace(number).hex() for number in range(20)]
    calls = [s for s in spans if s.name != "evaluate"]
    assert Counter(roots[s.context.trace_id] for s in calls) == dict.fromkeys(roots.values(), 2)
    assert all(roots[s.context.trace_id] == s.attributes["sidejudge.judged.trace_id"] for s in calls)
    assert {s.attributes["gen_ai.provider.name"] for s in calls} == {"openai", "x_ai"}
    own = {event.log_record.attributes["sidejudge.evaluation.trace_id"] for event in bench.events()}
    assert own == {format(trace_id, "032x") for trace_id in roots}


async def test_a_revision_is_a_judging_of_its_own_and_several_rounds_are_one():
    bench = Bench()
    for revision in (1, 2):
        for _ in range(3):
            bench.recorder.judging(case_of(1))
            bench.attempt()
        bench.end(1, revision=revision)
    spans = bench.spans()
    assert Counter(s.name for s in spans) == {"chat large": 6, "evaluate": 2}
    assert {format(s.context.trace_id, "032x") for s in spans} == {own_trace_id(case_of(1).trace_id)}
    for root in (s for s in spans if s.name == "evaluate"):
        children = [s for s in spans if s.parent is not None and s.parent.span_id == root.context.span_id]
        assert min(s.start_time for s in children) >= root.start_time
        assert max(s.end_time for s in children) <= root.end_time


@pytest.mark.parametrize(
    ("asked", "linked"),
    [
        ([("be polite v2", "a"), ("be polite v2", "b")], ("be polite", 2)),
        ([("tone v2", "a"), ("tone v3", "b")], (None, None)),
        ([("", "a")], (None, None)),
    ],
    ids=["one prompt", "two versions", "none"],
)
async def test_a_request_that_is_made_of_one_prompt_is_linked_to_its_version(asked, linked):
    bench = Bench()
    bench.recorder.judging(case_of(1))
    questions = [AskDeclared(metric=m, instructions="?", kind="boolean", prompt=prompt) for prompt, m in asked]
    bench.recorder.asking(questions)
    bench.attempt()
    bench.end(1)
    (call,) = [s for s in bench.spans() if s.name != "evaluate"]
    name = "langfuse.observation.prompt"
    assert (call.attributes.get(f"{name}.name"), call.attributes.get(f"{name}.version")) == linked


async def test_a_verdict_that_the_cache_answered_has_a_root_for_its_scores_to_name():
    bench = Bench()
    bench.recorder.judging(case_of(1))
    judged = Scored(value=1.0, judgements=(Judgement("openai/a", "ab"),))
    bench.end(1, **{RUBRIC.criteria[0].metric.id: judged})
    (root,) = bench.spans()
    assert (root.name, format(root.context.trace_id, "032x")) == ("evaluate", own_trace_id(case_of(1).trace_id))
    assert root.attributes["langfuse.trace.metadata.judged_trace_id"] == case_of(1).trace_id


async def test_what_no_model_was_asked_about_has_events_and_no_trace():
    bench = Bench()
    bench.recorder.judging(case_of(1))
    bench.recorder.looked_up(hits=3, misses=0)
    bench.end(1)
    assert bench.spans() == []
    events = bench.events()
    assert events
    assert all("sidejudge.evaluation.trace_id" not in event.log_record.attributes for event in events)


@pytest.mark.parametrize(("traces", "events"), [(True, False), (False, True)])
async def test_only_the_signals_that_are_wanted_are_written(traces, events):
    bench = Bench(traces=traces, events=events)
    bench.recorder.judging(case_of(1))
    bench.attempt()
    bench.end(1)
    assert (bool(bench.spans()), bool(bench.events())) == (traces, events)


async def test_a_request_that_is_for_no_case_is_not_told():
    bench = Bench()
    bench.attempt()
    assert bench.spans() == []


async def test_what_never_ends_is_bounded_and_closed_at_the_end(monkeypatch):
    monkeypatch.setattr(under_test, "MOST_OPEN", 3)
    bench = Bench()
    for number in range(5):
        bench.recorder.judging(case_of(number))
        bench.attempt(failure="timeout")
    assert [s.attributes["sidejudge.judged.trace_id"] for s in bench.spans() if s.name == "evaluate"] == [
        trace(0).hex(), trace(1).hex(),
    ]  # fmt: skip
    bench.recorder.close()
    outcomes = [s.attributes["sidejudge.outcome"] for s in bench.spans()]
    assert outcomes == ["not_ended"] * 3
    bench.recorder.close()
    assert bench.spans() == []


async def test_a_bug_in_it_costs_what_is_told_and_not_the_judging(caplog):
    bench = Bench(rubrics={})
    bench.end(1)
    (record,) = caplog.records
    assert (record.getMessage(), record.cause) == ("own telemetry was not written", "KeyError")

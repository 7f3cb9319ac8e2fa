"""Pipeline: closed traces are judged, committed, told; what fails costs as little as it can."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.integrations.otlp.wire.request import Chunk
from sidejudge.integrations.store.sqlite import StoreError, StoreUnavailable
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.sampling import SamplingRuleSection
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.evaluate.pipeline import BATCH, BATCH_BYTES
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.result.result import Scored, Unavailable
from tests.monitor.evaluate.bench import NOW, ORIGIN, PipelineBench, rubric
from tests.otlp_requests import LOW, S, span, trace


def broken(case):
    if case.name == "broken":
        raise RuntimeError("a bug of ours")
    return Scored(value=1.0)


RUBRICS = {
    "qa": rubric("qa", lambda _: Scored(value=1.0, details={"seen": ("a", "b")})),
    "entity": rubric("entity", broken),
    "answer": rubric("answer", lambda case: Scored(value=float(case.complete))),
    "workflow": rubric("workflow", lambda _: Unavailable("no scenario")),
}


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(routes=({"rubrics": ["qa"]},), **sampling):
        made.append(PipelineBench(tmp_path / "s.sqlite", Evaluator(RUBRICS), routes, sampling=sampling))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


OF_A_JUDGED_TRACE = {
    "agents", "answered", "capture_switch", "closed_ns", "cluster", "complete", "completion", "content_captured",
    "damaged_chunks", "dialects", "environment", "first_ns", "last_ns", "missing_parents", "model", "name", "prompt",
    "reason", "release", "revision", "route", "rubrics", "sampling", "scenario", "service", "session_id", "slices",
    "spans", "tools", "trace_id", "user", "verdicts",
}  # fmt: skip
"""What the API promises of every trace that was judged."""


async def test_a_closed_trace_is_judged_committed_and_then_told(bench):
    b = bench()
    b.pipeline.listeners.insert(0, lambda ending: on_disk.append(b.store.details(ending.trace_id)))
    on_disk = []
    await b.close(1)
    await b.pipeline.drain()
    (ending,) = b.reported
    assert (ending.reason, ending.service, ending.revision, ending.chunks) == (EndReason.SCORED, "shop", 1, 1)
    assert (ending.ended_ns, ending.last_span_ns, ending.completion) == (NOW, 2_000, "root_ended")
    assert ending.verdicts == ending.changed
    assert ending.changed[0].created_at == "2026-09-21T14:13:20.000Z"
    (details,) = on_disk
    assert (details["reason"], details["spans"], details["route"], details["rubrics"]) == (
        "scored",
        1,
        "routes[0]",
        ["qa"],
    )
    assert details["sampling"] == {"probability": 1.0, "selection": "random", "rule": None}
    assert [verdict["passed"] for verdict in details["verdicts"]] == [True]
    assert OF_A_JUDGED_TRACE - details.keys() == set(), "docs/reference/promises/api.txt: GET /v1/traces/{trace_id}"
    assert (b.waiting(), b.store.open_traces()) == ([], set())


async def test_the_reason_is_why_no_verdict_was_reached(bench):
    b = bench(routes=[{"rubrics": ["workflow"]}])
    stated = {"langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow."}
    await b.close(1, S(trace_id=trace(1), span_id=span(1), attributes=stated))
    await b.close(2, S(trace_id=trace(2), span_id=span(1), attributes={"gen_ai.operation.name": "chat"}))
    await b.close(3, S(trace_id=trace(3), span_id=span(2), parent_id=span(9)), completion="idle")
    await b.close(4)
    await b.pipeline.drain()
    assert [ending.reason for ending in b.reported] == [
        EndReason.UNAVAILABLE,
        EndReason.NO_CONTENT,
        EndReason.INCOMPLETE,
        EndReason.NOT_A_RUN,
    ]
    assert [ending.verdicts[0].passed for ending in b.reported] == [None, None, None, None]


async def test_a_store_that_refuses_leaves_everything_waiting_and_nothing_is_told(bench):
    b = bench()
    for number in (1, 2, 3):
        await b.close(number)
    b.store._write_connection.execute("PRAGMA query_only = ON")  # as a volume that became read-only
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="read-only"):
            await b.pipeline.drain()
        assert b.waiting() == [trace(1), trace(2), trace(3)]
        assert (b.reported, len(b.store.open_traces())) == ([], 3)
    b.store._write_connection.execute("PRAGMA query_only = OFF")
    await b.pipeline.drain()
    assert [(ending.trace_id, ending.revision, len(ending.changed)) for ending in b.reported] == [
        (trace(number), 1, 1) for number in (1, 2, 3)
    ]
    assert (b.waiting(), b.store.open_traces()) == ([], set())


async def test_what_a_store_took_before_it_refused_is_told_once_and_only_the_rest_waits(bench):
    b = bench()
    for number in (1, 2, 3):
        await b.close(number)
    refuse = f"WHEN hex(new.trace_id) = '{trace(2).hex().upper()}' BEGIN SELECT RAISE(ABORT, 'no'); END"
    b.store._write_connection.execute(f"CREATE TRIGGER refuses BEFORE INSERT ON traces {refuse}")
    with pytest.raises(StoreError, match="no"):
        await b.pipeline.drain()
    assert b.waiting() == [trace(2)]
    b.store._write_connection.execute("DROP TRIGGER refuses")
    await b.pipeline.drain()
    assert [(ending.trace_id, len(ending.changed)) for ending in b.reported] == [
        (trace(1), 1), (trace(3), 1), (trace(2), 1),
    ]  # fmt: skip


async def test_a_store_that_cannot_be_read_leaves_everything_waiting(bench):
    b = bench()
    await b.close(1)
    b.store.close()
    with pytest.raises(StoreUnavailable):
        await b.pipeline.drain()
    assert (b.waiting(), b.reported) == ([trace(1)], [])


async def test_a_drain_that_is_cancelled_leaves_what_it_was_at_waiting(bench):
    b = bench()
    await b.close(1)

    committing = asyncio.Event()

    async def never(_):
        committing.set()
        await asyncio.Event().wait()

    b.pipeline.commit = never
    draining = asyncio.create_task(b.pipeline.drain())
    await committing.wait()
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining
    assert (b.waiting(), b.reported) == ([trace(1)], [])


async def test_a_drain_that_is_cancelled_tells_all_that_is_on_disk(bench):
    b = bench()
    for number in range(BATCH):
        await b.close(number)
    draining = asyncio.create_task(b.pipeline.drain())
    b.pipeline.listeners.append(lambda _: draining.cancel())
    with pytest.raises(asyncio.CancelledError):
        await draining
    assert [ending.trace_id for ending in b.reported] == [trace(number) for number in range(BATCH)]
    assert (b.waiting(), b.store.open_traces()) == ([], set())


async def test_two_closings_of_one_trace_that_waited_together_are_one_verdict_and_its_confirmation(bench):
    b = bench()
    await b.close(1)
    await b.close(1, S(trace_id=trace(1), span_id=span(2), parent_id=span(1)), revision=2)
    await b.pipeline.drain()
    assert [(ending.revision, len(ending.verdicts), len(ending.changed)) for ending in b.reported] == [
        (1, 1, 1),
        (2, 1, 0),
    ]
    assert b.store.details(trace(1))["revision"] == 2


async def test_more_than_a_batch_is_judged_in_order(bench):
    b = bench()
    for number in range(2 * BATCH + 3):
        await b.close(number)
    await b.pipeline.drain()
    assert [ending.trace_id for ending in b.reported] == [trace(number) for number in range(2 * BATCH + 3)]


async def test_no_more_is_judged_at_once_than_fits_in_memory_beside_each_other(bench):
    b = bench()
    at_once = []
    commit = b.pipeline.commit

    async def counted(endings):
        at_once.append(len(endings))
        return await commit(endings)

    b.pipeline.commit = counted
    for number, size in enumerate((BATCH_BYTES // 2, BATCH_BYTES // 2, 10 * BATCH_BYTES, 1, 1)):
        await b.close(number, size=size)
    await b.pipeline.drain()
    assert at_once == [2, 1, 2], "one that is larger than all of that is judged alone"
    assert [ending.trace_id for ending in b.reported] == [trace(number) for number in range(5)]


async def test_a_bug_costs_one_trace_its_verdict_and_no_other(bench, caplog):
    b = bench(routes=[{"rubrics": ["qa", "entity"]}])
    await b.close(1)
    await b.close(2, S(trace_id=trace(2), span_id=span(1), name="broken"))
    await b.close(3)
    await b.pipeline.drain()
    assert [ending.reason for ending in b.reported] == [EndReason.SCORED, EndReason.ERROR, EndReason.SCORED]
    failed = b.reported[1]
    assert (failed.verdicts, failed.service) == ((), "shop")
    assert b.store.details(trace(2))["error"] == "RuntimeError: a bug of ours"
    assert trace(2).hex() in [getattr(record, "trace_id", None) for record in caplog.records]
    assert b.store.open_traces() == set()


async def test_a_chunk_that_cannot_be_read_is_told_and_the_others_are_judged(bench):
    b = bench()
    damaged = [Chunk(trace_id=trace(n), payload=b"\x0a\x09", headers=(), origin=ORIGIN) for n in (1, 2)]
    await b.store.append(damaged, NOW)
    await b.close(1)
    b.wait(2)
    b.wait(3)
    await b.pipeline.drain()
    assert [ending.reason for ending in b.reported] == [EndReason.SCORED, EndReason.UNDECODABLE, EndReason.DELETED]
    stories = [b.store.details(trace(n)) for n in (1, 2, 3)]
    assert [(details["spans"], details["damaged_chunks"]) for details in stories] == [(1, 1), (0, 1), (0, 0)]
    assert b.reported[1].service == "shop", "its resource was read before"


async def test_traffic_of_evaluators_and_what_a_route_excludes_is_not_judged(bench):
    b = bench(routes=[{"match": {"name": "health*"}, "rubrics": [], "name": "probes"}, {"rubrics": ["qa"]}])
    await b.close(1, S(trace_id=trace(1), span_id=span(1), service="sidejudge"))
    await b.close(2, S(trace_id=trace(2), span_id=span(1), name="healthcheck"))
    await b.pipeline.drain()
    assert [(ending.reason, ending.verdicts) for ending in b.reported] == [(EndReason.EXCLUDED, ())] * 2
    assert "this monitor" in b.store.details(trace(1))["excluded"]
    assert b.store.details(trace(2))["excluded"] == "probes excludes it"


async def test_a_trace_that_no_route_is_for_has_no_rubric(bench):
    b = bench(routes=[{"match": {"service": "other"}, "rubrics": ["qa"]}])
    await b.close(1)
    await b.pipeline.drain()
    assert [(ending.reason, ending.verdicts) for ending in b.reported] == [(EndReason.NO_RUBRIC, ())]


async def test_what_a_rule_on_content_might_have_drawn_and_did_not_is_sampled_out_in_the_second_pass(bench):
    b = bench(rate=0.01, rules=(SamplingRuleSection(name="checkouts", match=MatchSection(name="checkout"), rate=1.0),))
    for number, name in ((1, "checkout"), (2, "browse")):
        await b.close(number, S(trace_id=trace(number, LOW), span_id=span(1), name=name), tail=LOW)
    await b.pipeline.drain()
    forced, out = b.reported
    assert (forced.reason, forced.verdicts[0].selection, forced.verdicts[0].sampling_probability) == (
        EndReason.SCORED, "forced", 1.0,
    )  # fmt: skip
    assert (out.reason, out.verdicts) == (EndReason.SAMPLED_OUT, ())
    details = b.store.details(trace(2, LOW))
    assert (details["sampling"]["probability"], details["name"]) == (None, "browse")


async def test_late_spans_that_change_the_route_withdraw_what_no_longer_judges(bench):
    b = bench(routes=[{"match": {"name": "checkout"}, "rubrics": ["qa"]}, {"rubrics": ["answer", "qa", "entity"]}])
    await b.close(1, S(trace_id=trace(1), span_id=span(2), parent_id=span(1)), completion="idle")
    await b.pipeline.drain()
    b.now += 1_000_000_000
    await b.close(1, S(trace_id=trace(1), span_id=span(1), name="checkout"), revision=2)
    await b.pipeline.drain()
    first, second = b.reported
    assert ([v.rubric for v in first.changed], first.withdrawn) == (["answer", "qa", "entity"], ())
    assert ([v.rubric for v in second.verdicts], set(second.withdrawn)) == (["qa"], {"answer", "entity"})
    assert second.changed == (), "what qa says is the same as before"
    assert second.verdicts[0].created_at == first.verdicts[1].created_at
    assert [verdict["rubric"] for verdict in b.store.details(trace(1))["verdicts"]] == ["qa"]


async def test_late_spans_that_change_a_verdict_make_its_next_revision(bench):
    b = bench(routes=[{"rubrics": ["answer"]}])
    await b.close(1, S(trace_id=trace(1), span_id=span(2), parent_id=span(1)), completion="idle")
    await b.pipeline.drain()
    await b.close(1, S(trace_id=trace(1), span_id=span(1)), revision=2)
    await b.pipeline.drain()
    assert [[(v.passed, v.revision) for v in ending.changed] for ending in b.reported] == [[(False, 1)], [(True, 2)]]
    assert b.reported[1].chunks == 2


async def test_nothing_waiting_is_nothing_done(bench):
    b = bench()
    await b.pipeline.drain()
    assert (b.reported, b.waiting()) == ([], [])

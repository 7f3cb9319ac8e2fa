"""Queries: what the API may ask of a monitor."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.api.view import VerdictQuery, VerdictSearch
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.runtime.app import Monitor
from tests.linear_time import steps
from tests.otlp_requests import HIGH, LOW, S, request, span, trace

SAID = {"langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow."}
ROUTES = [{"rubrics": ["answer", "workflow"], "scenario": "any"}]


class Still:
    """A monitor that is not started: its parts, at a time that the test moves."""

    def __init__(self, configured, **sections):
        self.now = 1_790_000_000_000_000_000
        scenarios = {"scenarios": {"any": {"max_seconds": 10**9}}, "routes": ROUTES}
        self.monitor = Monitor(configured(**{**scenarios, **sections}), clock_ns=lambda: self.now)
        self.view = self.monitor.view

    async def take(self, *spans: S):
        return await self.monitor.intake.consume(request(spans))

    async def judge(self):
        self.now += 60_000_000_000
        self.monitor.pipeline.waiting.extend(self.monitor.assembler.due(self.now))
        await self.monitor.pipeline.drain()

    async def counted(self, *names: str) -> dict[str, float]:
        """The values of samples in one exposition."""
        body, _ = await self.view.metrics("text/plain")
        samples = [line.rsplit(" ", 1) for line in body.decode().splitlines()]
        return {name: float(value) for name, value in samples if name in names}


@pytest.fixture
def still(configured):
    made = []

    def make(**sections):
        made.append(Still(configured, **sections))
        return made[-1]

    yield make
    for one in made:
        one.monitor.store.close()


def root(number, tail=HIGH, **more) -> S:
    return S(trace_id=trace(number, tail), span_id=span(number + 1), **{"attributes": SAID, **more})


async def pages(view, **wanted):
    found, after, sizes = [], None, []
    while True:
        page = await view.verdicts(VerdictQuery(**wanted, after=after))
        found += [(each["closed_ns"], each["trace_id"], each["rubric"]) for each in page.verdicts]
        sizes.append(len(page.verdicts))
        if (after := page.next) is None:
            return found, sizes


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
async def test_pages_one_after_the_other_are_everything_once_newest_first(still, limit):
    s = still()
    for start in (0, 3, 6):  # three traces of each moment: time alone does not tell verdicts apart
        for number in range(start, start + 3):
            await s.take(root(number))
        await s.judge()
    found, sizes = await pages(s.view, limit=limit)
    assert len(found) == len(set(found)) == 18
    assert found == sorted(found, reverse=True)
    assert all(size == limit for size in sizes[:-1])
    assert 0 < sizes[-1] <= limit


async def test_verdicts_that_come_while_one_turns_pages_do_not_shift_them(still):
    s = still()
    for number in range(4):
        await s.take(root(number))
    await s.judge()
    first = await s.view.verdicts(VerdictQuery(limit=3))
    await s.take(root(9))
    await s.judge()
    rest = await s.view.verdicts(VerdictQuery(limit=100, after=first.next))
    assert len(first.verdicts) + len(rest.verdicts) == 8
    assert trace(9).hex() not in {each["trace_id"] for each in rest.verdicts}


async def test_verdicts_are_found_by_what_they_are(still):
    s = still()
    await s.take(root(1, service="shop"), root(2, service="desk"))
    await s.judge()
    assert len((await pages(s.view, limit=1, service="desk"))[0]) == 2
    assert len((await pages(s.view, limit=1, rubric="workflow", passed="true"))[0]) == 2
    assert (await pages(s.view, limit=1, trace_id=trace(3).hex()))[0] == []
    assert len((await pages(s.view, limit=1, since_ns=s.now))[0]) == 4
    assert (await pages(s.view, limit=1, since_ns=s.now + 1))[0] == []


async def test_the_story_of_a_trace_that_was_not_drawn_tells_its_draw(still):
    s = still(sampling={"rate": 0.5})
    await s.take(root(1, LOW))
    story = await s.view.trace(trace(1, LOW).hex(), contents=True)
    assert story == {
        "trace_id": trace(1, LOW).hex(), "reason": "sampled_out", "verdicts": [],
        "sampling": {"randomness": "0" * 14, "threshold": "80000000000000", "probability": 0.5},
    }  # fmt: skip
    assert await s.view.trace(trace(2, LOW).hex(), contents=True) is None, "that one never came"


async def test_the_story_of_an_open_trace_says_so_and_that_of_an_ended_one_why(still):
    s = still()
    await s.take(root(1))
    open_ = await s.view.trace(trace(1).hex(), contents=False)
    assert open_ == {"trace_id": trace(1).hex(), "reason": None, "verdicts": [], "case": None}
    await s.judge()
    ended = await s.view.trace(trace(1).hex(), contents=True)
    assert (ended["reason"], len(ended["verdicts"]), ended["case"]["model_output"]) == ("scored", 2, "Tomorrow.")
    assert (await s.view.trace(trace(1).hex(), contents=False))["case"] is None


@pytest.mark.parametrize(("contents", "shown"), [("loopback", "When?"), ("never", None)])
async def test_the_beginnings_of_input_and_output_are_shown_with_contents_alone_and_not_stored_where_nobody_may_see(
    still, contents, shown
):
    s = still(api={"contents": contents})
    await s.take(root(1))
    await s.judge()
    known = trace(1).hex()
    found = await s.view.trace(known, contents=True)
    assert (found.get("input_beginning"), found.get("output_beginning")) == (shown, shown and "Tomorrow.")
    assert not {"input_beginning", "output_beginning"} & (await s.view.trace(known, contents=False)).keys()
    for visible, wanted in ((True, shown), (False, None)):
        found = await s.view.search(VerdictSearch(), contents=visible)
        assert [verdict.get("input_beginning") for verdict in found.verdicts] == [wanted] * 2
    found = await s.view.search(VerdictSearch(text="when"), contents=False)
    assert not found.verdicts


async def test_a_story_outlives_the_contents_and_what_cannot_be_read_of_them(still):
    s = still()
    await s.take(root(1))
    damaged = Chunk(trace_id=trace(1), payload=b"\x0a\x09", headers=(), origin=ChunkOrigin("shop", None, 0))
    await s.monitor.store.append([damaged], s.now)
    await s.judge()
    reported = await s.view.trace(trace(1).hex(), contents=True)
    assert (reported["damaged_chunks"], reported["case"]["model_output"]) == (1, "Tomorrow.")
    s.monitor.store._write_connection.execute("DELETE FROM chunks")
    reported = await s.view.trace(trace(1).hex(), contents=True)
    assert (reported["reason"], reported["case"]) == ("scored", None)


async def test_counters_move_at_a_scrape_by_what_came_since_the_last_one(still):
    s = still()
    names = {
        "sidejudge_spans_received_total": 3, "sidejudge_traces_seen_total": 2,
        'sidejudge_spans_rejected_total{reason="invalid"}': 1, 'sidejudge_spans_ignored_total{reason="duplicate"}': 0,
    }  # fmt: skip
    assert await s.counted(*names) == dict.fromkeys(names, 0)
    await s.take(root(1), root(2), S(trace_id=b"short", span_id=span(1)))
    for _ in range(2):  # a scrape changes nothing
        assert await s.counted(*names) == names
    await s.take(root(1))
    moved = {"sidejudge_spans_received_total": 4, 'sidejudge_spans_ignored_total{reason="duplicate"}': 1}
    assert await s.counted(*names) == names | moved


async def test_statuses_of_many_windows_are_computed_with_turns_for_a_probe_between_them(still):
    s = still(sampling={"rate": 1.0})
    await s.take(*(root(10 * number, service=f"s{number:02}") for number in range(40)))
    await s.judge()
    turns = []

    async def probe():
        while True:
            await asyncio.sleep(0)
            turns.append(None)

    probing = asyncio.create_task(probe())
    found = [each async for each in s.view._statuses_in_turns()]
    probing.cancel()
    assert found == s.monitor.watch.service_statuses(s.now)
    assert len(found) == 80
    assert len(turns) >= 4
    body, _ = await s.view.metrics("text/plain")
    assert body.count(b"sidejudge_status{") == 80, "the status in force"


async def test_what_came_too_late_is_counted_as_late(still):
    s = still(assembly={"grace": "0s", "late": "1s"})
    await s.take(root(1))
    await s.judge()
    await s.judge()
    await s.take(S(trace_id=trace(1), span_id=span(9), parent_id=span(2)))
    late = 'sidejudge_spans_ignored_total{reason="late"}'
    assert await s.counted(late) == {late: 1}


async def test_the_snapshot_tells_what_waits_and_since_when(still):
    s = still()
    began = s.now
    await s.take(root(1), S(trace_id=trace(2), span_id=span(1), parent_id=span(9)))
    seen = s.view.snapshot()
    assert (seen.traces_open, seen.queues["assembly"].items, seen.queues["judging"].items) == (2, 2, 0)
    assert seen.queues["assembly"].oldest_s == began / 1e9
    assert seen.spool_bytes > 0
    s.monitor.pipeline.waiting.append(
        Closing(trace_id=trace(1), completion="idle", revision=1, origin=ChunkOrigin("shop", None, 0))
    )
    assert s.view.snapshot().queues["judging"].items == 1


async def test_the_status_is_the_outcomes_and_every_standing(still):
    s = still()
    await s.take(root(1), root(2, LOW))
    assert (s.view.status().seen, s.view.status().open) == (2, 2)
    await s.judge()
    report = s.view.status()
    assert (report.seen, report.open, report.ended["scored"], sum(report.ended.values())) == (2, 0, 2, 2)
    assert {each.rubric for each in report.services} == {"answer", "workflow"}


async def test_probes_tell_apart_starting_working_and_ending(still):
    s = still()
    assert (s.view.live(), s.view.ready(), s.view.started()) == (True, False, False)
    await s.monitor.start()
    assert (s.view.live(), s.view.ready(), s.view.started()) == (True, True, True)
    await s.monitor.stop()
    assert (s.view.ready(), s.view.started()) == (False, True)


async def test_what_applications_report_is_compared_in_time_with_the_number_of_services(still):
    reported = {"reported": {"metrics": [{"name": "Helpfulness", "good": 0.8, "acceptable": 0.6}]}}
    s = still(rubrics=reported, routes=[{"rubrics": ["answer", "reported"]}])

    def asking(services: int) -> int:
        for number in range(services):
            for rubric in ("answer", "reported"):
                key = Key(f"service-{number}", "prod", rubric)
                seen = Observation(identity=f"{number}", at_ns=s.now, passed=True, weight=1.0)
                s.monitor.windows.add(key, seen)
        found = s.view.reported_agreements()
        assert [each.rubric for each in found] == ["answer"] * services
        return steps(s.view.reported_agreements)

    few = asking(25)
    assert asking(100) < 6 * few

"""Failing traces become items of a dataset: once each, so many a day, redacted, through kills and outages."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest

from sidejudge.integrations.langfuse.datasets import item_id
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.store.sqlite import FinishedTrace
from sidejudge.monitor.config.langfuse import FailureDatasetSection
from sidejudge.monitor.feedback.failure_dataset import FailureDatasetFeeder, failing_item
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.trace.span import Json
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.server import FakeLangfuse, Mode, only
from tests.langfuse_bench import trace
from tests.otlp_requests import S, request, span

DAY_NS = 24 * 3600 * 10**9
NAME = "fehler / 失敗"


@pytest.fixture
def fake():
    with FakeLangfuse(Mode.NEW, parts=[datasets.part, Observations.part]) as server:
        yield server


@dataclass(frozen=True)
class Origin:
    service: str = "shop"
    environment: str | None = None
    threshold: int = 0


@dataclass(frozen=True)
class Chunk:
    trace_id: bytes
    payload: bytes
    origin: Origin = Origin()


class Scene:
    def __init__(self, bench) -> None:
        self.bench, self.fake, self.langfuse, self.server = bench, bench.fake, bench.langfuse, None

    async def feeder(self, **more) -> FailureDatasetFeeder:
        self.server = await probe(self.bench.langfuse)
        section = FailureDatasetSection(name=NAME, **{"create": True, **more})
        found = FailureDatasetFeeder(section, self.bench.feedback_parts(self))
        found.restore()
        await found.tick()
        return found

    async def judge(self, number, *rubrics, passed=False, asked="hello", held=True, session=None) -> None:
        """Verdicts are committed, of a trace whose spans are held."""
        self.bench.now_ns += 10**9
        if held:
            attributes = {"openinference.span.kind": "LLM", "input.value": asked, "output.value": "me: a@b.example"}
            one = S(trace_id=bytes.fromhex(trace(number)), span_id=span(1), attributes=attributes)
            await self.bench.store.append([Chunk(one.trace_id, request([one]))], self.bench.now_ns)
        score = {"metric": "m", "weight": 1.0, "value": 0.0, "rating": "fail", "status": "scored"}
        verdicts = [
            {"rubric": rubric, "rubric_version": "1", "trace_id": None if session else trace(number),
             "session_id": session, "passed": passed, "composite": 0.2, "scores": [score], "service": "shop",
             "environment": None, "reason": "wrote to c@d.example"}
            for rubric in rubrics or ("qa",)
        ]  # fmt: skip
        await self.bench.store.finish(
            FinishedTrace(
                trace_id=trace(number), service="shop", reason="scored", completion="rooted", revision=1, details={},
                closed_ns=self.bench.now_ns, verdicts=verdicts, chunks=int(held),
            )
        )  # fmt: skip

    def items(self):
        return datasets.datasets_of(self.fake).get(NAME, [])

    def numbers(self):
        return [int(each["sourceTraceId"], 16) for each in self.items()]


@pytest.fixture
def scene(bench):
    return Scene(bench)


async def test_a_failing_trace_becomes_one_item_with_its_input_and_why_it_failed(scene):
    feeder = await scene.feeder()
    await scene.judge(1, "qa", "answer")
    await scene.judge(2, passed=True)
    await scene.judge(3, session="s1")
    for _ in range(3):
        await feeder.tick()
    (item,) = scene.items()
    assert (item["id"], item["sourceTraceId"], item["input"]) == (item_id(NAME, trace(1)), trace(1), "hello")
    assert item["metadata"]["output"] == "me: [email]"
    assert set(item["metadata"]["verdicts"]) == {"qa", "answer"}
    assert item["metadata"]["verdicts"]["qa"] == {
        "version": "1", "reason": "wrote to [email]", "composite": 0.2, "metrics": ["m"],
    }  # fmt: skip
    assert len(scene.fake.requested("POST", "/dataset-items")) == 1
    assert feeder.snapshot().state == "ok"


@pytest.mark.parametrize("killed", [False, True])
async def test_an_item_whose_answer_was_lost_is_the_same_item_the_next_time(scene, killed):
    feeder = await scene.feeder()
    await scene.judge(1)
    scene.fake.standing_fault = only("POST", "/dataset-items", faults.lost_answer(scene.fake))
    await feeder.tick()
    assert (feeder.snapshot().state, feeder.snapshot().waiting, len(scene.items())) == ("retrying", 1, 1)
    scene.fake.standing_fault = None
    feeder = await scene.feeder() if killed else feeder
    await feeder.tick()
    await feeder.tick()
    assert (feeder.snapshot().state, feeder.snapshot().waiting, len(scene.items())) == ("ok", 0, 1)


async def test_no_more_are_written_than_a_day_allows_whatever_process_writes_them(scene):
    feeder = await scene.feeder(per_day=2)
    for number in range(1, 4):
        await scene.judge(number)
    await feeder.tick()
    await scene.judge(4)
    await (await scene.feeder(per_day=2)).tick()
    assert scene.numbers() == [1, 2]
    scene.bench.now_ns += DAY_NS + 10**9
    feeder = await scene.feeder(per_day=2)
    await scene.judge(5)
    await feeder.tick()
    assert scene.numbers() == [1, 2, 5]
    scene.bench.now_ns -= 2 * DAY_NS  # the clock was ahead: nothing counts as of this day
    await scene.judge(6)
    await feeder.tick()
    assert 6 in scene.numbers()
    assert trace(1) not in json.dumps(scene.bench.store.fact("failure_dataset"))  # it may have to be forgotten


async def test_a_missing_dataset_is_reported_where_it_is_not_to_be_made(scene):
    feeder = await scene.feeder(create=False)
    await scene.judge(1)
    await feeder.tick()
    assert feeder.snapshot().state == "stopped"
    assert NAME in feeder.snapshot().reason
    assert scene.items() == []
    datasets.datasets_of(scene.fake)[NAME] = []
    await feeder.tick()
    assert (feeder.snapshot().state, scene.numbers()) == ("ok", [1])


async def test_spans_that_are_let_go_are_read_from_langfuse_and_what_is_nowhere_is_left_out_and_counted(scene):
    feeder = await scene.feeder()
    await scene.judge(1, held=False)
    await scene.judge(2, held=False)
    observations_of(scene.fake).put({
        "id": "o1", "traceId": trace(1), "type": "GENERATION", "startTime": "2026-11-21T01:04:17.900Z",
        "endTime": "2026-11-21T01:04:18.900Z", "name": "answer",
        "input": json.dumps("from there"), "output": json.dumps("x"), "isRootObservation": True,
    })  # fmt: skip
    await feeder.tick()
    await feeder.tick()
    assert [(int(each["sourceTraceId"], 16), each["input"]) for each in scene.items()] == [(1, "from there")]
    assert scene.bench.failed == {"no_contents": 1}


async def test_a_large_answer_is_left_out_of_the_item_and_a_large_input_leaves_out_the_item(scene):
    feeder = await scene.feeder()
    await scene.judge(1, asked="é" * 160_000)  # six bytes each, as it is sent
    await scene.judge(2)
    await feeder.tick()
    assert scene.numbers() == [2]
    assert scene.bench.failed == {"too_large": 1}
    assert feeder.snapshot().dead == 1


async def test_only_the_named_rubrics_and_what_failed_since_it_was_configured(scene):
    await scene.judge(1)
    scene.bench.now_ns += 3600 * 10**9
    feeder = await scene.feeder(rubrics=("answer",))
    await scene.judge(2, "qa")
    await scene.judge(3, "answer")
    await feeder.tick()
    assert scene.numbers() == [3]


async def test_an_item_at_which_the_server_fails_each_time_is_given_up_and_an_outage_costs_none(scene):
    feeder = await scene.feeder()
    away = faults.error(500, "Internal Server Error")
    scene.fake.standing_fault = away
    await scene.judge(1)
    await scene.judge(2)
    for _ in range(20):
        await feeder.tick()
    assert (feeder.snapshot().state, feeder.snapshot().dead) == ("retrying", 0)
    assert scene.bench.handed == scene.bench.failed.total() > 0, "what was not accepted was handed over"
    scene.fake.standing_fault = lambda r: away(r) if trace(1).encode() in r.raw else None
    for _ in range(7):  # it failed once before
        assert scene.items() == []
        await feeder.tick()
    assert (scene.numbers(), feeder.snapshot().state, feeder.snapshot().dead) == ([2], "ok", 1)


def test_what_no_json_of_a_database_holds_is_left_out_of_an_item():
    case = Case(case_id="c", input={"a": math.nan, "b\0": ["x\0y\ud83d", 1.5]}, model_output="\ud83d\0")
    item = failing_item("d", trace(1), case, [], Redaction(("key", "email"), ("zz",)))
    assert item.input == {"a": "nan", "b": ["xy\ufffd", 1.5]}
    assert item.metadata["output"] == "\ufffd"
    deep: Json = []
    for _ in range(5_000):
        deep = [deep]
    assert failing_item("d", trace(1), Case(case_id="c", input=deep, model_output=""), [], Redaction(("key",)))


async def test_an_item_that_the_datasets_schema_refuses_holds_up_no_other(scene):
    feeder = await scene.feeder()
    await scene.judge(1)
    await scene.judge(2)
    refused = faults.error(400, "Invalid request data")
    scene.fake.standing_fault = lambda r: refused(r) if trace(1).encode() in r.raw else None
    await feeder.tick()
    assert (scene.numbers(), scene.bench.failed) == ([2], {"refused": 1})


@pytest.mark.parametrize(
    "firewall", [faults.proxy_page(403), faults.error(403, "Forbidden"), faults.login_page(), faults.proxy_page(404)]
)
async def test_an_item_that_a_firewall_refuses_holds_up_no_other_and_is_given_up(scene, firewall):
    feeder = await scene.feeder()
    scene.fake.standing_fault = lambda r: firewall(r) if trace(1).encode() in r.raw else None
    for number in range(1, 4):
        await scene.judge(number)
    await feeder.tick()
    assert (scene.numbers(), feeder.snapshot().state) == ([2, 3], "ok")
    for number in range(4, 11):
        assert feeder.snapshot().dead == 0
        scene.bench.now_ns += 20 * 60 * 10**9  # it is looked for still, however late
        await scene.judge(number)
        await feeder.tick()
    assert (scene.numbers(), feeder.snapshot().dead) == ([*range(2, 11)], 1)


async def test_where_every_item_is_refused_none_is_given_up(scene):
    feeder = await scene.feeder()
    scene.fake.standing_fault = only("POST", "/dataset-items", faults.suspended())
    for number in range(1, 19):
        await scene.judge(number)
    for _ in range(20):
        await feeder.tick()
    assert (scene.numbers(), feeder.snapshot().state, feeder.snapshot().dead) == ([], "stopped", 0)
    assert len(scene.fake.requested("POST", "/dataset-items")) == 20 * 15
    scene.fake.standing_fault = None
    await feeder.tick()
    assert scene.numbers() == [*range(1, 19)]

"""History judged anew: the same verdicts and score ids as live, each trace once, through faults and kills."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field

import pytest

from integrations.langfuse.budget import Budget
from integrations.langfuse.client import Access, Langfuse
from integrations.langfuse.errors import LangfuseError
from integrations.langfuse.observations import Window
from integrations.langfuse.probe import probe
from integrations.langfuse.scores import score_id
from integrations.otlp.decode import decode_spans
from integrations.store.sqlite import Store
from monitor.answering import answering
from monitor.backfill.listing import list_traces
from monitor.backfill.reading import Reader
from monitor.backfill.run import Backfill, Progress, StoppedError
from monitor.config import Config
from monitor.config.match import Match
from monitor.config.model import RouteConfig
from monitor.demo.traffic import Traffic
from monitor.references.book import References
from monitor.references.places import InFile
from monitor.sampler import Sampler
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

MINUTE_NS = 60 * 10**9
START_NS = 1_795_000_000 * 10**9
EVERYTHING = Match()
SPEED = 200
"""So many times faster than the clock on the wall, so that nobody waits for Langfuse's workers."""


class KilledError(Exception):
    """The process ends here."""


@dataclass
class Scene:
    fake: FakeLangfuse
    langfuse: Langfuse
    folder: object
    config: Config
    begun: float = field(default_factory=time.monotonic)

    def clock_ns(self) -> int:
        return START_NS + int((time.monotonic() - self.begun) * SPEED * 1e9)

    def put(self, count: int, seed: int = 1) -> list[str]:
        """Traces of the hour before, one a minute; their ids."""
        traffic, found = Traffic(seed), []
        for number in range(count):
            spans = decode_spans(traffic.next(START_NS - (number + 5) * MINUTE_NS, wrong=0.3).body)
            observations_of(self.fake).put(*rows_of(spans))
            found.append(spans[0].trace_id)
        return found

    async def run(
        self, *, job="job", wanted=EVERYTHING, heard=lambda _: None, minutes=120, config=None, places=()
    ) -> Progress:
        """One call of the command."""
        config = config or self.config
        store = Store(self.folder / "backfill.sqlite")
        try:
            server = await probe(self.langfuse)
            window = Window(from_ns=START_NS - minutes * MINUTE_NS, to_ns=START_NS)
            reader = Reader(
                langfuse=self.langfuse, server=server, window=window, around_ns=30 * MINUTE_NS, sleep=_no_time
            )
            sampler = Sampler(config.sampling)
            found = await reader.patiently(lambda: list_traces(self.langfuse, server, window, sampler, wanted))
            who = answering(config, memory=store.judged, vectors=store.vectors, observer=None, clock_ns=self.clock_ns)
            run = Backfill(
                config, job=job, wanted=wanted, sink=config.sinks.langfuse, langfuse=self.langfuse, reader=reader,
                store=store, who=who, references=await self.references(store, places), clock_ns=self.clock_ns,
                heard=heard,
            )  # fmt: skip
            run.scores_out.start()
            try:
                await run.judge(found.drawn)
                await run.deliver()
            finally:
                run.scores_out._task.cancel()
            return run.progress
        finally:
            store.close()

    async def references(self, store, places) -> References | None:
        if not places:
            return None
        found = References(places, store=store, reopen=lambda _: False, clock_ns=self.clock_ns, late_ns=MINUTE_NS)
        await found.refresh()
        return found

    def stored(self) -> dict[tuple[str, str], object]:
        rows = self.fake.scores.stored()
        assert len({row["id"] for row in rows}) == len(rows)
        assert all(row["id"] == score_id(row["traceId"], row["name"]) for row in rows)
        return {(row["traceId"], row["name"]): row["value"] for row in rows}


async def _no_time(_seconds: float) -> None:
    return None


@pytest.fixture
async def scene(tmp_path):
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake:
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        config = Config.model_validate(
            {
                "sampling": {"rate": 1.0},
                "routes": [{"match": {"metadata.task": "qa"}, "rubrics": ["qa"]}, {"rubrics": ["answer", "entity"]}],
                "sinks": {"langfuse": keys},
            }
        )
        async with Langfuse(access, budget=Budget(1e9), timeout_s=5.0) as langfuse:
            yield Scene(fake, langfuse, tmp_path, config)


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_each_trace_of_every_version_is_judged_and_scored_once(scene, mode):
    scene.fake.mode = mode
    traces = scene.put(12)
    at = await scene.run()
    assert at.done == len(traces)
    assert {trace for trace, _ in scene.stored()} == set(traces)
    assert at.passed + at.failed + at.incomplete >= len(traces)
    before = scene.stored()
    again = await scene.run()
    assert (again.before, again.passed) == (len(traces), 0)
    assert scene.stored() == before


async def test_a_run_that_is_killed_goes_on_where_it_was(scene):
    traces = scene.put(12)

    def killing(at: Progress) -> None:
        if at.done == 5:
            raise KilledError

    with pytest.raises(KilledError):
        await scene.run(heard=killing)
    at = await scene.run()
    assert 4 <= at.before < len(traces)
    assert {trace for trace, _ in scene.stored()} == set(traces)


async def test_another_configuration_judges_anew_and_replaces_the_values(scene):
    scene.put(6)
    await scene.run()
    before = scene.stored()
    routes = RouteConfig(rubrics=("entity",))
    said = scene.config.model_copy(update={"routes": (routes,)})
    await scene.run(job="another", config=said)
    after = scene.stored()
    assert {name.split("_")[0] for _, name in after} == {"entity"}
    assert {of for of, _ in after} == {of for of, _ in before}


async def test_only_what_the_filter_names_and_the_sampler_draws_is_judged(scene):
    traces = scene.put(12)
    at = await scene.run(wanted=Match.model_validate({"metadata.task": "qa"}))
    wanted = {of for of, _ in scene.stored()}
    assert 0 < len(wanted) < len(traces)
    assert at.unjudged["other than --filter"] == len(traces) - len(wanted)
    assert {name.split("_")[0] for _, name in scene.stored()} == {"qa"}


async def test_the_traces_of_another_time_are_left_alone(scene):
    scene.put(12)
    at = await scene.run(minutes=9)
    assert at.done == 4, at


async def test_faults_of_reading_and_writing_cost_no_trace(scene):
    traces = scene.put(12)
    dice = random.Random(3)
    kinds = [faults.database_away(), faults.proxy_page(), faults.resets(), faults.resources(), faults.resets(20)]
    scene.fake.standing_fault = lambda request: dice.choice(kinds)(request) if reads(request, dice) else None
    at = await scene.run()
    assert {of for of, _ in scene.stored()} == set(traces)
    assert not at.unjudged


def reads(request, dice) -> bool:
    return request.path == "/v2/observations" and "traceId" in request.params and dice.random() < 0.2


async def test_a_trace_that_cannot_be_read_lets_the_others_by(scene):
    bad, *others = scene.put(5)
    broken = faults.error(500, "Internal Server Error")
    scene.fake.standing_fault = lambda request: broken(request) if request.params.get("traceId") == bad else None
    at = await scene.run()
    assert at.unjudged == {"not read: server_error": 1}
    assert {of for of, _ in scene.stored()} == set(others)


async def test_refused_keys_end_the_run_and_are_said(scene):
    scene.put(3)
    refused = faults.error(403, "Ingestion suspended")
    scene.fake.standing_fault = lambda request: refused(request) if request.path == "/scores" else None
    with pytest.raises(StoppedError, match="suspended"):
        await scene.run()
    scene.fake.standing_fault = faults.error(401, "Invalid credentials.")
    with pytest.raises(LangfuseError):
        await scene.run()
    scene.fake.standing_fault = None
    await scene.run()
    assert scene.stored()


async def test_references_are_looked_up_as_a_live_monitor_looks_them_up(scene, tmp_path):
    known, other = scene.put(2)
    file = tmp_path / "golden.jsonl"
    file.write_text(json.dumps({"trace_id": known, "expected_outcome": "what it should have said"}) + "\n")
    await scene.run(places=[InFile(file, "trace_id")])
    store = Store(tmp_path / "backfill.sqlite")
    try:
        assert "golden.jsonl" in store.story(known)["reference"]
        assert store.story(other)["reference"] is None
    finally:
        store.close()

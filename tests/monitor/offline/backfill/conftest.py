"""A stretch of history in a fake Langfuse, and one call of the command over it."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.evaluate.build import arrange_backends, build_backends
from sidejudge.monitor.evaluate.references.lookup import References
from sidejudge.monitor.offline.backfill.job import Begun, Job
from sidejudge.monitor.offline.backfill.listing import Reader, list_traces, sampler_of
from sidejudge.monitor.offline.backfill.run import Backfill, Progress
from sidejudge.scoring.status.snapshots import ExportSnapshot
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, Request

MINUTE_NS = 60 * 10**9
START_NS = 1_795_000_000 * 10**9
EVERYTHING = MatchSection()
SPEED = 200
"""So many times faster than the clock on the wall, so that nobody waits for Langfuse's workers."""


def asks_for_batches(request: Request) -> bool:
    """Whether it is the empty batch, or the empty array, that shows whether the server takes them."""
    return request.path in ("/ingestion", "/scores") and request.body in ([], {"batch": []})


def writes_scores(request: Request) -> bool:
    """Whether it carries scores, in either body."""
    return request.method == "POST" and request.path in ("/scores", "/ingestion") and not asks_for_batches(request)


@dataclass
class Scene:
    fake: FakeLangfuse
    langfuse: Langfuse
    folder: Path
    config: Config
    begun: float = field(default_factory=time.monotonic)
    exports: ExportSnapshot | None = None

    def clock_ns(self) -> int:
        return START_NS + int((time.monotonic() - self.begun) * SPEED * 1e9)

    def put(self, count: int, seed: int = 1) -> list[str]:
        """Traces of the hour before, one a minute; their ids."""
        traffic, found = SampleTraffic(seed), []
        for number in range(count):
            spans = decode_spans(traffic.next(START_NS - (number + 5) * MINUTE_NS, wrong=0.3).body)
            observations_of(self.fake).put(*rows_of(spans))
            found.append(spans[0].trace_id)
        return found

    async def run(
        self,
        *,
        job="job",
        wanted=EVERYTHING,
        heard=lambda _: None,
        minutes=120,
        config=None,
        places=(),
        shards=None,
        lent=None,
        stuck_s=60.0,
    ) -> Progress:
        """One call of the command; ``shards`` is a function of what is drawn."""
        config = config or self.config
        store = Store(self.folder / "backfill.sqlite")
        try:
            server = await probe(self.langfuse)
            window = Window(from_ns=START_NS - minutes * MINUTE_NS, to_ns=START_NS)
            reader = Reader(
                langfuse=self.langfuse, server=server, window=window, around_ns=30 * MINUTE_NS, sleep=_no_time
            )
            sampler = sampler_of(config, wanted)
            found = await reader.patiently(lambda: list_traces(self.langfuse, server, window, sampler, wanted))
            backends = build_backends(
                config, memory=store.judged, vectors=store.vectors, observer=None, clock_ns=self.clock_ns
            )
            if lent is not None:
                arranged = arrange_backends(config, judge=None, embedding=lent)
                backends = replace(backends, at_once=arranged.at_once, others=arranged.others)
            known = await self.references(store, places)
            of = _named(job)(
                config=config, sink=config.sinks.langfuse, window=window, wanted=wanted, store=store,
                connections=Held(self.langfuse), clock_ns=self.clock_ns, embedding=lent,
            )  # fmt: skip
            run = Backfill(
                Begun(job=of, found=found, reader=reader, scores=server, references=known, backends=backends), heard
            )
            await run.scores_out.start()
            try:
                await run.judge(found.drawn, shards and shards(found.drawn))
                self.exports = await run.deliver(stuck_s)
            finally:
                run.scores_out._delivery._task.cancel()
            return run.progress
        finally:
            store.close()

    async def references(self, store, places) -> References | None:
        if not places:
            return None
        found = References(places, store=store, reopen=lambda _: False, clock_ns=self.clock_ns, late_ns=MINUTE_NS)
        await found.refresh()
        return found

    def outbox(self) -> list[dict]:
        """What waits to be sent, and what was sent."""
        with closing(sqlite3.connect(self.folder / "backfill.sqlite")) as file, file:
            return [json.loads(body) for (body,) in file.execute("SELECT body FROM outbox WHERE body IS NOT NULL")]

    def stored(self) -> dict[tuple[str, str], object]:
        rows = self.fake.scores.stored()
        assert len({row["id"] for row in rows}) == len(rows)
        assert all(row["id"] == score_id(row["traceId"], row["name"]) for row in rows)
        return {(row["traceId"], row["name"]): row["value"] for row in rows}


@dataclass
class Held:
    langfuse: Langfuse

    def to(self, _access: Access) -> Langfuse:
        return self.langfuse


def _named(job: str) -> type[Job]:
    """Jobs of this name, whatever their configuration is."""
    return type("Named", (Job,), {"name": job, "__slots__": ()})


async def _no_time(_seconds: float) -> None:
    return None


@pytest.fixture
async def scene(tmp_path):
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake:
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "scores": "all"}
        config = Config.model_validate(
            {
                "sampling": {"rate": 1.0},
                "routes": [{"match": {"metadata.task": "qa"}, "rubrics": ["qa"]}, {"rubrics": ["answer", "entity"]}],
                "sinks": {"langfuse": keys},
            }
        )
        async with Langfuse(access, budget=RequestBudget(1e9), timeout_s=5.0) as langfuse:
            state = tmp_path / "state"
            state.mkdir()
            yield Scene(fake, langfuse, state, config)

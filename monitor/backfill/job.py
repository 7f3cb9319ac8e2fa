"""Job: a stretch of time to be judged under one configuration: first what it takes, then doing it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from integrations.langfuse.observations import Window
from integrations.langfuse.probe import Server, probe
from integrations.store.sqlite import Store
from monitor.answering import Answering, answering
from monitor.assembler import Assembler
from monitor.catalogue import configured
from monitor.config import Config
from monitor.config.langfuse import LangfuseProject, LangfuseSink
from monitor.config.match import Match
from monitor.config.units import Duration
from monitor.langfuse.connections import Connections
from monitor.references.book import References
from monitor.references.setup import references
from monitor.router import Router
from monitor.sampler import Sampler
from scoring.export_standing import ExportStanding

from .estimate import SAMPLE, Estimate, estimate
from .listing import Listing, list_traces
from .reading import MOST_ATTEMPTS, Reader, UnreadError
from .run import Backfill, Progress, case_of

_AROUND_NS: Final = 30 * 60 * 10**9
"""How far from what a listing saw rows are looked for, where `sources.langfuse.look_back` does not say."""


class NoReferencesError(Exception):
    """References cannot be read: judged without them, history would be judged otherwise. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Which traces, and how they are judged. ``store`` keeps how far it is; ``sink`` is where scores go."""

    config: Config
    sink: LangfuseSink
    window: Window
    wanted: Match
    store: Store
    connections: Connections
    clock_ns: Callable[[], int]

    @property
    def source(self) -> LangfuseProject:
        """Where traces are read."""
        return self.config.sources.langfuse or self.sink

    @property
    def name(self) -> str:
        """What tells it from other jobs in the same store: not its window, so that it may be widened."""
        said = json.dumps([self.config.fingerprint, self.wanted.describe()])
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[Begun]:
        """Look at what there is. Raises ``LangfuseError``, ``StoreError`` and ``NoReferencesError``."""
        langfuse, sink = self.connections.to(self.source), self.connections.to(self.sink)
        server = await probe(langfuse)
        scores = server if sink is langfuse else await probe(sink)
        source = self.config.sources.langfuse
        reader = Reader(
            langfuse=langfuse, server=server, window=self.window,
            around_ns=_AROUND_NS if source is None else source.look_back.ns,
        )  # fmt: skip
        sampler = Sampler(self.config.sampling)
        found = await reader.patiently(
            lambda: list_traces(langfuse, server, self.window, sampler, self.wanted), most=MOST_ATTEMPTS
        )
        known = await self._references()
        who = answering(
            self.config, memory=self.store.judged, vectors=self.store.vectors, observer=None, clock_ns=self.clock_ns
        )
        try:
            yield Begun(job=self, found=found, reader=reader, scores=scores, references=known, who=who)
        finally:
            await who.close()

    async def _references(self) -> References | None:
        """What is known of expected outcomes now, as far back as the window."""
        kept = Duration(max(1, self.clock_ns() - self.window.from_ns))
        store = self.config.store.model_copy(update={"retention": kept})
        whole = self.config.model_copy(update={"store": store})
        found = references(whole, self.connections, self.store, Assembler(), self.clock_ns)
        if found is not None:
            await found.refresh()
            for place, why in found.unreadable.items():
                raise NoReferencesError(f"{place}: {why}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A job of which it is known what there is to do. ``scores`` is who answers where scores go."""

    job: Job
    found: Listing
    reader: Reader
    scores: Server
    references: References | None
    who: Answering

    async def estimate(self) -> Estimate:
        """What it will take, from some of its traces, evenly spread over time."""
        config, drawn = self.job.config, self.found.drawn
        looked_at = min(SAMPLE, len(drawn))
        cases = []
        for index in range(looked_at):
            try:
                spans = await self.reader.spans(drawn[index * len(drawn) // looked_at])
            except UnreadError:
                continue
            case = case_of(config, spans, self.references)
            cases += [case] if self.job.wanted.matches(case) else []
        traces = round(len(drawn) * len(cases) / looked_at) if looked_at else 0
        router = Router(config.routes, config.scenarios, elsewhere=config.session_rubrics)
        return await estimate(config, cases, traces, router=router, rubrics=configured(config), who=self.who)

    async def run(
        self, heard: Callable[[Progress], None], judged: Callable[[], None]
    ) -> tuple[Progress, ExportStanding]:
        """Judge, and wait until the scores are where they belong. ``judged`` is told between the two.

        Raises what ``Backfill.judge`` raises.
        """
        job = self.job
        run = Backfill(
            job.config, job=job.name, wanted=job.wanted, sink=job.sink, langfuse=job.connections.to(job.sink),
            server=self.scores, reader=self.reader, store=job.store, who=self.who, references=self.references,
            clock_ns=job.clock_ns, heard=heard,
        )  # fmt: skip
        run.scores_out.start()
        try:
            await run.judge(self.found.drawn)
            judged()
            return run.progress, await run.deliver()
        finally:
            await run.scores_out.stop()

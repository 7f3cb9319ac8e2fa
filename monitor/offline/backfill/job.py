"""Job: judging a period under one configuration: first the estimate, then the run.

The models of its embeddings may be lent: they are in actors of Ray, all else stays with the process that runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import LangfuseServer, probe
from sidejudge.integrations.raw import RawSpan
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.langfuse import LangfuseProject, LangfuseSink
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.model import StoreSection
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.config.units import Duration
from sidejudge.monitor.evaluate.backends import Backend
from sidejudge.monitor.evaluate.build import EvaluationBackends, arrange_backends, build_backends
from sidejudge.monitor.evaluate.references.lookup import References, references
from sidejudge.monitor.evaluate.result import SessionIdentity
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.monitor.offline.engine import LOOK_S, ElsewhereError, Engine, RayCluster
from sidejudge.monitor.offline.score.request import ScoreRequest, fingerprint
from sidejudge.monitor.route.router import router_of
from sidejudge.monitor.runtime.builders import conversations
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.session import conversation, turn_of
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.questions.question import Question, Reply

from .estimate import SAMPLE, SESSIONS, WorkEstimate, estimate_work
from .listing import AROUND_NS, Listing, Reader, case_of, met, sampler_of

READ_AHEAD: Final = 64
"""Traces that are held in memory while they are judged."""
IN_BATCH: Final = 1000
"""Traces that are read and judged at a time where judges are asked in batches."""
_Each = TypeVar("_Each")


class NoReferencesError(SidejudgeError):
    """References cannot be read: judged without them, history would be judged otherwise. The message states why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Which traces, and how they are judged. ``store`` keeps how far it is; ``sink`` is where scores go.

    ``batch``: judges are asked through the provider's batch endpoint. ``embedding`` answers instead of a model here.
    """

    config: Config
    sink: LangfuseSink
    window: Window
    wanted: MatchSection
    store: Store
    connections: Connections
    clock_ns: Callable[[], int]
    batch: bool = False
    embedding: LentEmbedding | None = None

    @property
    def source(self) -> LangfuseProject:
        """Where traces are read."""
        return self.config.sources.langfuse or self.sink

    @property
    def name(self) -> str:
        """The job's identity in its store; without the window, which may be widened."""
        stated = json.dumps([self.config.fingerprint, self.wanted.describe()])
        return hashlib.sha256(stated.encode()).hexdigest()[:16]

    @property
    def shared_name(self) -> str:
        """The same for processes that share the work, wherever each keeps its state."""
        alike = self.config.model_copy(update={"fleet": None, "store": StoreSection()})
        stated = json.dumps([alike.fingerprint, self.wanted.describe()])
        return hashlib.sha256(stated.encode()).hexdigest()[:16]

    @property
    def as_run(self) -> Config:
        """The configuration with as many traces at once as a batch is worth."""
        judge = self.config.evaluators.judge
        if not self.batch or judge is None:
            return self.config
        judge = judge.model_copy(update={"concurrency": IN_BATCH})
        evaluators = self.config.evaluators.model_copy(update={"judge": judge})
        changed = self.config.model_copy(update={"evaluators": evaluators})
        return changed.with_declared(self.config.declared)

    @property
    def judges_sessions(self) -> bool:
        """Whether sessions are judged too: not with a filter, because they need all their turns."""
        return self.config.sessions is not None and self.wanted == MatchSection()

    @asynccontextmanager
    async def begun(self, note: Callable[[str], None] = lambda _: None) -> AsyncIterator[Begun]:
        """List the traces; ``note`` gets lines of text for the user meanwhile.

        Raises ``LangfuseError``, ``StoreError`` and ``NoReferencesError``.
        """
        langfuse, sink = self.connections.to(self.source.access), self.connections.to(self.sink.access)
        server = await met(partial(probe, langfuse), note)
        scores = server if sink is langfuse else await met(partial(probe, sink), note)
        source = self.config.sources.langfuse
        reader = Reader(
            langfuse=langfuse, server=server, window=self.window,
            around_ns=AROUND_NS if source is None else source.look_back.ns,
        )  # fmt: skip
        found = await reader.listing(sampler_of(self.config, self.wanted), self.wanted)
        known = await self._references(note)
        backends = build_backends(
            self.config, memory=self.store.judged, vectors=self.store.vectors, observer=None, clock_ns=self.clock_ns,
            batches=self.store.kept.room("batches") if self.batch else None,
        )  # fmt: skip
        if self.embedding is not None:
            arranged = arrange_backends(self.config, judge=backends.judge, embedding=self.embedding)
            backends = replace(backends, at_once=arranged.at_once, others=arranged.others)
        try:
            yield Begun(job=self, found=found, reader=reader, scores=scores, references=known, backends=backends)
        finally:
            await backends.close()

    async def _references(self, note: Callable[[str], None]) -> References | None:
        """The expected outcomes known now, as far back as the window."""
        kept = Duration(max(1, self.clock_ns() - self.window.from_ns))
        store = self.config.store.model_copy(update={"retention": kept})
        whole = self.config.model_copy(update={"store": store})
        found = references(whole, self.connections, self.store, Assembler(), self.clock_ns)
        if found is not None:
            with suppress(LangfuseError):  # it stands among what cannot be read
                await met(partial(_read, found), note)
            for place, why in found.unreadable.items():
                raise NoReferencesError(f"{place}: {why}")
        return found


async def _read(found: References) -> None:
    await found.refresh()
    for why in found.unreadable.values():
        if isinstance(why.__cause__, LangfuseError):
            raise why.__cause__


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A job with its listed traces. ``scores`` is the server for scores."""

    job: Job
    found: Listing
    reader: Reader
    scores: LangfuseServer
    references: References | None
    backends: EvaluationBackends

    async def estimate_work(self) -> WorkEstimate:
        """The estimated cost, from some of its traces, evenly spread over time."""
        config, drawn = self.job.config, self.found.drawn
        looked_at = evenly(drawn, SAMPLE)
        sampler = sampler_of(config, self.job.wanted)
        cases = [case async for case, spans in self._cases(looked_at)
                 if self.job.wanted.matches(case) and _is_drawn(sampler, case, spans)]  # fmt: skip
        traces = round(len(drawn) * len(cases) / len(looked_at)) if looked_at else 0
        router = router_of(config)
        reported = await estimate_work(
            config, cases, traces, router=router, rubrics=configured(config), backends=self.backends
        )
        return reported.and_sessions(await self._sessions()) if self.job.judges_sessions else reported

    async def _sessions(self) -> WorkEstimate:
        """The estimated cost of the listed sessions, from a few of them."""
        config, by_id = self.job.config, defaultdict[str, list[ListedTrace]](list)
        found = conversations(config)
        if found is None:
            return WorkEstimate(traces=0, read=0, judged=0, questions=0.0, usd=0.0)
        for listed in self.found.drawn:
            if listed.session_id and found.draw(SessionIdentity(None, None, listed.session_id)).kept:
                by_id[listed.session_id].append(listed)
        cases = []
        for session_id in evenly(list(by_id), SESSIONS):
            read = [each async for each in self._cases(by_id[session_id][:SAMPLE])]
            turns = [turn_of(case, min(span.start_ns for span in spans)) for case, spans in read]
            cases += [conversation(session_id, turns, "idle")] if turns else []
        return await estimate_work(
            config, cases, len(by_id), router=found.router, rubrics=configured(config), backends=self.backends
        )  # fmt: skip

    async def _cases(self, listed: Sequence[ListedTrace]) -> AsyncIterator[tuple[Case, list[RawSpan]]]:
        """The readable ones of these traces."""
        async for spans in self.reader.readable(listed):
            yield case_of(self.job.config, spans, self.references), spans


def evenly(things: Sequence[_Each], most: int) -> list[_Each]:
    """So many of them at most, evenly spread over their order.

    >>> evenly("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    count = min(most, len(things))
    return [things[index * len(things) // count] for index in range(count)]


def _is_drawn(sampler: Sampler, case: Case, spans: Sequence[RawSpan]) -> bool:
    states = [span.trace_state for span in spans]
    return sampler.decide(case, sampler.admission, bytes.fromhex(spans[0].trace_id), states).kept


class LentEmbedding:
    """A backend whose ``models`` may be lost: no verdict is reached without them, and ``lost`` states why.

    While an answer is waited for, ``look`` is called; it raises ``ElsewhereError`` where none will come.
    """

    outage: Final = None
    """Models of our own are lost or work; an endpoint is never lent."""

    def __init__(self, models: Backend, look: Callable[[], None]) -> None:
        self._models, self._look = models, look
        self.lost: ElsewhereError | None = None

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        """As ``Backend.answer``. Where the models are lost it never returns: the run ends, and cancels it."""
        answer = asyncio.ensure_future(self._models.answer(case, questions))
        try:
            while not (await asyncio.wait({answer}, timeout=LOOK_S))[0]:
                await asyncio.to_thread(self._look)
            return answer.result()
        except ElsewhereError as error:
            self.lost = error
        finally:
            answer.cancel()
        never: asyncio.Future[Mapping[Question, Reply]] = asyncio.get_running_loop().create_future()
        return await never


def is_lent(settings: Config) -> bool:
    """Whether there is a model that this process would work with itself; an endpoint works elsewhere already."""
    section = settings.evaluators.embedding
    return section is not None and not section.remote


@contextmanager
def lent_embedding(engine: Engine, config: Path, settings: Config) -> Iterator[LentEmbedding | None]:
    """The models of a configuration on the engine, while they run; None where this process is to hold its own.

    Raises:
        ElsewhereError: The engine cannot be reached.
        EmbeddingError: The model cannot be loaded there.
    """
    section = settings.evaluators.embedding
    if not isinstance(engine, RayCluster) or section is None or not is_lent(settings):
        yield None
        return
    engine.start()
    from sidejudge.monitor.offline.score.ray_backends import RemoteEmbedding, embeddings_of  # noqa: PLC0415  # it imports Ray, an extra

    held = embeddings_of(ScoreRequest(config=config, fingerprint=fingerprint(settings)), section)
    yield LentEmbedding(RemoteEmbedding(range(len(held))), engine.look)

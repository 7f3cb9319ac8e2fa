"""Run: judges the traces of a listing as a live monitor does, and writes their scores beside them.

A run has its own store, because a live monitor uses its own. A result is stored with its scores and the name of the
job before the trace is dropped from memory, so a killed run goes on where it was. Scores get the ids and times that a
live monitor gives them, so earlier scores are found again: an equal verdict stays, a different one becomes the next
revision (``numbering.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.store.sqlite import FinishedTrace, StoredTurn
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.deliver.kept_contents import kept_redaction, redacting
from sidejudge.monitor.deliver.langfuse.sink import LangfuseScores, time_of
from sidejudge.monitor.evaluate.backends import EMBEDDINGS_OUT, OUTAGE
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.evaluate.pipeline import Pipeline, one_by_one
from sidejudge.monitor.evaluate.result import SessionTurn, TraceResult
from sidejudge.monitor.evaluate.stages import EvaluationStages
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.langfuse.fetch import UnreadError
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace
from sidejudge.monitor.offline.score.chunks import LASTING, JudgeOutError
from sidejudge.monitor.route.router import router_of
from sidejudge.monitor.runtime.builders import conversations, judge_queue, session_limits
from sidejudge.monitor.sessions.windows import SessionLimits
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.status.snapshots import ExportSnapshot
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.verdict.documents import TraceDocument

from .job import IN_BATCH, READ_AHEAD, Begun
from .listing import NOT_READ, OTHER, case_of, sampler_of
from .numbering import Numbering
from .sessions import PastSession, bucket_of, past_sessions
from .shards import Shards

_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 16.0
STUCK_S: Final = 900.0
"""How long to wait while Langfuse shows no further score, in s; scores that are missing then are reported."""


class StoppedError(SidejudgeError):
    """Scores are refused for a reason that needs a person; the message names it."""


@dataclass(slots=True)
class Progress:
    """The progress of a run: traces that are done, verdicts by outcome, and traces that were not judged, by reason.

    ``before`` of the ``done`` traces were judged by an earlier call, ``elsewhere`` are traces that other processes of
    the job judged. ``sessions_cut`` of the judged ``sessions`` are incomplete: turns lie outside the time range or
    could not be read; what Langfuse has of them stays. ``unchanged`` verdicts were in Langfuse already; ``revised``
    ones replace a different verdict.
    ``unread`` are the ids of traces that could not be read.
    """

    done: int = 0
    before: int = 0
    elsewhere: int = 0
    passed: int = 0
    failed: int = 0
    incomplete: int = 0
    sessions: int = 0
    sessions_cut: int = 0
    unchanged: int = 0
    revised: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    unread: list[str] = field(default_factory=list)


class SilentScoreCounters:
    """Counts nothing: a run reports its own figures."""

    def exported(self, _destination: str, _count: int = 1, *, at_s: float | None = None) -> None: ...
    def export_failed(self, _destination: str, _reason: str, _count: int = 1) -> None: ...


class Backfill:
    """One run of one job. ``on_result`` is called after each trace.

    Earlier scores are unknown where the server for scores has no API to read them.
    """

    def __init__(self, begun: Begun, on_result: Callable[[Progress], None]) -> None:
        job, server, backends = begun.job, begun.scores, begun.backends
        config, sink, store, clock_ns = job.as_run, job.sink, job.store, job.clock_ns
        langfuse = job.connections.to(sink.access)
        self._begun, self._config, self._job, self._wanted = begun, config, job.name, job.wanted
        self._reader, self._store, self._on_result = begun.reader, store, on_result
        self._read_ahead = IN_BATCH if job.batch else READ_AHEAD
        self._held: dict[bytes, bytes] = {}
        self._sessions = session_limits(config.sessions) if config.sessions and job.judges_sessions else None
        self._past: dict[bytes, PastSession] = {}
        self._torn: set[str] = set()
        self._turns: dict[bytes, frozenset[str]] = {}
        sampler = sampler_of(config, job.wanted)
        self._origin = ChunkOrigin(None, None, sampler.admission, hash_key=sampler.hash_key)
        rubrics = configured(config)
        readable = server.scores_v3 or server.legacy_reads
        self._numbering = Numbering(langfuse if readable else None, rubrics, sink, v3=server.scores_v3)
        self.scores_out = LangfuseScores(
            sink, langfuse=langfuse, store=store, rubrics=rubrics, counters=SilentScoreCounters(), clock_ns=clock_ns,
            overtaken=self._numbering.overtaken_by if readable else None,
        )  # fmt: skip
        stages = EvaluationStages(
            archive=self,
            sampler=sampler,
            router=router_of(config),
            evaluator=Evaluator(
                rubrics, backends.at_once, backends.others, max_cpu_s=config.evaluators.max_case_cpu.seconds
            ),
            reference_keys=config.reference_keys,
            redact=redacting(kept_redaction(config)),
            conversations=conversations(config) if self._sessions else None,
            references=begun.references,
            slices=config.alerts.slices,
        )
        self._pipeline = Pipeline(
            stages=stages,
            judge_queue=judge_queue(config, stages, clock_ns, store),
            commit=one_by_one(self._commit),
            clock_ns=clock_ns,
        )
        self.progress = Progress()

    async def judge(self, drawn: Sequence[ListedTrace], shards: Shards | None = None) -> None:
        """Judge all traces in their order; with ``shards`` only this process's.

        Raises ``LangfuseError``, ``StoreError``, ``StoppedError`` and ``ElsewhereError``; ``JudgeOutError`` and
        ``EmbeddingError`` where these cannot be asked for longer than is waited, or until somebody acts.
        """
        try:
            if shards is None:
                await self._judge(drawn)
                return
            async for part in shards.parts():
                await self._judge(part)
            self.progress.elsewhere = shards.elsewhere
        finally:
            await self._pipeline.close()

    async def _judge(self, drawn: Sequence[ListedTrace]) -> None:
        for listed in drawn:
            if await asyncio.to_thread(self._is_through, listed.trace_id):
                self.progress.before += 1
                self._through()
            else:
                await self._take(listed)
        while self._held:
            await self._go_on()
        if self._sessions is not None:
            await self._take_sessions(self._sessions)
        while self._held:
            await self._go_on()

    async def is_delivered(self) -> bool:
        """Whether every score so far is accepted and read back, or given up."""
        self._exports()
        counts = await asyncio.to_thread(self._store.outbox.counts)
        if counts.unseen and not counts.waiting:
            with suppress(LangfuseError):  # the delivery itself meets it too, and reports it
                await self.scores_out.look_early()
        return not counts.waiting and not counts.unseen

    async def deliver(self, stuck_s: float = STUCK_S) -> ExportSnapshot:
        """Wait until each score is accepted and read back, or given up; the export's state then. Raises as ``judge``.

        The wait ends where Langfuse answers and makes no progress for ``stuck_s``; the next call goes on with the rest.
        """
        pause_s, left, since_s = _PAUSE_S, -1, time.monotonic()
        while True:
            exports = self._exports()
            counts = await asyncio.to_thread(self._store.outbox.counts)
            if counts.waiting + counts.unseen != left or exports.state != "ok":
                left, since_s = counts.waiting + counts.unseen, time.monotonic()
            if not left or time.monotonic() - since_s >= stuck_s:
                return replace(exports, waiting=counts.waiting, unseen=counts.unseen, dead=counts.dead)
            await asyncio.sleep(pause_s)
            if not counts.waiting:  # somebody waits for the command: do not let the usual minute pass
                found = False
                with suppress(LangfuseError):  # the delivery itself meets it too, and reports it
                    found = await self.scores_out.look_early()
                pause_s = _PAUSE_S if found else min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _take(self, listed: ListedTrace) -> None:
        try:
            spans = await self._reader.spans(listed)
        except UnreadError as error:
            if listed.session_id is not None:
                self._torn.add(listed.session_id)
            if str(error).startswith(NOT_READ):
                self.progress.unread.append(listed.trace_id)
            self._skip(str(error))
            return
        if self._wanted != MatchSection() and not self._wanted.matches(
            await asyncio.to_thread(case_of, self._config, spans)
        ):
            self._skip(OTHER)
            return
        trace_id = bytes.fromhex(listed.trace_id)
        before = self._store.details(trace_id)
        self._held[trace_id] = await asyncio.to_thread(encode_spans, spans)
        revision = int(before["revision"]) + 1 if before is not None else 1
        await self._enqueue(Closing(trace_id=trace_id, completion="batch", revision=revision, origin=self._origin))

    async def _take_sessions(self, limits: SessionLimits) -> None:
        for past in await asyncio.to_thread(past_sessions, self._store, limits, self._reader.window):
            name, beyond = past.identity.session_id, past.beyond(self._reader.window, limits, self._reader.around_ns)
            if self._turns.get(past.closing.trace_id) == past.traces:  # taken with an earlier shard
                continue
            self._turns[past.closing.trace_id] = past.traces
            whole = name not in self._torn and await self._is_whole(past, beyond)
            await self._take_session(past if whole else past.cut())

    async def _is_whole(self, past: PastSession, beyond: Iterable[Window]) -> bool:
        """Whether a session has no turn that was not read; where that cannot be known, it is not."""
        try:
            return await self._reader.traces_of(past.identity.session_id, beyond) <= past.traces
        except UnreadError:
            return False

    async def _take_session(self, past: PastSession) -> None:
        key = past.closing.trace_id
        before = await asyncio.to_thread(self._store.details, key)
        if before is not None and _same(before, past, self._job):
            return
        revision = int(before["revision"]) + 1 if before is not None else 1
        self._past[key], self._held[key] = past, b""
        await self._enqueue(replace(past.closing, revision=revision))

    async def _enqueue(self, closing: Closing) -> None:
        """Have it judged, and wait until fewer are held than are read ahead."""
        self._pipeline.waiting.append(closing)
        await self._pipeline.drain()
        while len(self._held) >= self._read_ahead:
            await self._go_on()

    async def _go_on(self) -> None:
        self._exports()
        lent = self._begun.job.embedding
        if lent is not None and lent.lost is not None:  # a question to its models would never be answered
            raise lent.lost
        self._check_reach()
        await self._pipeline.drain()
        if self._held:
            await self._pipeline.pause(_PAUSE_S)

    def _exports(self) -> ExportSnapshot:
        (exports,) = self.scores_out.snapshots()
        if exports.state == "stopped":
            raise StoppedError(exports.reason)
        return exports

    def _check_reach(self, result: TraceResult | None = None) -> None:
        """Raise where the judge or embeddings are out until somebody acts, or a result has gaps for it.

        Such a result replaced what is in Langfuse. A gap while they answer others is the trace's own.
        """
        others = self._begun.backends.others
        judge, embedding = (others.judge, others.embedding) if others is not None else (None, None)
        scores = (score.result for each in (result.verdicts if result is not None else ()) for score in each.scores)
        gaps = [str(each.reason) for each in scores if isinstance(each, Failed)]
        out = embedding.outage if embedding is not None else None
        if out is not None and (out.lasting or any(EMBEDDINGS_OUT in gap for gap in gaps)):
            raise out
        why = judge.outage if judge is not None else None
        if judge is not None and why is not None and (why.startswith(LASTING) or any(OUTAGE in gap for gap in gaps)):
            raise JudgeOutError(judge.outage_cause or why)

    async def _commit(self, result: TraceResult) -> None:
        self._check_reach(result)
        past = self._past.get(result.trace_id) if result.session else None
        at_ns = time_of(result) if past is None else past.ended_ns
        torn = past is not None and past.torn
        numbered = await self._reader.patiently(lambda: self._numbering.number(result.verdicts, at_ns, of_part=torn))
        verdicts = [each.verdict for each in numbered]
        await self._store.finish(
            FinishedTrace(
                trace_id=result.trace_id, service=result.service, reason=result.reason.value,
                completion=result.completion, revision=result.revision,
                details={**result.details, "backfill": self._job},
                verdicts=[verdict.to_json() for verdict in verdicts], closed_ns=result.ended_ns,
                scores=[score for each in numbered for score in each.scores], turn=_turn(result.turn),
            )
        )  # fmt: skip
        self.progress.unchanged += sum(each.stands for each in numbered)
        self.progress.revised += sum(each.revises for each in numbered)
        del self._held[result.trace_id]
        if past is not None:
            self.progress.sessions += 1
            self.progress.sessions_cut += torn
            del self._past[result.trace_id]
        elif not result.verdicts:
            self.progress.unjudged[result.reason.value] += 1
        for verdict in result.verdicts:
            self.progress.passed += verdict.passed is True
            self.progress.failed += verdict.passed is False
            self.progress.incomplete += verdict.passed is None
        if past is None:
            self._through()

    def _skip(self, why: str) -> None:
        self.progress.unjudged[why] += 1
        self._through()

    def _through(self) -> None:
        self.progress.done += 1
        self._on_result(self.progress)

    def _is_through(self, trace_id: str) -> bool:
        reported = self._store.details(trace_id)
        return reported is not None and reported.get("backfill") == self._job

    def chunks_and_stories(self, trace_ids: Iterable[bytes]) -> list[tuple[list[bytes], TraceDocument | None]]:
        """The spans of traces as chunks, for the stages, and the results of an earlier job."""
        held = ((trace_id, self._held.get(trace_id)) for trace_id in trace_ids)
        return [([] if payload is None else [payload], self._store.details(trace_id)) for trace_id, payload in held]

    def turns(self, key: bytes) -> list[tuple[int, JsonRecord]]:
        """The turns of a session that is being judged."""
        return [(number, dict(turn.text)) for number, turn in enumerate(self._past[key].turns, 1)]

    def holds_judged(self, _trace_id: bytes) -> bool:
        """Always true: each trace is read as a whole."""
        return True


async def run(
    begun: Begun, on_result: Callable[[Progress], None], judged: Callable[[], None],
    note: Callable[[str], None] = lambda _: None,
) -> tuple[Progress, ExportSnapshot]:  # fmt: skip
    """Judge, and wait until the scores are delivered. ``judged`` is called between the two.

    ``note`` gets lines of text for the user meanwhile. Raises what ``Backfill.judge`` raises.
    """
    job, drawn = begun.job, begun.found.drawn
    run = Backfill(begun, on_result)
    shards = None if job.config.fleet is None else Shards(
        job.config.fleet, job.shared_name, drawn, is_delivered=run.is_delivered, note=note
    )  # fmt: skip
    await run.scores_out.start()
    try:
        await run.judge(drawn, shards)
        judged()
        exports = await run.deliver()
        if shards is not None:
            await shards.settle()
        return run.progress, exports
    finally:
        if shards is not None:
            await shards.close()
        await run.scores_out.stop()


def _turn(turn: SessionTurn | None) -> StoredTurn | None:
    """A turn for the store, by its session id alone: which session it belongs to is known once all turns are there."""
    return None if turn is None else StoredTurn(key=bucket_of(turn.identity), turn=turn.text, **turn.identity._asdict())


def _same(before: TraceDocument, past: PastSession, job: str) -> bool:
    """Whether the same job has judged this session with the same turns."""
    reported = set(before.get("traces") or ())
    return before.get("backfill") == job and reported == past.traces and before["completion"] == past.closing.completion

"""App: the composition root. The only file that names concrete adapters, and the order in which things start and end.

Start: store, what it still holds, listeners, ready. End: stop listening, let answers out, close the store. What is not
judged by then is in the store and is taken up at the next start.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from prometheus_client import CollectorRegistry

from integrations.jsonl import JsonLines
from integrations.otlp.forward import UNJUDGED
from integrations.otlp.upstream import REASONS
from integrations.prometheus.exporter import Exporter, Known
from integrations.store.sqlite import Finished, Store, StoredTurn, StoreError
from scoring.alerts.event import AlertEvent
from scoring.export_standing import ExportStanding
from scoring.violations import KINDS, violations

from .alerts.declared import declaration
from .alerts.details import Watched
from .alerts.examples import examples
from .alerts.rounds import Rounds
from .alerts.watch import Watch
from .answering import answering, judge_standing, known_judge
from .api import create_app
from .assembler import Assembler, Closing, Limits
from .backlog import Backlog
from .catalogue import configured
from .certificates import CertificateError
from .config import Config
from .config.model import Sessions as SessionsSection
from .config.notify import names
from .conversations import Conversations
from .docket import Docket
from .ending import Ending
from .evaluator import Evaluator
from .front import Front
from .intake import Intake
from .langfuse.delivery import DESTINATION as LANGFUSE
from .langfuse.delivery import REASONS as LANGFUSE_REASONS
from .langfuse.sink import ScoresOut, connect
from .ledger import Ledger, Reason
from .notify.setup import Notifications
from .observation import observe, observe_stored
from .pipeline import BATCH, Pipeline
from .room import make_room
from .router import Router
from .sampler import Sampler
from .server import AddressError, Server, address, bind
from .sessions import Identity, SessionLimits, Sessions, StoredTurnHead
from .traffic import Traffic
from .trial import Trials
from .view import REJECTED, View
from .windows import Windows

log = logging.getLogger("sidejudge")

TICK_S = 0.25
"""How often due traces are looked for: short beside the shortest grace, long beside the cost of looking."""
_NOT_WRITTEN, _NOT_DELIVERED = "not_written", "not_delivered"
NOTIFY_TICK_S = 30
"""How often reminders, digests and the report are looked for: short beside Alertmanager's refresh."""
RETRY_S = 2.0
"""How long judging rests after the store refused an ending."""


class Monitor:
    """One monitor: a store, a pipeline and two listeners. ``start`` makes it ready, ``stop`` ends it without loss."""

    def __init__(self, config: Config, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.config = config
        self.clock_ns = clock_ns
        self.store = Store(config.store.path, max_bytes=config.store.max_bytes)
        self.assembler = Assembler(_limits(config))
        self.sampler = Sampler(config.sampling, whatever=config.sessions is not None)
        self.sessions = Sessions(_session_limits(config.sessions)) if config.sessions is not None else None
        self.windows = Windows(config.alerts.window.ns)
        self.watch = Watch(declaration(config), self.windows)
        self.exporter = Exporter(CollectorRegistry(), _known(config, self.watch), label_cap=config.metrics.label_cap)
        self.ledger = Ledger(on_ended=self.exporter.ledger_ended)
        self.intake = Intake(
            sampler=self.sampler, store=self.store, assembler=self.assembler, ledger=self.ledger, clock_ns=clock_ns
        )
        self.traffic = Traffic(skew=self.intake.skew)
        self.answering = answering(
            config,
            memory=self.store.judged,
            vectors=self.store.vectors,
            observer=self.exporter.judge,
            embedding_observer=self.exporter.embedding,
            clock_ns=clock_ns,
        )
        trials = Trials(
            archive=self.store,
            sampler=self.sampler,
            router=Router(config.routes, config.scenarios, elsewhere=config.session_rubrics),
            evaluator=Evaluator(configured(config), self.answering.at_once, self.answering.others),
            reference_keys=config.reference_keys,
            conversations=_conversations(config),
        )
        self.pipeline = Pipeline(
            trials=trials,
            docket=_docket(config, trials, clock_ns),
            commit=self._commit,
            clock_ns=clock_ns,
            listeners=[self._record],
        )
        try:
            self.front = Front(config, self.intake)
        except CertificateError:
            self.store.close()
            raise
        self.receiver = self.front.receiver
        self.scores_out = _scores_out(config, self.store, self.exporter, clock_ns)
        self.view = View(
            config=config,
            version=version("sidejudge"),
            policy=self.watch.declared.policy,
            store=self.store,
            assembler=self.assembler,
            ledger=self.ledger,
            intake=self.intake,
            front=self.front,
            pipeline=self.pipeline,
            windows=self.windows,
            watch=self.watch,
            exporter=self.exporter,
            clock_ns=clock_ns,
            working=self._works,
            judge=lambda: judge_standing(config, self.answering.judge, self.pipeline.docket, clock_ns() / 1e9),
            suspicions=self.traffic.suspicions,
            sessions=self.sessions,
            started_ns=clock_ns(),
            trace_url=self.scores_out.trace_url if self.scores_out else lambda _: None,
        )
        self.exporter.watch(self.view.snapshot)
        self.rounds = Rounds(
            watch=self.watch,
            windows=self.windows,
            watched={name: Watched.of(rubric) for name, rubric in configured(config).items()},
            memory=self.store.kept,
            store=self.store,
            spool_bytes=lambda: self.store.size,
            judge=self.view.judge,
        )
        self.notifications = Notifications(
            config,
            self.store,
            clock_ns=clock_ns,
            illustrate=partial(examples, self.store),
            exported=self._delivered,
            watch=self.watch,
        )
        self.view.exports = self._exports
        # First those who may fail: an event that could not be taken is told to all again.
        self.rounds.listeners += [self.notifications.take, self._told]
        self._lines = JsonLines(config.sinks.jsonl.path) if config.sinks.jsonl else None
        if self._lines:
            self.pipeline.listeners.append(self._write)
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._servers: list[Server] = []
        self._judging: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None

    @property
    def _one_audience(self) -> bool:
        """Whether both addresses are open to the same callers: then the OTLP address may answer the API as well."""
        return self.config.sources.otlp.http.host == self.config.api.listen.host

    async def start(self) -> Mapping[str, str]:
        """Take up what was left, listen, and return the addresses: ``otlp`` and ``api``."""
        if self._lines:
            self._lines.check()
        now_ns = self.clock_ns()
        self._remember_all(now_ns)
        resumed = self.intake.restore()
        if self.sessions is not None:
            self.sessions.restore(map(_turn_head, self.store.recover_turns()))
        api = create_app(self.view, version=self.view.version)
        otlp_socket = bind(str(self.config.sources.otlp.http), "sources.otlp.http")
        try:
            api_socket = bind(str(self.config.api.listen), "api.listen")
        except AddressError:
            otlp_socket.close()
            raise
        try:
            more = await self.front.start()
        except AddressError:
            otlp_socket.close()
            api_socket.close()
            raise
        otlp = self.front.app(api, whole=self._one_audience)
        self._servers = [Server(otlp, otlp_socket, self.config.sources.otlp.tls), Server(api, api_socket)]
        for server in self._servers:
            await server.start()
        self._judging = asyncio.create_task(self._judge_what_is_due())
        self._warming = asyncio.create_task(self.answering.warm()) if self.answering.others else None
        if self.scores_out:
            self.scores_out.start()
        self._scheduler.add_job(self._purge, "interval", minutes=1, coalesce=True, max_instances=1)
        self._scheduler.add_job(self._look, "interval", seconds=30, coalesce=True, max_instances=1)
        every_s = self.config.alerts.look.seconds
        self._scheduler.add_job(self._watch_alerts, "interval", seconds=every_s, coalesce=True, max_instances=1)
        self._scheduler.add_job(
            self.notifications.tick, "interval", seconds=NOTIFY_TICK_S, coalesce=True, max_instances=1
        )
        await self.notifications.start()
        await self._watch_alerts()
        await self.notifications.tick()
        self._scheduler.add_job(self._make_room, "interval", seconds=2, coalesce=True, max_instances=1)
        self._scheduler.start()
        self.view.is_started = self.view.is_ready = True
        addresses = {"otlp": address(otlp_socket, self.front.scheme), "api": address(api_socket), **more}
        log.info("ready", extra={**addresses, "resumed_traces": resumed, "sampling_rate": self.config.sampling.rate})
        return addresses

    async def stop(self) -> None:
        """End in order. What is not judged by now stays in the store, open."""
        self.view.is_ready = False
        self.receiver.accepting = False
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        await asyncio.gather(*(server.stop() for server in self._servers), self.front.stop())
        await self.front.close()
        if self._judging:
            self._judging.cancel()
            await asyncio.gather(self._judging, return_exceptions=True)  # how it ended is logged; the store is closed
            try:
                await self.pipeline.close()
            except StoreError as error:
                log.warning("could not write verdicts; they are reached again", extra={"cause": str(error)})
        if self._warming:
            await asyncio.gather(self._warming, return_exceptions=True)
        await self.answering.close()
        if self.scores_out:
            await self.scores_out.stop()
        await self.notifications.close()
        try:
            await self.rounds.remember()
        except StoreError as error:
            log.warning("could not remember the alerts", extra={"cause": str(error)})
        self.store.close()
        log.info("stopped", extra={"open_traces": self.ledger.open})

    def _works(self) -> bool:
        """Whether the parts that judge and write back still run; without them traces or scores pile up for ever."""
        judging = self._judging is None or not self._judging.done()
        return judging and (self.scores_out is None or self.scores_out.working)

    def due(self) -> list[Closing]:
        """Traces and sessions that are closed by now, each once."""
        now_ns = self.clock_ns()
        traces = self.traffic.closed(self.assembler.due(now_ns))
        return [*traces, *(self.sessions.due(now_ns) if self.sessions is not None else ())]

    async def _judge_what_is_due(self) -> None:
        while True:
            self.pipeline.waiting.extend(self.due())
            try:
                await self.pipeline.drain()
            except StoreError as error:
                log.error("could not write verdicts; they wait", extra={"cause": str(error)})  # noqa: TRY400 - the cause says all
                await asyncio.sleep(RETRY_S)
            except Exception:
                log.exception("judging has ended; this process is not live any more")
                raise
            await self.pipeline.pause(TICK_S)

    async def _commit(self, ending: Ending) -> None:
        if ending.reason is Reason.LATE:
            await self.store.dismiss(ending.trace_id, ending.chunks)
            return
        turn = self._join(ending)
        session = turn.key if turn is not None else ending.turn.former if ending.turn is not None else None
        story = ending.story if session is None else {**ending.story, "session": session.hex()}
        await self.store.finish(
            Finished(
                trace_id=ending.trace_id,
                service=ending.service,
                reason=ending.reason.value,
                completion=ending.completion,
                revision=ending.revision,
                story=story,
                verdicts=[verdict.to_json() for verdict in ending.verdicts],
                closed_ns=ending.ended_ns,
                chunks=ending.chunks,
                scores=self.scores_out.outgoing(ending) if self.scores_out else None,
                turn=turn,
            )
        )

    def _join(self, ending: Ending) -> StoredTurn | None:
        """The session that the trace joins; what is not committed after that joins again."""
        if self.sessions is None or ending.turn is None:
            return None
        identity, text = ending.turn.identity, ending.turn.text
        key = self.sessions.join(identity, ending.trace_id, len(text), ending.ended_ns, former=ending.turn.former)
        return StoredTurn(key=key, turn=text, **identity._asdict()) if key is not None else None

    def _record(self, ending: Ending) -> None:
        """Ledger, metrics and windows learn of an ending that is committed."""
        if not ending.session:  # the books are of traces
            self.ledger.ended(ending.service, ending.reason, revision=ending.revision)
        if ending.reason is Reason.LATE:
            self.assembler.refuse(ending.trace_id)
        if ending.verdicts and ending.revision == 1 and not ending.session:
            self.exporter.trace_kept(ending.service, ending.verdicts[0].selection)
        for rubric in ending.withdrawn:
            self.windows.withdraw(ending.trace_id.hex(), rubric)
        for verdict in ending.changed:
            key, seen = observe(verdict)
            self.windows.add(key, seen)
            self.watch.learn(key, seen)
            self.exporter.verdict(verdict)
            if verdict.revision == 1:
                for kind in violations(verdict):
                    self.exporter.workflow_violation(ending.scenario or "inline", kind, verdict.trace_id)
        if ending.changed and ending.last_span_ns is not None:
            lag_s = (ending.ended_ns - ending.last_span_ns) / 1e9
            self.exporter.evaluation_lag(ending.service, lag_s)
            self.rounds.lagged(ending.ended_ns, lag_s)

    def _remember_all(self, now_ns: int) -> None:
        """Fill the windows again, and let the watch learn what was judged after it last remembered."""
        self.rounds.restore()
        begin_ns, known_ns = now_ns - self.windows.window_ns, self.watch.cursor_ns
        for key, seen in observe_stored(self.store.verdicts_since(min(begin_ns, known_ns or begin_ns))):
            if seen.at_ns > begin_ns:
                self.windows.add(key, seen)
            if seen.at_ns > known_ns:
                self.watch.learn(key, seen)

    async def _watch_alerts(self) -> None:
        """Statuses and alerts; without the store there is no look, and what stood stays."""
        try:
            await self.rounds.look(self.clock_ns())
        except StoreError as error:
            log.warning("could not remember the alerts; the next look tells of them", extra={"cause": str(error)})

    def _exports(self) -> list[ExportStanding]:
        """Where scores and notices go to, and how far they have come."""
        scores = [self.scores_out.standing()] if self.scores_out else []
        return [*scores, *self.notifications.exports()]

    def _delivered(self, destination: str, count: int, failed: int, at_ns: int) -> None:
        self.exporter.exported(destination, count, at_s=at_ns / 1e9 if count > failed else None)
        self.exporter.export_failed(destination, _NOT_DELIVERED, failed)

    async def _told(self, event: AlertEvent) -> None:
        self.exporter.alert_told(event.condition, event.turn.value)

    def _write(self, ending: Ending) -> None:
        """Verdicts as JSON lines. The file is a copy for people; the store keeps the truth."""
        if self._lines and ending.changed:
            failed = self._lines.write([verdict.to_json() for verdict in ending.changed])
            self.exporter.exported("jsonl", len(ending.changed), at_s=None if failed else ending.ended_ns / 1e9)
            self.exporter.export_failed("jsonl", _NOT_WRITTEN, failed)

    async def _look(self) -> None:
        self.traffic.log_news()

    async def _purge(self) -> None:
        now_ns = self.clock_ns()
        try:
            await self.store.purge(
                now_ns - self.config.store.retention.ns, chunks_before_ns=now_ns - self.config.assembly.late.ns
            )
            sessions = self.config.sessions
            grown_ns = now_ns - (sessions.late.ns if sessions is not None else 0)
            await self.store.purge_turns(grown_ns, now_ns - self.config.store.retention.ns)
        except StoreError as error:
            log.warning("could not purge the store", extra={"cause": str(error)})

    async def _make_room(self) -> None:
        config = self.config
        try:
            await make_room(
                self.store, self.assembler,
                now_ns=self.clock_ns(), retention_ns=config.store.retention.ns, late_ns=config.assembly.late.ns,
            )  # fmt: skip
        except StoreError as error:
            log.warning("could not make room in the store", extra={"cause": str(error)})


def _limits(config: Config) -> Limits:
    assembly = config.assembly
    return Limits(
        grace_ns=assembly.grace.ns,
        idle_ns=assembly.idle.ns,
        idle_max_ns=assembly.idle_max.ns if assembly.idle_max else 4 * assembly.idle.ns,
        deadline_ns=assembly.deadline.ns,
        late_ns=assembly.late.ns,
        max_open_traces=assembly.max_open_traces,
        max_open_bytes=assembly.max_open_bytes,
    )


def _session_limits(section: SessionsSection) -> SessionLimits:
    return SessionLimits(idle_ns=section.idle.ns, late_ns=section.late.ns, max_turns=section.max_turns)


def _conversations(config: Config) -> Conversations | None:
    section = config.sessions
    if section is None:
        return None
    rate = config.sampling.rate if section.sampling_rate is None else section.sampling_rate
    return Conversations(rate=rate, router=Router(section.routes, config.scenarios))


def _turn_head(row: Sequence[Any]) -> StoredTurnHead:
    trace_id, key, service, environment, session_id, *rest = row
    closed_ns, done, size, revision, judged_ns = rest
    identity = Identity(service, environment, session_id)
    return StoredTurnHead(trace_id, key, identity, closed_ns, bool(done), size, revision, judged_ns)


def _docket(config: Config, trials: Trials, clock_ns: Callable[[], int]) -> Docket:
    judge = config.answerers.judge
    return Docket(
        trials=trials,
        backlog=Backlog(
            max_waiting=judge.max_waiting if judge else BATCH, max_wait_ns=judge.max_wait.ns if judge else 10**9
        ),
        clock_ns=clock_ns,
        room=judge.concurrency if judge else BATCH,
    )


def _scores_out(config: Config, store: Store, exporter: Exporter, clock_ns: Callable[[], int]) -> ScoresOut | None:
    sink = config.sinks.langfuse
    if sink is None:
        return None
    return ScoresOut(
        sink, langfuse=connect(sink), store=store, rubrics=configured(config), counted=exporter, clock_ns=clock_ns
    )


def _destinations(config: Config) -> dict[str, Sequence[str]]:
    """Where verdicts go, and why each may not take what it is handed."""
    found: dict[str, Sequence[str]] = {}
    if config.sinks.jsonl:
        found["jsonl"] = [_NOT_WRITTEN]
    if config.sinks.langfuse:
        found[LANGFUSE] = LANGFUSE_REASONS
    found |= {name: [_NOT_DELIVERED] for name in names(config.alerts.notify)}
    return found


def _known(config: Config, watch: Watch) -> Known:
    rubrics = configured(config)
    routed = {name for route in config.routes for name in route.rubrics} or set(rubrics)
    routed |= config.session_rubrics
    return Known(
        rubrics=[rubrics[name] for name in sorted(routed)],
        ended_reasons=[reason.value for reason in Reason],
        rejected_reasons=[REJECTED],
        destinations=_destinations(config),
        forward_failures=REASONS if config.forward else (),
        forward_unjudged=UNJUDGED if config.forward else (),
        violations=dict.fromkeys(config.scenarios, KINDS),
        thresholds=watch.declared.policy.thresholds,
        own_thresholds=watch.declared.thresholds,
        conditions=watch.conditions,
        sampling_rate=config.sampling.rate,
        judge=known_judge(config),
        version=version("sidejudge"),
        python=platform.python_version(),
        fingerprint=config.fingerprint[:12],
    )

"""The composition root: it creates each part from the parts before it, starts them in order and ends them in order.

Start: the store, what it still holds, the listeners; then the monitor is ready. End: stop listening, send the last
responses, close the store. A trace that is not judged by then is in the store and is judged after the next start.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from prometheus_client import CollectorRegistry

from integrations.langfuse.connections import Connections
from integrations.otlp.server.active_requests import ActiveRequests
from integrations.prometheus.exporter import Exporter
from integrations.store.sqlite import Store, StoreError
from monitor.alerting.build import declaration, windows_of
from monitor.alerting.details import WatchedWindow
from monitor.alerting.examples import examples
from monitor.alerting.failures import REFRESH_S as FAILURES_S
from monitor.alerting.failures import FailureGroups
from monitor.alerting.notify.build import Notifications
from monitor.alerting.schedule import EvaluationSchedule
from monitor.alerting.verdicts import VerdictObserver
from monitor.alerting.watch import Watch
from monitor.api.access import AccessRules
from monitor.api.queries import MonitorQueries
from monitor.api.routes import create_app
from monitor.config import Config, Loaded
from monitor.config.judge_choice import judge_choice
from monitor.config.rubrics import configured, reached, rubrics_of
from monitor.deliver.commit import Commit
from monitor.deliver.langfuse.sink import LangfuseScores
from monitor.deliver.metrics_push import MetricsPush
from monitor.deliver.otel_events.sink import observing
from monitor.deliver.sink import SinkParts
from monitor.deliver.sinks import Sinks
from monitor.deliver.verdict_metrics import VerdictMetrics
from monitor.evaluate.baselines import Baselines
from monitor.evaluate.build import EvaluationBackends, build_backends, judge_snapshot
from monitor.evaluate.evaluator import Evaluator
from monitor.evaluate.interrupted import InterruptedTraces
from monitor.evaluate.judge_queue import JudgeQueue
from monitor.evaluate.pipeline import Pipeline
from monitor.evaluate.references.build import references
from monitor.evaluate.references.lookup import REFRESH_S
from monitor.evaluate.stages import EvaluationStages
from monitor.feedback.build import LangfuseFeedback
from monitor.ingest.adaptive_rate import AdaptiveRate
from monitor.ingest.anomalies import TrafficAnomalies
from monitor.ingest.assembler import Assembler
from monitor.ingest.closing import Closing
from monitor.ingest.intake import Intake
from monitor.ingest.langfuse.source import traces_in
from monitor.ingest.listeners import Listeners
from monitor.ingest.load_shedding import LoadShedding
from monitor.ingest.outcomes import TraceOutcomes
from monitor.ingest.sampler import Sampler
from monitor.ingest.server import AddressError, HttpServer, address, bind
from monitor.ingest.tls import CertificateError
from monitor.ingest.trace_limits import TraceLimits
from monitor.revise.build import revision_schedule
from monitor.revise.schedule import EVERY_S as ROUND_S
from monitor.route.build import router_of
from monitor.runtime.tuning.yield_to_requests import YieldToRequests
from monitor.sessions.windows import SessionWindows
from scoring.alerts.event import AlertEvent
from scoring.status.export_snapshot import ExportSnapshot
from scoring.verdict.rubric import Rubric

from .builders import conversations, judge_queue, limits, session_limits
from .drain import Drain, DrainResult
from .handover import Handover
from .metric_labels import known
from .periodic import Periodic
from .reload import ReadConfig, Reload
from .retention import Retention
from .trace_log import TraceLog

if TYPE_CHECKING:
    from monitor.evaluate.judge.drift_watch import DriftWatch

log = logging.getLogger("sidejudge")

REST_S = 1.0
"""How long judging rests at most when no trace falls due: clocks may jump, and garbage is looked for at rest."""
TICK_S = 0.25
"""The same while traces wait for a judge, which may be back at any time."""
BATCHES = 1
"""Batches that are judged before due traces are looked for again: under load they must not pile up unseen."""
NOTIFY_TICK_S = 30
"""How often reminders, digests and the report are looked for: short beside Alertmanager's refresh."""
DRAIN_QUIET_NS = 300_000_000
"""While the process ends: how long nothing has come of a trace before it is closed, for exporters flush in parts."""
_DRIFT = "drift"
"""The room of the store that holds the judge's sample."""
DRIFT_S = 60.0
"""How often it is looked whether the judge's sample is to be sent again."""
RETRY_S = 2.0
"""How long judging rests after it failed."""


class Monitor:
    """One monitor: a store, a pipeline and two listeners. ``start`` makes it ready, ``stop`` ends it without loss.

    ``at_rest`` is called several times a second, in the event loop, while nothing is judged and no request goes on.
    """

    _resting_until_ns = 0
    _idle = False
    _draining = False
    _drained: DrainResult | None = None
    _metrics_push: MetricsPush | None = None

    def __init__(
        self, config: Config, *, clock_ns: Callable[[], int] = time.time_ns, at_rest: Callable[[], None] = lambda: None
    ) -> None:
        self.config, self.clock_ns, self._at_rest, self.version = config, clock_ns, at_rest, version("sidejudge")
        self.store = Store(config.store.path, max_bytes=config.store.max_bytes)
        self.sessions = SessionWindows(session_limits(config.sessions)) if config.sessions is not None else None
        declared = declaration(config)
        self.windows = windows_of(declared)
        # The configuration of judging; a reload changes these where they are, for others hold them too.
        self.rubrics, self.router = configured(config), router_of(config)
        self._watched = {name: WatchedWindow.of(rubric) for name, rubric in self.rubrics.items()}
        self.watch = Watch(declared, self.windows, self._watched)
        labels = known(config, self.watch, self.version)
        self.exporter = Exporter(CollectorRegistry(), labels, label_cap=config.metrics.label_cap)
        self.langfuse = Connections(config.langfuse_projects)
        self._active = ActiveRequests()
        # What is received.
        self.sampler = Sampler(config.sampling, whatever=config.sessions is not None)
        self.adaptive = AdaptiveRate(config.sampling.traces_per_hour) if self.sampler.adaptive else None
        self.shedding = LoadShedding(admission=self.sampler.admission, max_waiting=config.assembly.max_waiting_traces)
        self.assembler = Assembler(limits(config), shedding=self.shedding)
        self.outcomes = TraceOutcomes(on_ended=self.exporter.traces_ended)
        self.intake = self._build_intake()
        self.traffic = TrafficAnomalies(skew=self.intake.skew)
        self.pull = traces_in(
            config, self.langfuse, store=self.store, intake=self.intake, outcomes=self.outcomes, sampler=self.sampler,
            assembler=self.assembler, waiting=self._waiting, clock_ns=clock_ns,
        )  # fmt: skip
        # What is evaluated, and by whom.
        self.sinks = self._build_sinks()
        self.backends = self._build_backends()
        self.references = references(
            config, self.langfuse, self.store, self.assembler, clock_ns,
            under_way=self._judges, late_references=self.store.late_references,
        )  # fmt: skip
        self.baselines = Baselines(self.store.kept.room("baselines"))
        stages = self._build_stages()
        waiting = judge_queue(config, stages, clock_ns)
        # What becomes of it: statuses and alerts, then the commit that notifies them.
        self.drift = _drift_watch(config, self.backends, self.store, clock_ns)
        self.failures = FailureGroups(
            self.store, clock_ns, self.backends.embedding.vectors if self.backends.embedding is not None else None
        )
        self.annotating = _annotating(config, self.sinks.langfuse, self.store, clock_ns)
        self.notifications = self._build_notifications()
        self.schedule = self._build_schedule(waiting)
        self.verdicts = VerdictObserver(
            store=self.store, windows=self.windows, watch=self.watch, schedule=self.schedule, rubrics=self.rubrics
        )
        self.commit = self._build_commit()
        self.pipeline = Pipeline(
            stages=stages,
            judge_queue=waiting,
            commit=self.commit.commit,
            clock_ns=clock_ns,
            listeners=[self.commit.committed],
            interrupted=InterruptedTraces(self.store),
        )
        self.revisions = revision_schedule(
            config, self.langfuse, store=self.store, pipeline=self.pipeline, references=self.references,
            commit=self.commit, under_way=self._judges, clock_ns=clock_ns,
        )  # fmt: skip
        # What listens, and what is shown.
        try:
            self.listeners = Listeners(config, self.intake, self._active)
        except CertificateError:
            self.store.close()
            raise
        self.receiver = self.listeners.receiver
        self.view = self._build_queries()
        self.exporter.watch(self.view.snapshot)
        self.retention = Retention(config, self.store, self.assembler, self.sessions, clock_ns)
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._repeated: list[Periodic] = []
        self._servers: list[HttpServer] = []
        self._judging: asyncio.Task[None] | None = None
        self._judging_failure: str | None = None
        self._warming: asyncio.Task[None] | None = None

    def _build_intake(self) -> Intake:
        assembly = self.config.assembly
        return Intake(
            sampler=self.sampler,
            store=self.store,
            assembler=self.assembler,
            outcomes=self.outcomes,
            clock_ns=self.clock_ns,
            limits=TraceLimits(assembly.max_trace_spans, assembly.max_trace_bytes),
            shedding=self.shedding,
            adaptive=self.adaptive,
            wake=self._wake,
        )

    def _build_sinks(self) -> Sinks:
        return Sinks(
            SinkParts(
                config=self.config, store=self.store, connections=self.langfuse, counters=self.exporter,
                rubrics=self.rubrics, clock_ns=self.clock_ns,
            )
        )  # fmt: skip

    def _build_backends(self) -> EvaluationBackends:
        return build_backends(
            self.config,
            memory=self.store.judged,
            vectors=self.store.vectors,
            observer=observing(self.exporter.judge, self.sinks.otel_events),
            embedding_observer=self.exporter.embedding,
            calls=self.store.judge_calls,
            clock_ns=self.clock_ns,
        )

    def _build_stages(self) -> EvaluationStages:
        return EvaluationStages(
            archive=self.store,
            sampler=self.sampler,
            router=self.router,
            evaluator=Evaluator(
                self.rubrics,
                self.backends.at_once,
                self.backends.others,
                max_cpu_s=self.config.evaluators.max_case_cpu.seconds,
            ),
            reference_keys=self.config.reference_keys,
            cluster=self.config.alerts.cluster,
            conversations=conversations(self.config),
            references=self.references,
            baselines=self.baselines,
            quotes_input=self.config.api.contents != "never",
            give_way=YieldToRequests(self._active),
        )

    def _build_notifications(self) -> Notifications:
        return Notifications(
            self.config,
            self.store,
            clock_ns=self.clock_ns,
            illustrate=partial(examples, self.store),
            counters=self.exporter,
            watch=self.watch,
            agreements=self.annotating.agreements if self.annotating else tuple,
            failures=self.failures.over,
        )

    def _build_schedule(self, waiting: JudgeQueue) -> EvaluationSchedule:
        return EvaluationSchedule(
            watch=self.watch,
            windows=self.windows,
            watched=self._watched,
            memory=self.store.kept,
            store=self.store,
            spool_bytes=lambda: self.store.size,
            judge=lambda: judge_snapshot(self.config, self.backends.judge, waiting, self.clock_ns() / 1e9),
            agreements=self.annotating.agreements if self.annotating else tuple,
            drifts=lambda: self.drift.latest if self.drift is not None else (),
            # The one that may fail comes first: an event that it did not take goes to both again.
            listeners=[self.notifications.take, self._count_event],
        )

    def _build_commit(self) -> Commit:
        return Commit(
            store=self.store,
            sessions=self.sessions,
            assembler=self.assembler,
            outcomes=self.outcomes,
            sinks=self.sinks,
            listeners=[
                self.verdicts.committed,
                VerdictMetrics(self.exporter).committed,
                self.baselines.committed,
                TraceLog().committed,
            ],
        )

    def _build_queries(self) -> MonitorQueries:
        return MonitorQueries(
            config=self.config,
            version=self.version,
            policy=self.watch.declared.policy,
            store=self.store,
            assembler=self.assembler,
            outcomes=self.outcomes,
            intake=self.intake,
            listeners=self.listeners,
            pipeline=self.pipeline,
            windows=self.windows,
            watch=self.watch,
            exporter=self.exporter,
            load_share=lambda: self.shedding.share,
            sampling_rate=self._sampling_rate,
            clock_ns=self.clock_ns,
            working=self._works,
            trouble=self._trouble,
            judge=self.schedule.judge,
            exports=self._exports,
            pull=self.pull.snapshot if self.pull else lambda: None,
            anomalies=self.traffic.current,
            sessions=self.sessions,
            started_ns=self.clock_ns(),
            rubrics=tuple(self.rubrics),
            trace_url=self.sinks.langfuse.trace_url if self.sinks.langfuse else lambda _: None,
            agreement=self.annotating.snapshot if self.annotating else lambda: None,
            late_references=self.revisions.snapshot if self.revisions else lambda: None,
            places=self.references.places if self.references else dict,
            owed=self.store.late_references.of,
            failures=self.failures,
        )

    @property
    def _one_audience(self) -> bool:
        """Whether both addresses are open to the same callers: then the OTLP address may answer the API as well."""
        otlp, api = self.config.sources.otlp, self.config.api
        return otlp.http.host == api.listen.host and otlp.tls == api.tls

    async def start(self) -> Mapping[str, str]:
        """Take up what was left, listen, and return the addresses: ``otlp`` and ``api``."""
        await self.sinks.start()
        self.verdicts.restore(self.clock_ns())
        self.commit.restore()
        self.baselines.restore()
        if self.drift is not None:
            self.drift.restore()
        else:
            sample = self.store.kept.room(_DRIFT)  # of a configuration that had the watch
            await sample.change(dict.fromkeys(sample.all()))
        resumed = self.intake.restore()
        section = self.config.api
        api = create_app(self.view, version=self.view.version, rules=AccessRules.of(section))
        otlp_socket = bind(str(self.config.sources.otlp.http), "sources.otlp.http")
        try:
            api_socket = bind(str(self.config.api.listen), "api.listen")
        except AddressError:
            otlp_socket.close()
            raise
        try:
            more = await self.listeners.start()
        except AddressError:
            otlp_socket.close()
            api_socket.close()
            raise
        otlp = self.listeners.http_server(api, otlp_socket, whole=self._one_audience)
        self._servers = [otlp, HttpServer(api, api_socket, section.tls)]
        for server in self._servers:
            await server.start()
        self._judging = asyncio.create_task(self._judge_what_is_due())
        self._warming = asyncio.create_task(self.backends.warm()) if self.backends.others else None
        if self.annotating:
            self.annotating.start()
        self._scheduler.add_job(self.retention.purge, "interval", minutes=1, coalesce=True, max_instances=1)
        self._scheduler.add_job(self._remember_baselines, "interval", minutes=1, coalesce=True, max_instances=1)
        self._scheduler.add_job(self.traffic.log_news, "interval", seconds=30, coalesce=True, max_instances=1)
        every_s = self.config.alerts.look.seconds
        self._scheduler.add_job(self._watch_alerts, "interval", seconds=every_s, coalesce=True, max_instances=1)
        self._scheduler.add_job(
            self.notifications.tick, "interval", seconds=NOTIFY_TICK_S, coalesce=True, max_instances=1
        )
        await self.notifications.start()
        await self._watch_alerts()
        await self.notifications.tick()
        self._scheduler.add_job(self.retention.relieve, "interval", seconds=2, coalesce=True, max_instances=1)
        self._repeat_all()
        self._scheduler.start()
        self.view.is_started = self.view.is_ready = True
        addresses = {
            "otlp": address(otlp_socket, self.listeners.scheme),
            "api": address(api_socket, "https" if section.tls else "http"),
            **more,
        }
        log.info("ready", extra={**addresses, "resumed_traces": resumed, "sampling_rate": self._sampling_rate()})
        return addresses

    def _repeat_all(self) -> None:
        """Periodic reading, most of it from other systems."""
        if (pushed := self.config.sinks.otel_metrics) is not None:
            self._metrics_push = MetricsPush(pushed, self.exporter.metrics, self.clock_ns)
            self._repeat(self._metrics_push.push, self._metrics_push.every_s)
        if self.drift is not None:
            self._repeat(self.drift.round, DRIFT_S)
        self._repeat(self.failures.refresh, FAILURES_S)
        if self.references is not None:
            self._repeat(self.references.refresh, REFRESH_S)
        if self.pull is not None:
            self._repeat(self.pull.poll, self.pull.poll_s)
        if self.revisions is not None:
            self._repeat(self.revisions.round, ROUND_S)

    def _repeat(self, work: Callable[[], Awaitable[object]], every_s: float) -> None:
        """At once, and then regularly; a round that takes longer has the next ones left out."""
        self._repeated.append(Periodic(work))
        self._scheduler.add_job(
            self._repeated[-1].run, "interval", seconds=every_s, coalesce=True, max_instances=2,
            misfire_grace_time=None, next_run_time=datetime.now(UTC),
        )  # fmt: skip

    def take_config(self, config: Config, changed: Mapping[str, Rubric]) -> None:
        """Put a reloaded configuration into force; ``changed`` are its rubrics that are new or have another version.

        What is under way ends under the rubrics with which it began. A window holds verdicts by one version alone.
        """
        for name in changed:
            if name in self.rubrics:
                self.windows.forget(name)
        self.rubrics |= changed
        self._watched |= {name: WatchedWindow.of(rubric) for name, rubric in changed.items()}
        watched = [rubric for name, rubric in reached(config).items() if name in changed]
        self.exporter.take_rubrics(watched, config.fingerprint[:12], partial(rubrics_of, config))
        if self.sinks.langfuse is not None:
            self.sinks.langfuse.take_rubrics(changed.values())
        if self.annotating is not None:
            self.annotating.take_rubrics({rubric.id: rubric for rubric in watched})
        self.router.become(router_of(config))
        if self.backends.others is not None:
            self.backends.others.choice = judge_choice(config)
        self.config = self.view.config = config
        self.view.rubrics = tuple(configured(config))

    def reloaded(self, *, successful: bool) -> None:
        """Record how the latest reload of the configuration went."""
        self.exporter.config_reloaded(successful=successful)

    def reload_by(self, loaded: Loaded, read: ReadConfig) -> Reload:
        """Let the configuration be read again: on a signal, over HTTP where that is allowed, and when it changes."""
        reload, section = Reload(self, loaded, read), self.config.reload
        if self.config.api.reload:
            self.view.reload = reload
        if section.watch:
            self._repeat(reload.look_at_files, section.every.seconds)
        self._repeat(reload.look_at_prompts, section.prompts.seconds)
        return reload

    async def drain(self, hurry: asyncio.Event) -> None:
        """Judge and deliver what is left, where the store ends with the process; ``hurry`` cuts it short."""
        if self.config.drain is not None and self._judging is not None:
            self._drained = await Drain(self, self.config.drain, hurry).run()

    def begin_drain(self) -> None:
        self.view.is_ready = False
        self._draining = True
        self.pipeline.judge_queue.progress.set()

    def requests(self) -> int:
        return self.intake.counts.requests

    def refuse(self) -> None:
        self.receiver.accepting = False

    def unfinished(self) -> int:
        queue = self.pipeline.judge_queue
        sessions = self.sessions.open_sessions if self.sessions is not None else 0
        waiting = self._waiting() + queue.under_way + queue.waiting + len(queue.results)
        return self.assembler.open_traces + sessions + waiting or int(not self._idle)

    def undelivered(self) -> int:
        return self.sinks.undelivered() + sum(each.waiting for each in self.notifications.exports())

    async def report(self) -> None:
        await self._watch_alerts()
        await self.notifications.tick()
        await self.notifications.end()

    async def stop_judging(self) -> None:
        if self._judging is None or self._judging.cancelled():
            return
        self._judging.cancel()
        await asyncio.gather(self._judging, return_exceptions=True)  # how it ended is logged; the store is closed
        try:
            await self.pipeline.close()
        except StoreError as error:
            log.warning("could not write verdicts; they are reached again", extra={"cause": str(error)})

    async def hand_over(self, until_s: float) -> int:
        section = self.config.drain
        if section is None:
            return 0
        hashed = self.config.sampling.randomness == "hashed"
        return await Handover(section, self.store, self.pipeline.end_unread, hashed=hashed).run(until_s)

    async def stop(self) -> None:
        """End in order. What is not judged by now stays in the store, open."""
        self.view.is_ready = False
        self.receiver.accepting = False
        await asyncio.gather(*(each.stop() for each in self._repeated))
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        await asyncio.gather(*(server.stop() for server in self._servers), self.listeners.stop())
        await self.listeners.close()
        await self.stop_judging()
        if self.revisions is not None:
            await self.revisions.close()
        if self._warming:
            await asyncio.gather(self._warming, return_exceptions=True)
        await self.backends.close()
        if self.annotating:
            await self.annotating.stop()
        await self.sinks.stop()
        await self.langfuse.close()
        await self.notifications.close()
        if self._metrics_push is not None:
            await self._metrics_push.push()
            self._metrics_push = None
        try:
            await self.schedule.remember()
            await self.baselines.remember()
        except StoreError as error:
            log.warning("could not remember alerts and baselines", extra={"cause": str(error)})
        left: dict[str, object] = {"open_traces": self.outcomes.open}
        lost: dict[str, int] = {}
        drained, self._drained = self._drained, None
        if drained is not None:
            lost = {"lost_traces": self.outcomes.open, "lost_deliveries": self.undelivered()}
            left |= {"handed_over_traces": drained.handed_over, **lost}
        self.store.close()
        log.log(logging.WARNING if any(lost.values()) else logging.INFO, "stopped", extra=left)

    def _sampling_rate(self) -> float:
        """The base rate at this moment."""
        return self.adaptive.rate(self.clock_ns()) if self.adaptive else self.config.sampling.fixed_rate

    def _works(self) -> bool:
        """Whether the parts that judge and write back still run; without them traces or scores pile up for ever."""
        judging = self._judging is None or not self._judging.done()
        return judging and self.sinks.working

    def _trouble(self) -> str | None:
        """Why traces cannot be kept or judged now; None while they can."""
        return self.store.trouble or self._judging_failure

    def _judges(self, trace_id: bytes) -> bool:
        """Whether a trace waits for the judge, or is before it, though the assembler has forgotten it."""
        return self.pipeline.judge_queue.knows(trace_id)

    def _waiting(self) -> int:
        """Closed traces that are not judged yet."""
        return len(self.pipeline.waiting) + len(self.pipeline.judge_queue.deferred)

    def due(self) -> list[Closing]:
        """Traces and sessions that are closed by now, each once."""
        now_ns = self.clock_ns()
        self.shedding.update(sum(closing.give_up is None for closing in self.pipeline.waiting), now_ns)
        traces = [*self.traffic.closed(self.assembler.due(now_ns))]
        sessions = self.sessions.due(now_ns) if self.sessions is not None else []
        if self._draining:
            traces += self.assembler.drain(now_ns, DRAIN_QUIET_NS)
            if self.sessions is not None and not self.outcomes.open:  # what is open may be a turn of a conversation
                sessions += self.sessions.drain(now_ns)
        return [*traces, *sessions]

    async def _judge_what_is_due(self) -> None:
        """Judge for as long as the monitor runs. A store or a disk that fails is tried again, for ever.

        Raises a fault of our own: then judging has ended, and the process is not live any more.
        """
        while True:
            self.pipeline.waiting.extend(self.due())
            more = False
            try:
                more = await self.pipeline.drain(BATCHES)
            except (StoreError, OSError) as error:
                if self._judging_failure is None:
                    log.warning("judging failed; it is tried again", extra={"cause": str(error)})
                self._judging_failure = str(error)
                await asyncio.sleep(RETRY_S)
            except Exception:
                log.exception("judging has ended; this process is not live any more")
                raise
            else:
                self._judging_failure = None
            if not self._active.left_s:
                self._at_rest()
            if not more:
                await self._rest()

    async def _rest(self) -> None:
        """Until a trace falls due, or a job of the judge queue ends."""
        now_ns = self.clock_ns()
        at_most_s = TICK_S if self.pipeline.judge_queue.waiting or self._draining else REST_S
        due_ns = [when for when in (self.assembler.due_ns, self._session_due_ns) if when is not None]
        rest_s = min(at_most_s, max(0, min(due_ns, default=now_ns + int(at_most_s * 1e9)) - now_ns) / 1e9)
        self._resting_until_ns = now_ns + int(rest_s * 1e9)
        self._idle = True
        await self.pipeline.pause(rest_s)
        self._idle = False
        self._resting_until_ns = 0

    @property
    def _session_due_ns(self) -> int | None:
        return self.sessions.due_ns if self.sessions is not None else None

    def _wake(self) -> None:
        """A request has changed when traces fall due: judging rests no longer than until then."""
        due_ns = self.assembler.due_ns
        if due_ns is not None and due_ns < self._resting_until_ns:
            self.pipeline.judge_queue.progress.set()

    async def _watch_alerts(self) -> None:
        """Statuses and alerts; without the store there is no look, and what stood stays."""
        try:
            await self.schedule.look(self.clock_ns())
        except StoreError as error:
            log.warning("could not store the alerts; the next look reports them", extra={"cause": str(error)})

    async def _remember_baselines(self) -> None:
        try:
            await self.baselines.remember()
        except StoreError as error:
            log.warning("could not store what is usual; it is tried again", extra={"cause": str(error)})

    def _exports(self) -> list[ExportSnapshot]:
        """Where scores, own telemetry and notices go to, and how far they have come."""
        return [*self.sinks.snapshots(), *self.notifications.exports()]

    async def _count_event(self, event: AlertEvent) -> None:
        self.exporter.alert_reported(event.condition, event.transition.value)


def _drift_watch(
    config: Config, backends: EvaluationBackends, store: Store, clock_ns: Callable[[], int]
) -> DriftWatch | None:
    section, judge = config.evaluators.drift, backends.judge
    if section is None or judge is None:
        return None
    from monitor.evaluate.judge.drift_watch import DriftWatch  # noqa: PLC0415  # only where it is configured

    watch = DriftWatch(
        store.kept.room(_DRIFT), judge, prompts=section.prompts, keep_ns=section.keep.ns, error=section.error,
        clock_ns=clock_ns,
    )  # fmt: skip
    judge.on_answered = watch.take
    return watch


def _annotating(
    config: Config, scores_out: LangfuseScores | None, store: Store, clock_ns: Callable[[], int]
) -> LangfuseFeedback | None:
    sink = config.sinks.langfuse
    if sink is None or scores_out is None or not (sink.annotations or sink.annotation_queue):
        return None
    return LangfuseFeedback(sink, scores_out=scores_out, store=store, rubrics=reached(config), clock_ns=clock_ns)

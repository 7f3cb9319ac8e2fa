"""The composition root: it creates each part of a monitor from the parts before it, and connects them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.otlp.server.traffic import ActiveRequests
from sidejudge.integrations.otlp.wire.handover import HandoverKeys
from sidejudge.integrations.otlp.wire.tracestate import threshold
from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.build import declaration
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.failures import FailureGroups, illustrated
from sidejudge.monitor.alerting.fleet.build import FleetBoard, FleetParts, fleet_parts
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.notify.build import Notifications
from sidejudge.monitor.alerting.notify.daily_report import alone
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.schedule import EvaluationSchedule
from sidejudge.monitor.alerting.verdicts import Awaited, LastReceived, VerdictObserver
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.judge_choice import judge_choice, judges_named
from sidejudge.monitor.config.rubrics import configured, reached
from sidejudge.monitor.deliver.commit import Commit
from sidejudge.monitor.deliver.kept_contents import KeepingTerms, KeptContents, kept_redaction, redacting
from sidejudge.monitor.deliver.metrics import VerdictMetrics
from sidejudge.monitor.deliver.otel_events.sink import observing
from sidejudge.monitor.deliver.sink import SinkParts
from sidejudge.monitor.deliver.sinks import Sinks
from sidejudge.monitor.evaluate.baselines import Baselines
from sidejudge.monitor.evaluate.build import EvaluationBackends, build_backends, judge_snapshot
from sidejudge.monitor.evaluate.cascade_learning import CascadeLearning
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.evaluate.judge_queue import JudgeQueue
from sidejudge.monitor.evaluate.pipeline import InterruptedTraces, Pipeline
from sidejudge.monitor.evaluate.references.lookup import references
from sidejudge.monitor.evaluate.result import EvaluationJob
from sidejudge.monitor.evaluate.stages import EvaluationStages
from sidejudge.monitor.feedback.build import LangfuseFeedback
from sidejudge.monitor.feedback.parts import FeedbackParts
from sidejudge.monitor.ingest.anomalies import TrafficAnomalies
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.former_draw import FormerDraw
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.langfuse.pull import traces_in
from sidejudge.monitor.ingest.listeners import CertificateError, Listeners
from sidejudge.monitor.ingest.load_shedding import AdaptiveRate, LoadShedding
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.monitor.ingest.trace_limits import TraceLimits
from sidejudge.monitor.revise.schedule import RevisionSchedule
from sidejudge.monitor.route.router import router_of
from sidejudge.monitor.route.silent_routes import SilentRoutes
from sidejudge.monitor.runtime.tuning import YieldToRequests
from sidejudge.monitor.sessions.windows import SessionWindows
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.status.metric_status import APPLICATION
from sidejudge.scoring.status.service_status import ServiceStatus

from .builders import (
    conversations,
    fleet_of,
    judge_queue,
    langfuse_share,
    limits,
    opened,
    session_limits,
    share_judging,
    share_upkeep,
    shared_answers,
    shared_references,
)
from .judging_loop import PACE_S, JudgingLoop
from .logging import TraceLog
from .metric_labels import known
from .own_facts import OwnFacts
from .peers import PeerExchange
from .retention import Retention

if TYPE_CHECKING:
    from sidejudge.monitor.evaluate.judge.drift_watch import DriftWatch

DRIFT = "drift"
"""The room of the store that holds the judge's sample."""


class MonitorParts(ABC):
    """The parts of one monitor, connected; nothing runs yet. ``at_rest`` is the judging loop's."""

    @abstractmethod
    def snapshot(self, services: Iterable[ServiceStatus] | None = None) -> Snapshot:
        """The gauges of this moment; ``services`` are their statuses where they are known already."""

    def __init__(
        self, config: Config, *, clock_ns: Callable[[], int] = time.time_ns, at_rest: Callable[[], None] = lambda: None
    ) -> None:
        self.config, self.clock_ns, self.version = config, clock_ns, version("sidejudge")
        self._active, self.langfuse = ActiveRequests(), Connections(config.langfuse_projects)
        self.store = opened(config.store)
        self.sessions = SessionWindows(session_limits(config.sessions)) if config.sessions is not None else None
        declared = declaration(config)
        self.windows, self.figures = LimitedWindows(declared), LimitedWindows(declared)
        # The configuration of judging; a reload changes these where they are, for others hold them too.
        self.rubrics, self.router, self.silent_routes = (
            configured(config),
            router_of(config),
            SilentRoutes(config.routes),
        )
        self._watched = {name: WatchedWindow.of(rubric) for name, rubric in self.rubrics.items()}
        self.watch = Watch(
            declared, self.windows, self._watched,
            metrics=MetricWatch(declared, windows=self.windows, figures=self.figures),
            judges=judges_named(config, self.rubrics.values()) if config.fleet is None else {},
        )  # fmt: skip
        labels = known(config, self.watch, self.version)
        self.exporter = Exporter(
            CollectorRegistry(), labels, label_cap=config.metrics.label_cap, detail=config.metrics.detail
        )
        self.fleet = fleet_of(config, self.store)
        self.board = None if self.fleet is None else FleetBoard(self.watch, self.fleet, clock_ns)
        # What is received.
        self.sampler = Sampler(config.sampling, whatever=config.sessions is not None)
        self.adaptive = AdaptiveRate(config.sampling.traces_per_hour) if self.sampler.adaptive else None
        self.shedding = LoadShedding(admission=self.sampler.admission, max_waiting=config.assembly.max_waiting_traces)
        draws = self.store.kept.room("draws")
        self.former_draw = FormerDraw(draws, self._drawn_at, clock_ns, adaptive=self.adaptive)
        self.assembler = Assembler(limits(config), shedding=self.shedding)
        self.outcomes = TraceOutcomes(on_ended=self._listening(clock_ns), on_kept=self.received.came)
        self.intake = self._build_intake()
        self.traffic = TrafficAnomalies(
            skew=self.intake.skew, trust=self.sampler.trust, others=[self.silent_routes.anomalies]
        )
        self.pull = traces_in(
            config, self.langfuse, store=self.store, intake=self.intake, outcomes=self.outcomes, sampler=self.sampler,
            assembler=self.assembler, waiting=self._waiting, clock_ns=clock_ns,
            share=langfuse_share(self.fleet, config),
        )  # fmt: skip
        # What is evaluated, and by whom.
        self.sinks = self._build_sinks()
        self.drift, self.contents = _drift_watch(config, self.store, clock_ns), self._build_contents()
        self.backends = self._build_backends()
        self.cascade_learning = CascadeLearning(self.rubrics, config.evaluators.cascade)
        self._learn_cascades()
        share_judging(self.fleet, self.backends, clock_ns)
        share_upkeep(self.fleet, config)
        self.references = references(
            config, self.langfuse, self.store, self.assembler, clock_ns,
            under_way=self._judges, late_references=self.store.late_references,
            shared=shared_references(self.fleet, config),
        )  # fmt: skip
        self.baselines = Baselines(self.store.kept.room("baselines"))
        stages = self._build_stages()
        waiting = judge_queue(config, stages, clock_ns, self.store)
        waiting.waits = self._waits_for_an_answer
        # What becomes of it: statuses and alerts, then the commit that notifies them.
        self.failures = FailureGroups(
            self.store, clock_ns, self.backends.embedding.vectors if self.backends.embedding is not None else None,
            partial(self.store.kept_since_ns, config.kept_for.ns),
        )  # fmt: skip
        self.annotating = self._build_annotating()
        self.notifications = self._build_notifications()
        self.schedule = self._build_schedule(waiting)
        self.fleet_status = self._build_fleet_status()
        self.verdicts = VerdictObserver(
            self.schedule, self.rubrics, figures=self.figures, cascade_learning=self.cascade_learning,
            published=self.fleet_status.publisher if self.fleet_status is not None else None,
        )  # fmt: skip
        self.commit = self._build_commit()
        self.pipeline = Pipeline(
            stages=stages,
            judge_queue=waiting,
            commit=self.commit.commit,
            clock_ns=clock_ns,
            listeners=[self.commit.committed],
            interrupted=InterruptedTraces(self.store),
        )
        self.peers = self._build_peers()
        self.judging = JudgingLoop(
            pipeline=self.pipeline, assembler=self.assembler, sessions=self.sessions, shedding=self.shedding,
            traffic=self.traffic, outcomes=self.outcomes, active=self._active, at_rest=at_rest, clock_ns=clock_ns,
            redraw=self.store.redraw,
            pace_s=min(PACE_S, config.assembly.grace.seconds / 4),
            joining=self.peers.joining if self.peers is not None else None,
        )  # fmt: skip
        self.revisions = None if self.references is None else RevisionSchedule(
            config, self.langfuse, store=self.store, pipeline=self.pipeline, references=self.references,
            commit=self.commit, under_way=self._judges, clock_ns=clock_ns,
        )  # fmt: skip
        # What listens, and what is shown.
        self.listeners = self._build_listeners(config)
        self.receiver = self.listeners.receiver
        self.retention = Retention(config, self.store, self.assembler, self.sessions, clock_ns, contents=self.contents)

    def _drawn_at(self) -> int:
        """The threshold that a trace which begins now must reach so that its spans are kept."""
        drawn = threshold(self.adaptive.rate(self.clock_ns())) if self.adaptive is not None else self.sampler.admission
        return max(drawn, self.shedding.opening_threshold)

    def _build_listeners(self, config: Config) -> Listeners:
        try:
            listeners = Listeners(config, self.intake, self._active, self.keys)
        except CertificateError:
            self.store.close()
            raise
        if listeners.buffer is not None:
            self.store.untaken.kept_since_ns = listeners.buffer.oldest_ns
        return listeners

    def _listening(self, clock_ns: Callable[[], int]) -> Callable[[str, EndReason, int], None]:
        """Who receives the ends of traces: the counters, and the watch, which asks why a service is silent."""
        received, exporter = LastReceived(clock_ns), self.exporter
        self.awaited = Awaited(lambda: self.pipeline.judge_queue.out, self.windows.window_ns)
        self.watch.awaited, self.watch.behind = self.awaited.weight, self.awaited.behind
        self.received = received
        self.watch.why_silent = received.cause

        def ended(service: str, reason: EndReason, count: int) -> None:
            exporter.traces_ended(service, reason, count)
            received.ended(service, reason, count)

        return ended

    def _build_intake(self) -> Intake:
        assembly, shared_key = self.config.assembly, self.config.sampling.handover_key
        self.keys = HandoverKeys(None if shared_key is None else shared_key.get_secret_value())
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
            keys=self.keys,
        )

    def _build_peers(self) -> PeerExchange | None:
        if self.config.peers is None:
            return None
        return PeerExchange(
            self.config.peers, self.config, store=self.store, assembler=self.assembler, keys=self.keys,
            end=self.pipeline.end_unread, clock_ns=self.clock_ns, wake=self.pipeline.judge_queue.progress.set,
        )  # fmt: skip

    def _build_sinks(self) -> Sinks:
        return Sinks(
            SinkParts(
                config=self.config, store=self.store, connections=self.langfuse, counters=self.exporter,
                rubrics=self.rubrics, clock_ns=self.clock_ns, fleet=self.fleet,
            )
        )  # fmt: skip

    def _build_backends(self) -> EvaluationBackends:
        return build_backends(
            self.config,
            memory=shared_answers(self.fleet, self.config, self.store.judged, self.clock_ns),
            vectors=self.store.vectors,
            observer=observing(self.exporter.judge, self.sinks.otel_events),
            embedding_observer=self.exporter.embedding,
            calls=self.store.judge_calls,
            on_answered=self.drift.take if self.drift is not None else None,
            clock_ns=self.clock_ns,
        )

    def _learn_cascades(self) -> None:
        """Let the choice of judges follow the learned cascades."""
        self.cascade_learning.section = self.config.evaluators.cascade
        if self.backends.others is not None:
            self.backends.others.choice = replace(judge_choice(self.config), learned=self.cascade_learning)

    def _build_stages(self) -> EvaluationStages:
        redact = redacting(kept_redaction(self.config))
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
            slices=self.config.alerts.slices,
            conversations=conversations(self.config),
            references=self.references,
            baselines=self.baselines,
            former_draw=self.former_draw.threshold,
            redact=redact,
            quotes=None if self.config.api.contents == "never" else redact,
            give_way=YieldToRequests(self._active),
        )

    def _build_annotating(self) -> LangfuseFeedback | None:
        sink, judge, scores_out = self.config.sinks.langfuse, self.config.evaluators.judge, self.sinks.langfuse
        if sink is None or scores_out is None:
            return None
        if not (sink.annotations or sink.annotation_queue or sink.failure_dataset):
            return None
        kinds, patterns = (judge.redact, judge.redact_patterns) if judge is not None else ((), ())
        parts = FeedbackParts(
            scores_out=scores_out, store=self.store, rubrics=reached(self.config), counters=self.exporter,
            redaction=Redaction(tuple(dict.fromkeys(("key", *kinds))), tuple(patterns)), clock_ns=self.clock_ns,
            fleet=self.fleet, judges=judges_named(self.config, reached(self.config).values()),
        )  # fmt: skip
        return LangfuseFeedback(sink, parts)

    def _build_notifications(self) -> Notifications:
        return Notifications(
            self.config,
            self.store,
            clock_ns=self.clock_ns,
            illustrate=partial(illustrated, self.store),
            holds=lambda trace_id: self.store.details(trace_id) is not None,
            counters=self.exporter,
            watch=self.board or self.watch,
            watched=self._watched,
            is_shared=self.board.is_shared if self.board is not None else lambda _: False,
            is_quiet=self.board.is_quiet if self.board is not None else lambda _: False,
            reports=self.board.reports if self.board is not None else alone,
            agreements=self.annotating.agreements if self.annotating else tuple,
            failures=self.failures.over,
            unpriced=lambda: self.backends.judge.unpriced if self.backends.judge is not None else (),
            share_of=lambda: self.fleet.name if self.fleet is not None and self.fleet.count > 1 else None,
            waiting=self.awaited.counts,
        )

    def _build_fleet_status(self) -> FleetParts | None:
        if self.fleet is None or self.board is None:
            return None
        return fleet_parts(
            self.fleet, self.board, self.watch, self.windows, figures=self.figures, rubrics=self.rubrics,
            store=self.store, notifications=self.notifications, count=self._count_event,
            labels=self.annotating.labels if self.annotating else dict, clock_ns=self.clock_ns,
            hash_key=self.config.sampling.hash_key, waiting=self.awaited.weights, behind=self.awaited.all_behind,
        )  # fmt: skip

    def _build_schedule(self, waiting: JudgeQueue) -> EvaluationSchedule:
        take = self.notifications.take
        return EvaluationSchedule(
            watch=self.watch,
            windows=self.windows,
            store=self.store,
            monitor=OwnFacts(
                snapshot=lambda: self.snapshot(()),
                refused=lambda: self.listeners.receiver.refused,
                anomalies=self.traffic.current,
                trouble=self.trouble,
            ),
            judge=lambda: judge_snapshot(self.config, self.backends.judge, waiting, self.clock_ns() / 1e9),
            agreements=self.annotating.agreements if self.annotating else tuple,
            labels=self.annotating.labels if self.annotating else dict,
            drifts=lambda: self.drift.latest if self.drift is not None else (),
            # The one that may fail comes first: an event that it did not take goes to both again.
            listeners=[self.board.own_events(take) if self.board is not None else take, self._count_event],
        )

    def _build_contents(self) -> KeptContents | None:
        terms = KeepingTerms.of(self.config)
        return None if terms is None else KeptContents(self.store, terms, give_way=YieldToRequests(self._active))

    def _build_commit(self) -> Commit:
        return Commit(
            store=self.store,
            sessions=self.sessions,
            assembler=self.assembler,
            outcomes=self.outcomes,
            sinks=self.sinks,
            keeps_contents=self.contents.terms.wants if self.contents is not None else lambda _: False,
            listeners=[
                self.verdicts.committed,
                self.awaited.committed,
                VerdictMetrics(self.exporter).committed,
                self.baselines.committed,
                TraceLog().committed,
                lambda result: self.silent_routes.observe({**result.details, "service": result.service}),
            ],
        )

    def _waits_for_an_answer(self, job: EvaluationJob) -> None:
        if job.service is not None:
            self.received.waits(job.service)
        weights: dict[Key, float] = {}
        if job.evaluation is not None:
            case, probability = job.evaluation.case, job.decision.probability if job.decision is not None else None
            names = [*(each.id for each in job.evaluation.rubrics), APPLICATION]
            weights |= {Key.of(case.service, case.environment, name): 1 / (probability or 1.0) for name in names}
        turns = self.pipeline.stages.conversations
        if self.sessions is not None and turns is not None and job.turn is not None:
            identity = job.turn.identity
            if not self.sessions.expects(identity):  # the conversation waits too
                of = [Key.of(identity.service, identity.environment, name) for name in self.config.session_rubrics]
                weights |= dict.fromkeys(of, 1 / (turns.draw(identity).probability or 1.0))
            self.sessions.expect(identity, job.trace_id)
        self.awaited.waits(job.trace_id, weights, self.clock_ns())

    def _wake(self) -> None:
        self.judging.wake()

    def sampling_rate(self) -> float:
        """The base rate at this moment."""
        return self.adaptive.rate(self.clock_ns()) if self.adaptive else self.config.sampling.fixed_rate

    def works(self) -> bool:
        """Whether the parts that judge and write back still run; without them traces or scores pile up for ever."""
        return self.judging.works and self.sinks.working

    def trouble(self) -> str | None:
        """Why traces cannot be kept or judged now, or no status be decided; None while they can."""
        return self.store.trouble or self.judging.failure or self.schedule.failure

    def _judges(self, trace_id: bytes) -> bool:
        """Whether a trace waits for the judge, or is before it, though the assembler has forgotten it."""
        return self.pipeline.judge_queue.knows(trace_id)

    def _waiting(self) -> int:
        """Closed traces that are not judged yet."""
        queue = self.pipeline.judge_queue
        return len(self.pipeline.waiting) + len(queue.deferred) + len(queue.without_vectors)

    async def _count_event(self, event: AlertEvent) -> None:
        self.exporter.alert_reported(event.condition, event.transition.value)


def _drift_watch(config: Config, store: Store, clock_ns: Callable[[], int]) -> DriftWatch | None:
    section = config.evaluators.drift
    if section is None:
        return None
    from sidejudge.monitor.evaluate.judge.drift_watch import DriftWatch  # noqa: PLC0415  # only where it is configured

    return DriftWatch(store.kept.room(DRIFT), section=section, clock_ns=clock_ns)

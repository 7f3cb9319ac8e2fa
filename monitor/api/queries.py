"""View: what the API may ask of a running monitor. It reads, and never waits for anything but the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import islice

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.pages.plain_pages import ConfigurationPage, Setting
from sidejudge.dashboards.pages.service_page import ServicePage
from sidejudge.dashboards.pages.trace_page import TracePage
from sidejudge.integrations.prometheus.collect import QueueSize, Series, Snapshot
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.exposition import OPENMETRICS, TEXT, wants_openmetrics
from sidejudge.integrations.store.bounded_read import ComparedFilter
from sidejudge.integrations.store.late_references import PendingRevisions
from sidejudge.integrations.store.sqlite import Store
from sidejudge.integrations.store.verdict_search import search_verdicts
from sidejudge.monitor.alerting.comparisons import ComparedSource, ComparedVerdicts, ComparisonQuery, compare
from sidejudge.monitor.alerting.failures import FailureGroups
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.trends import ArchivedTrends, Trends
from sidejudge.monitor.alerting.watch import StatusSource
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubric_sources import FACT as PROMPTS
from sidejudge.monitor.config.rubrics import configured, reached, reported_names
from sidejudge.monitor.config.summary import in_force
from sidejudge.monitor.config.units import parse_duration
from sidejudge.monitor.config.warnings import cautions
from sidejudge.monitor.evaluate.pipeline import Pipeline
from sidejudge.monitor.ingest.anomaly import Anomaly, AnomalyKind
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.listeners import Listeners
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.ingest.upstream_trust import WHY
from sidejudge.monitor.peers.joining import Joining
from sidejudge.monitor.sessions.windows import SessionWindows
from sidejudge.scoring.alerts.lifecycle import in_order
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot, corrected
from sidejudge.scoring.status.failure_groups import FailureGroup, without_contents
from sidejudge.scoring.status.service_status import FleetReport, ServiceStatus
from sidejudge.scoring.status.snapshots import (
    ExportSnapshot,
    FleetSnapshot,
    JudgeSnapshot,
    LateReferenceSnapshot,
    PromptSnapshot,
    PullSnapshot,
)
from sidejudge.scoring.status.status import WORST_FIRST, Policy
from sidejudge.scoring.status.trend import Trend
from sidejudge.scoring.verdict.documents import VerdictDocument
from sidejudge.scoring.verdict.rubric import Rubric

from .explain import JUDGE_CALLS_OFF
from .report import (
    ComparedReport,
    MonitorReport,
    Position,
    ReloadResult,
    TraceList,
    TracePosition,
    TraceQuery,
    VerdictPage,
    VerdictQuery,
    VerdictSearch,
)
from .reported_route import ReportedAgreement
from .service_page import ServiceChoice
from .shared_result import SharedMetrics
from .totals import (
    claim_totals,
    fleet_totals,
    forwarding_totals,
    intake_totals,
    late_reference_totals,
    pull_totals,
    receiving_totals,
)
from .trace_details import TraceDetails

_GROUPS = 10
"""Groups of failures on the page of a service."""
_AT_A_TIME = 16
"""Windows whose statuses are computed without a pause, 40 µs each: a probe waits less than a millisecond."""
_OF_A_SERVICE = 1_500
"""Verdicts that the page of a service is made from at most, the latest."""


@dataclass(slots=True, kw_only=True)
class MonitorQueries:
    """One monitor, looked at from outside.

    ``working`` returns whether its parts run, ``is_ready`` whether the start is over and the end has not begun, and
    ``trouble`` why traces cannot be kept or judged now, None while they can. ``trace_url`` knows the address of
    a trace's page where it is kept, None when there is none.
    """

    config: Config
    version: str
    policy: Policy
    store: Store
    assembler: Assembler
    outcomes: TraceOutcomes
    intake: Intake
    listeners: Listeners
    pipeline: Pipeline
    windows: Windows
    watch: StatusSource
    exporter: Exporter
    clock_ns: Callable[[], int]
    working: Callable[[], bool]
    trouble: Callable[[], str | None] = lambda: None
    judge: Callable[[], JudgeSnapshot | None] = lambda: None
    exports: Callable[[], Sequence[ExportSnapshot]] = list
    pull: Callable[[], PullSnapshot | None] = lambda: None
    late_references: Callable[[], LateReferenceSnapshot | None] = lambda: None
    fleet: Callable[[], FleetSnapshot | None] = lambda: None
    whole_fleet: Callable[[int], FleetReport | None] = lambda _: None
    places: Callable[[], Mapping[str, str]] = dict
    prompts: Callable[[], Sequence[PromptSnapshot]] = list
    owed: Callable[[bytes], PendingRevisions | None] = lambda _: None
    trace_url: Callable[[str], str | None] = lambda _: None
    anomalies: Callable[[], Sequence[Anomaly]] = lambda: ()
    sessions: SessionWindows | None = None
    joining: Joining | None = None
    load_share: Callable[[], float] = lambda: 1.0
    sampling_rate: Callable[[], float] = lambda: 1.0
    agreement: Callable[[], AgreementSnapshot | None] = lambda: None
    failures: FailureGroups | None = None
    is_started: bool = False
    is_ready: bool = False
    started_ns: int = 0
    rubrics: Sequence[str] = ()
    reload: Callable[[], Awaitable[ReloadResult]] | None = None
    _details: TraceDetails = field(init=False)
    _trends: Trends = field(init=False)
    _compared: ComparedSource = field(init=False)
    _metrics: SharedMetrics = field(init=False)

    def __post_init__(self) -> None:
        self._metrics = SharedMetrics(self._written)
        self._details = TraceDetails(
            config=self.config, store=self.store, assembler=self.assembler, outcomes=self.outcomes,
            pipeline=self.pipeline, trace_url=self.trace_url, clock_ns=self.clock_ns, owed=self.owed,
        )  # fmt: skip
        history = self.config.sinks.parquet
        archive = None if history is None else ArchivedTrends(history.path, self.config.kept_for.ns)
        self._trends = Trends(self.store.path, self.windows.window_ns, self.watch.declared, archive=archive)
        self._compared = ComparedSource(
            self.store.path, None if history is None else history.path, self.config.kept_for.ns
        )

    def live(self) -> bool:
        return self.working()

    def ready(self) -> bool:
        # What goes on does so whatever becomes of the store: an application must not lose its sidecar to our disk.
        return self.is_ready and (self.config.forward is not None or self.trouble() is None)

    def started(self) -> bool:
        return self.is_started

    def status(self) -> MonitorReport:
        now_ns, balance, agreement = self.clock_ns(), self.outcomes.balance(), self.agreement()
        return MonitorReport(
            services=corrected(self.watch.service_statuses(now_ns), agreement),
            agreement=agreement,
            policy=self.policy,
            window_ns=self.windows.window_ns,
            seen=balance.seen,
            open=balance.open,
            ended={reason.value: balance.ended.get(reason, 0) for reason in EndReason},
            revisions=balance.revisions,
            sampling_rate=self.sampling_rate(),
            otlp_port=self.config.sources.otlp.http.port,
            sampling_rules=[rule.name for rule in self.config.sampling.rules],
            begun_by_callers=self.intake.trust.begun_by_callers,
            disbelieved={why: self.intake.trust.disbelieved[why] for why in WHY},
            version=self.version,
            fingerprint=self.config.fingerprint[:12],
            started_ns=self.started_ns,
            now_ns=now_ns,
            shortened=self.windows.shortened,
            judge=self.judge(),
            exports=tuple(self.exports()),
            pull=self.pull(),
            late_references=self.late_references(),
            fleet=self.fleet(),
            whole_fleet=self.whole_fleet(now_ns),
            prompts=self.prompts(),
            anomalies=self.anomalies(),
            receiving=self.listeners.receiving(self.intake.counts),
            forwarding=self.listeners.forwarding(),
            alerts=in_order(self.watch.posted()),
            metrics=sorted(self.watch.metric_statuses(), key=lambda each: WORST_FIRST.index(each.appraisal.status)),
            conditions=self.watch.conditions,
        )

    def fleet_report(self) -> tuple[FleetReport, float] | None:
        found = self.whole_fleet(self.clock_ns())
        return None if found is None else (found, self.windows.window_ns / 1e9)

    def reported_agreements(self) -> list[ReportedAgreement]:
        theirs = {name for name, rubric in reached(self.config).items() if reported_names([rubric])}
        now_ns, keys = self.clock_ns(), self.windows.keys()
        return [
            ReportedAgreement(
                service=one.service, environment=one.environment, reported=one.rubric, rubric=other.rubric,
                table=self.windows.both(one, other, now_ns),
            )
            for one in keys if one.rubric in theirs
            for other in keys if other[:2] == one[:2] and other.rubric not in theirs
        ]  # fmt: skip

    async def verdicts(self, query: VerdictQuery, *, contents: bool = False) -> VerdictPage:
        after = astuple(query.after) if query.after else None
        found = await asyncio.to_thread(
            self.store.verdicts,
            rubric=query.rubric,
            service=query.service,
            environment=query.environment,
            passed=query.passed,
            state=query.state,
            trace_id=query.trace_id,
            since_ns=query.since_ns,
            after=after,
            limit=query.limit + 1,
        )
        return await asyncio.to_thread(self._page_of, found, query.limit, contents=contents)

    async def search(self, query: VerdictSearch, *, contents: bool, counted: bool = True) -> VerdictPage:
        wanted = replace(query, in_reasons=contents)
        after = astuple(query.after) if query.after else None
        found = await asyncio.to_thread(
            search_verdicts, self.store.path, wanted, after=after, limit=query.limit + 1, counted=counted
        )
        page = await asyncio.to_thread(self._page_of, found.verdicts, query.limit, contents=contents)
        return replace(page, counts=found.counts, capped=found.capped, failing_of=found.failing_of)

    async def compare(self, wanted: ComparedFilter, query: ComparisonQuery) -> ComparedReport:
        def read() -> ComparedReport:
            found = self._compared.read(wanted, self.clock_ns())
            rubrics = configured(self.config)
            directions = {
                criterion.metric.bands.higher_is_better
                for name, rubric in rubrics.items() if wanted.rubric in (None, name)
                for criterion in rubric.criteria
                if criterion.metric.id == wanted.metric and criterion.metric.bands is not None
            }  # fmt: skip
            return ComparedReport(
                comparisons=compare(found.verdicts, query), capped=found.capped,
                higher_is_better=directions != {False} and not wanted.figure,
            )  # fmt: skip

        return await asyncio.to_thread(read)

    async def service(self, choice: ServiceChoice, *, contents: bool) -> ServicePage | None:
        if choice.rubric not in self.rubrics:
            return None
        now_ns = self.clock_ns()
        key = Key(choice.service, choice.environment, choice.rubric)
        last = choice.last or await self._trends.fitting(key, now_ns)
        span_ns = parse_duration(last).ns
        query = VerdictSearch(
            service=key.service, environment=key.environment, rubric=key.rubric, since_ns=now_ns - span_ns,
            limit=_OF_A_SERVICE,
        )  # fmt: skip
        found = await self.search(query, contents=contents, counted=False)
        failures: Sequence[FailureGroup] = ()
        if self.failures is not None:
            groups = await self.failures.over(
                span_ns, rubric=key.rubric, service=key.service, environment=key.environment
            )
            failures = [each if contents else without_contents(each) for each in groups[:_GROUPS]]
        return ServicePage(
            service=key.service, environment=key.environment, rubric=key.rubric, last=last, now_ns=now_ns,
            metric=choice.metric, bounds=_bounds(choice),
            thresholds=self.watch.declared.policy_of(key.rubric).thresholds,
            status=next((each for each in self.watch.service_statuses(now_ns) if _names(each, key)), None),
            trend=await self._trends.over(key, now_ns, span_ns), verdicts=found.verdicts, capped=found.next is not None,
            failures=failures, history=self.config.sinks.parquet is not None,
        )  # fmt: skip

    async def compared_verdicts(self, wanted: ComparedFilter) -> ComparedVerdicts:
        return await asyncio.to_thread(self._compared.read, wanted, self.clock_ns())

    def _page_of(self, found: Sequence[VerdictDocument], limit: int, *, contents: bool) -> VerdictPage:
        page = [self._details.shown(verdict, contents=contents) for verdict in found[:limit]]
        if len(found) <= limit:
            return VerdictPage(verdicts=page)
        last = page[-1]
        of = last["trace_id"] or last["case_id"]  # a session has no trace id: its key is the id of the case
        position = Position(closed_ns=last["closed_ns"], trace_id=of, rubric=last["rubric"])
        return VerdictPage(verdicts=page, next=position)

    async def traces(self, query: TraceQuery, *, contents: bool = False) -> TraceList:
        after = astuple(query.after) if query.after else None
        found = await asyncio.to_thread(
            self.store.traces, reason=query.reason, service=query.service, since_ns=query.since_ns, after=after,
            limit=query.limit + 1,
        )  # fmt: skip
        page = await asyncio.to_thread(
            lambda: [self._details.listed(trace, contents=contents) for trace in found[: query.limit]]
        )
        if len(found) <= query.limit:
            return TraceList(traces=page)
        return TraceList(
            traces=page, next=TracePosition(closed_ns=page[-1]["closed_ns"], trace_id=page[-1]["trace_id"])
        )

    async def trace(self, trace_id: str, *, contents: bool) -> Mapping[str, object] | None:
        return await self._details.found(trace_id, contents=contents)

    async def spans(self, trace_id: str) -> bytes | None:
        return await self._details.spans(trace_id)

    async def judge_calls(self, trace_id: str) -> Mapping[str, object]:
        judge = self.config.evaluators.judge
        if judge is None or judge.keep_calls_bytes is None:
            return {"off": JUDGE_CALLS_OFF, "calls": []}
        calls = await asyncio.to_thread(self.store.judge_calls.of, bytes.fromhex(trace_id))
        return {"off": None, "calls": calls}

    async def trace_page(self, trace_id: str, *, contents: bool) -> TracePage | None:
        return await self._details.page(trace_id, contents=contents)

    def rubric(self, name: str) -> Rubric | None:
        return configured(self.config).get(name)

    async def failure_groups(self, *, contents: bool) -> Sequence[FailureGroup]:
        groups = () if self.failures is None else await self.failures.recent()
        return [each if contents else without_contents(each) for each in groups]

    async def trends(self) -> Mapping[Key, Trend]:
        return await self._trends.at(self.clock_ns())

    def configuration(self) -> ConfigurationPage:
        return ConfigurationPage(
            settings=[Setting(key=key, value=value, given=given) for key, value, given in in_force(self.config)],
            cautions=list(cautions(self.config)),
            version=self.version,
            fingerprint=self.config.fingerprint[:12],
        )

    async def metrics(self, accept: str, *, small: bool = False) -> tuple[bytes, Mapping[str, str]]:
        return await self._metrics.get(openmetrics=wants_openmetrics(accept), small=small)

    async def _written(self, openmetrics: bool) -> tuple[bytes, str]:  # noqa: FBT001  # as ``SharedMetrics`` asks
        self.exporter.follow(self._totals())
        services = [each async for each in self._statuses_in_turns()]
        # in a thread: thousands of series take longer to write than a probe may wait
        return await asyncio.to_thread(
            self.exporter.exposition(OPENMETRICS if openmetrics else TEXT, self.snapshot(services))
        )

    async def _statuses_in_turns(self) -> AsyncIterator[ServiceStatus]:
        """The status of every window; after every few of them whatever waits for the event loop has its turn."""
        for number, each in enumerate(self.watch.each_service_status(self.clock_ns())):
            if number % _AT_A_TIME == _AT_A_TIME - 1:
                await asyncio.sleep(0)
            yield each

    def snapshot(self, services: Iterable[ServiceStatus] | None = None) -> Snapshot:
        """The gauges of this moment; ``services`` are their statuses where they are known already."""
        now_ns = self.clock_ns()
        oldest_ns = self.assembler.oldest_ns
        judge, exports, agreement, pull = self.judge(), self.exports(), self.agreement(), self.pull()
        late, fleet, prompts = self.late_references(), self.fleet(), self.prompts()
        waits_for_judge = {} if judge is None else {"judge": QueueSize(items=judge.waiting, oldest_s=judge.oldest_s)}
        forwarding = self.listeners.forwarding()
        kept = forwarding.buffer if forwarding is not None else None
        return Snapshot(
            services=corrected(self.watch.service_statuses(now_ns) if services is None else services, agreement),
            agreement=agreement,
            failures=self.failures.latest if self.failures is not None else (),
            traces_open=self.outcomes.open,
            sampling_rate=self.sampling_rate(),
            load_share=self.load_share(),
            behind_s=0.0 if (since_s := self._judging().oldest_s) is None else max(0.0, now_ns / 1e9 - since_s),
            queues={
                "assembly": QueueSize(
                    items=self.assembler.open_traces, oldest_s=None if oldest_ns is None else oldest_ns / 1e9
                ),
                "judging": self._judging(),
                **({} if self.joining is None else {"joining": QueueSize(items=self.joining.waiting)}),
                **waits_for_judge,
                **({} if pull is None else {"pull": QueueSize(items=pull.pending)}),
                **({} if late is None else {"belated": QueueSize(items=late.waiting, oldest_s=late.oldest_s)}),
                **self._sessions(),
                **({} if kept is None else {"forward": QueueSize(items=kept.waiting, oldest_s=kept.oldest_s)}),
                **{export.destination: QueueSize(items=export.waiting, oldest_s=export.oldest_s) for export in exports},
            },
            exports=exports,
            connections={
                **{export.destination: export.state for export in exports},
                **({} if pull is None else {"sources.langfuse": pull.state}),
                **({} if fleet is None else {"fleet.database": "stopped" if fleet.wrong_clock else fleet.state}),
                **self.places(),
                **({} if not prompts else {PROMPTS: "retrying" if any(each.reason for each in prompts) else "ok"}),
            },
            fleet=fleet,
            pull=pull,
            late_references=late,
            spool_bytes=self.store.size,
            forward_buffer_bytes=None if kept is None else kept.bytes,
            contents_bytes=self.store.contents.bytes,
            judge=judge,
            anomalies=self._anomalies(),
            alerts=list(self.watch.posted()),
            metrics=list(self.watch.metric_statuses()),
        )

    def _judging(self) -> QueueSize:
        waiting = self.pipeline.waiting
        oldest_ns = min((closing.closed_ns for closing in islice(waiting, 1) if closing.closed_ns), default=None)
        return QueueSize(items=len(waiting), oldest_s=None if oldest_ns is None else oldest_ns / 1e9)

    def _sessions(self) -> dict[str, QueueSize]:
        if self.sessions is None:
            return {}
        oldest_ns = self.sessions.oldest_ns
        waiting = QueueSize(items=self.sessions.open_sessions, oldest_s=None if oldest_ns is None else oldest_ns / 1e9)
        return {"sessions": waiting}

    def _anomalies(self) -> dict[str, bool]:
        found = {anomaly.kind for anomaly in self.anomalies()}
        return {kind.value: kind in found for kind in AnomalyKind}

    def _totals(self) -> Iterator[Series]:
        """What was counted since the start."""
        counts, forwarding = self.intake.counts, self.listeners.forwarding()
        yield f.TRACES_SEEN, (), self.outcomes.balance().seen
        yield from intake_totals(counts)
        yield from claim_totals(self.intake.trust)
        yield from receiving_totals(self.listeners.receiving(counts))
        if forwarding is not None:
            yield from forwarding_totals(forwarding)
        if (pull := self.pull()) is not None:
            yield from pull_totals(pull)
        if (late_references := self.late_references()) is not None:
            yield from late_reference_totals(late_references)
        if (fleet := self.fleet()) is not None:
            yield from fleet_totals(fleet)


def _names(status: ServiceStatus, key: Key) -> bool:
    return (status.service, status.environment, status.rubric) == (key.service, key.environment, key.rubric)


def _bounds(choice: ServiceChoice) -> tuple[float, float | None]:
    """The range of the metric; that of a rubric's own is not known, and open above."""
    rubric = RUBRICS.get(choice.rubric)
    found = next((each.metric for each in rubric.criteria if each.metric.id == choice.metric), None) if rubric else None
    if found is not None:
        return found.bounds
    return (0.0, None) if choice.metric else (0.0, 1.0)

"""Queries: what the API and the pages ask of a running monitor. Nothing but the store may make them wait."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import sidejudge.integrations.prometheus.families as f
from sidejudge.integrations.prometheus.collect import QueueSize, Series, Snapshot
from sidejudge.integrations.prometheus.exposition import OPENMETRICS, TEXT, wants_openmetrics
from sidejudge.integrations.store.bounded_read import ComparedFilter
from sidejudge.integrations.store.verdict_search import search_verdicts
from sidejudge.monitor.alerting.comparisons import ComparedSource, ComparedVerdicts, ComparisonQuery, compare
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.trends import ArchivedTrends, Trends
from sidejudge.monitor.alerting.watch import StatusSource
from sidejudge.monitor.api.explain import JUDGE_CALLS_OFF
from sidejudge.monitor.api.shared_result import SharedMetrics
from sidejudge.monitor.api.totals import (
    claim_totals,
    fleet_totals,
    forwarding_totals,
    intake_totals,
    late_reference_totals,
    pull_totals,
    receiving_totals,
)
from sidejudge.monitor.api.trace_details import TraceDetails
from sidejudge.monitor.api.view import (
    ComparedReport,
    Position,
    ReloadResult,
    ReportedAgreement,
    ServiceChoice,
    TraceList,
    TracePosition,
    TraceQuery,
    VerdictPage,
    VerdictQuery,
    VerdictSearch,
)
from sidejudge.monitor.config.rubric_sources import FACT as PROMPTS
from sidejudge.monitor.config.rubrics import configured, reached, reported_names
from sidejudge.monitor.config.summary import in_force
from sidejudge.monitor.config.units import parse_span
from sidejudge.monitor.config.warnings import cautions
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.upstream_trust import WHY
from sidejudge.scoring.alerts.lifecycle import in_order
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot, corrected
from sidejudge.scoring.status.failure_groups import FailureGroup, without_contents
from sidejudge.scoring.status.service_status import FleetReport, ServiceStatus
from sidejudge.scoring.status.snapshots import (
    AnomalyKind,
    EmbeddingsSnapshot,
    ExportSnapshot,
    FleetSnapshot,
    LateReferenceSnapshot,
    PromptSnapshot,
    PullSnapshot,
)
from sidejudge.scoring.status.status import WORST_FIRST
from sidejudge.scoring.status.trend import Trend
from sidejudge.scoring.verdict.documents import VerdictDocument
from sidejudge.scoring.verdict.rubric import Rubric

from .parts import MonitorParts

if TYPE_CHECKING:
    from sidejudge.dashboards.pages.plain_pages import ConfigurationPage
    from sidejudge.dashboards.pages.service_page import ServicePage
    from sidejudge.dashboards.pages.status_page import MonitorReport

_GROUPS = 10
"""Groups of failures on the page of a service."""
_AT_A_TIME = 16
"""Windows whose statuses are computed without a pause, 40 µs each: a probe waits less than a millisecond."""
_OF_A_SERVICE = 1_500
"""Verdicts that the page of a service is made from at most, the latest."""


class MonitorQueries:
    """One monitor, looked at from outside: what the API and the pages ask of it (``MonitorView``).

    ``is_started``: the start is over; ``is_ready``: and the end has not begun.
    """

    def __init__(self, parts: MonitorParts) -> None:
        self._parts, self.clock_ns = parts, parts.clock_ns
        self.is_started = self.is_ready = False
        self.rubrics: Sequence[str] = tuple(parts.rubrics)
        self.prompts: Callable[[], Sequence[PromptSnapshot]] = list
        self.reload: Callable[[], Awaitable[ReloadResult]] | None = None
        self._watch: StatusSource = parts.board or parts.watch
        self._policy, self._started_ns = parts.watch.declared.policy, parts.clock_ns()
        self._metrics = SharedMetrics(self._written)
        self._details = TraceDetails(
            config=parts.config, store=parts.store, assembler=parts.assembler, outcomes=parts.outcomes,
            pipeline=parts.pipeline, trace_url=self._trace_url, clock_ns=parts.clock_ns,
        )  # fmt: skip
        self.trace, self.spans, self.trace_page = self._details.found, self._details.spans, self._details.page
        self.live = parts.works
        history, path = parts.config.sinks.parquet, parts.store.path
        kept_since = partial(parts.store.kept_since_ns, parts.config.kept_for.ns)
        archive = None if history is None else ArchivedTrends(history.path, kept_since)
        self._trends = Trends(
            path, parts.windows.window_ns, self._watch.declared, archive=archive, design=parts.windows.design
        )
        self._compared = ComparedSource(path, None if history is None else history.path, kept_since)

    def ready(self) -> bool:
        # What goes on does so whatever becomes of the store: an application must not lose its sidecar to our disk.
        # A read that failed for a reader of the API is his error, and an alert: it takes no application out of traffic.
        refused = self._parts.store.refusal or self._parts.judging.failure
        return self.is_ready and (self._parts.config.forward is not None or refused is None)

    def started(self) -> bool:
        return self.is_started

    def status(self) -> MonitorReport:
        from sidejudge.dashboards.pages.status_page import MonitorReport  # noqa: PLC0415  # only where one is read

        now_ns, balance, agreement = self.clock_ns(), self._parts.outcomes.balance(), self._agreement()
        return MonitorReport(
            services=corrected(self._watch.service_statuses(now_ns), agreement),
            agreement=agreement,
            policy=self._policy,
            window_ns=self._parts.windows.window_ns,
            seen=balance.seen,
            open=balance.open,
            ended={reason.value: balance.ended.get(reason, 0) for reason in EndReason},
            revisions=balance.revisions,
            sampling_rate=self._parts.sampling_rate(),
            otlp_port=self._parts.config.sources.otlp.http.port,
            sampling_rules=[rule.name for rule in self._parts.config.sampling.rules],
            begun_by_callers=self._parts.intake.trust.begun_by_callers,
            disbelieved={why: self._parts.intake.trust.disbelieved[why] for why in WHY},
            version=self._parts.version,
            fingerprint=self._parts.config.fingerprint[:12],
            started_ns=self._started_ns,
            now_ns=now_ns,
            shortened=self._parts.windows.shortened,
            judge=self._parts.schedule.judge(),
            embeddings=self._embeddings(),
            exports=tuple(self._exports()),
            pull=self._pull(),
            late_references=self._late_references(),
            fleet=self._fleet(),
            whole_fleet=self._whole_fleet(now_ns),
            prompts=self.prompts(),
            anomalies=self._parts.traffic.current(),
            receiving=self._parts.listeners.receiving(self._parts.intake.counts),
            forwarding=self._parts.listeners.forwarding(),
            alerts=in_order(self._watch.posted()),
            metrics=sorted(self._watch.metric_statuses(), key=lambda each: WORST_FIRST.index(each.appraisal.status)),
            conditions=self._watch.conditions,
        )

    def fleet_report(self) -> tuple[FleetReport, float] | None:
        found = self._whole_fleet(self.clock_ns())
        return None if found is None else (found, self._parts.windows.window_ns / 1e9)

    def reported_agreements(self) -> list[ReportedAgreement]:
        theirs = {name for name, rubric in reached(self._parts.config).items() if reported_names([rubric])}
        now_ns, keys = self.clock_ns(), self._parts.windows.keys()
        at: defaultdict[tuple[str, str], list[Key]] = defaultdict(list)
        for key in keys:
            at[key[:2]].append(key)
        return [
            ReportedAgreement(
                service=one.service, environment=one.environment, reported=one.rubric, rubric=other.rubric,
                table=self._parts.windows.both(one, other, now_ns),
            )
            for one in keys if one.rubric in theirs
            for other in at[one[:2]] if other.rubric not in theirs
        ]  # fmt: skip

    async def verdicts(self, query: VerdictQuery, *, contents: bool = False) -> VerdictPage:
        def read() -> VerdictPage:
            found = self._parts.store.verdicts(**_one_more(query), bounded=True)
            return _page_of([self._details.shown(verdict, contents=contents) for verdict in found], query.limit)

        return await asyncio.to_thread(read)

    async def search(
        self, query: VerdictSearch, *, contents: bool, counted: bool = True, fields: Collection[str] | None = None
    ) -> VerdictPage:
        wanted = replace(query, in_reasons=contents)
        after = astuple(query.after) if query.after else None

        def shown(verdict: VerdictDocument) -> VerdictDocument:
            every: Mapping[str, object] = self._details.shown(verdict, contents=contents)
            return cast("VerdictDocument", every if fields is None else {key: every.get(key) for key in fields})

        found = await asyncio.to_thread(
            search_verdicts, self._parts.store.path, wanted,
            after=after, limit=query.limit + 1, counted=counted, shown=shown,
        )  # fmt: skip
        page = _page_of(found.verdicts, query.limit)
        return replace(page, counts=found.counts, capped=found.capped, failing_of=found.failing_of)

    async def compare(self, wanted: ComparedFilter, query: ComparisonQuery) -> ComparedReport:
        def read() -> ComparedReport:
            found = self._compared.read(wanted, self.clock_ns())
            metrics = [
                criterion.metric
                for name, rubric in configured(self._parts.config).items() if wanted.rubric in (None, name)
                for criterion in rubric.criteria
            ]  # fmt: skip
            directions = {
                metric.bands.higher_is_better
                for metric in metrics if metric.id == wanted.metric and metric.bands is not None
            }  # fmt: skip
            return ComparedReport(
                comparisons=compare(found.verdicts, query), capped=found.capped,
                higher_is_better=directions != {False} and not wanted.figure,
                metrics=() if wanted.figure else sorted({metric.id for metric in metrics}),
            )  # fmt: skip

        return await asyncio.to_thread(read)

    async def service(self, choice: ServiceChoice, *, contents: bool) -> ServicePage | None:
        if choice.rubric not in self.rubrics:
            return None
        from sidejudge.dashboards.pages.service_page import ServicePage  # noqa: PLC0415  # likewise

        now_ns = self.clock_ns()
        key = Key(choice.service, choice.environment, choice.rubric)
        last = choice.last or await self._trends.fitting(key, now_ns)
        span_ns = parse_span(last)
        query = VerdictSearch(
            service=key.service, environment=key.environment, rubric=key.rubric, since_ns=now_ns - span_ns,
            limit=_OF_A_SERVICE,
        )  # fmt: skip
        found = await self.search(query, contents=contents, counted=False)
        for each in found.verdicts[:1]:  # the address may have a name as it is shown
            key = Key.of(each["service"], each["environment"], each["rubric"])
        groups = await self._parts.failures.over(
            span_ns, rubric=key.rubric, service=key.service, environment=key.environment
        )
        failures = [each if contents else without_contents(each) for each in groups[:_GROUPS]]
        return ServicePage(
            service=key.service, environment=key.environment, rubric=key.rubric, last=last, now_ns=now_ns,
            metric=choice.metric, bounds=_bounds(choice),
            thresholds=self._watch.declared.policy_of(key.rubric).thresholds,
            status=next((
                each for each in self._watch.service_statuses(now_ns)
                if Key(each.service, each.environment, each.rubric) == key
            ), None),
            trend=await self._trends.over(key, now_ns, span_ns), verdicts=found.verdicts, capped=found.next is not None,
            failures=failures, history=self._parts.config.sinks.parquet is not None,
        )  # fmt: skip

    async def compared_verdicts(self, wanted: ComparedFilter) -> ComparedVerdicts:
        return await asyncio.to_thread(self._compared.read, wanted, self.clock_ns())

    async def traces(self, query: TraceQuery, *, contents: bool = False) -> TraceList:
        found = await asyncio.to_thread(partial(self._parts.store.traces, **_one_more(query)))
        page = await asyncio.to_thread(
            lambda: [self._details.listed(trace, contents=contents) for trace in found[: query.limit]]
        )
        if len(found) <= query.limit:
            return TraceList(traces=page)
        return TraceList(
            traces=page, next=TracePosition(closed_ns=page[-1]["closed_ns"], trace_id=page[-1]["trace_id"])
        )

    async def judge_calls(self, trace_id: str) -> Mapping[str, object]:
        judge = self._parts.config.evaluators.judge
        if judge is None or judge.keep_calls_bytes is None:
            return {"off": JUDGE_CALLS_OFF, "calls": []}
        calls = await asyncio.to_thread(self._parts.store.judge_calls.of, bytes.fromhex(trace_id))
        return {"off": None, "calls": calls}

    def rubric(self, name: str) -> Rubric | None:
        return configured(self._parts.config).get(name)

    async def failure_groups(self, *, contents: bool) -> Sequence[FailureGroup]:
        groups = await self._parts.failures.recent()
        return [each if contents else without_contents(each) for each in groups]

    async def trends(self) -> Mapping[Key, Trend]:
        return await self._trends.at(self.clock_ns())

    def configuration(self) -> ConfigurationPage:
        from sidejudge.dashboards.pages.plain_pages import ConfigurationPage, Setting  # noqa: PLC0415  # likewise

        return ConfigurationPage(
            settings=[Setting(key=key, value=value, given=given) for key, value, given in in_force(self._parts.config)],
            cautions=list(cautions(self._parts.config)),
            version=self._parts.version,
            fingerprint=self._parts.config.fingerprint[:12],
        )

    async def metrics(self, accept: str, *, small: bool = False) -> tuple[bytes, Mapping[str, str]]:
        return await self._metrics.get(openmetrics=wants_openmetrics(accept), small=small)

    async def _written(self, openmetrics: bool) -> tuple[bytes, str]:  # noqa: FBT001  # as ``SharedMetrics`` asks
        self._parts.exporter.follow(self._totals())
        services = [each async for each in self._statuses_in_turns()]
        # in a thread: thousands of series take longer to write than a probe may wait
        return await asyncio.to_thread(
            self._parts.exporter.exposition(OPENMETRICS if openmetrics else TEXT, self.snapshot(services))
        )

    async def _statuses_in_turns(self) -> AsyncIterator[ServiceStatus]:
        """The status of every window; after every few of them whatever waits for the event loop has its turn."""
        for number, each in enumerate(self._watch.each_service_status(self.clock_ns())):
            if number % _AT_A_TIME == _AT_A_TIME - 1:
                await asyncio.sleep(0)
            yield each

    def _unanswered(self, now_ns: int) -> dict[tuple[str, str, str], float]:
        """How many traces stand for those without an answer here, of each rubric in force."""
        waiting, unasked = self._parts.awaited.weights(now_ns), self._parts.windows.unasked()
        keys = [key for key in {*waiting, *unasked} if key.rubric in self._parts.rubrics]
        return {key: waiting.get(key, 0.0) + unasked.get(key, 0.0) for key in keys}

    def snapshot(self, services: Iterable[ServiceStatus] | None = None) -> Snapshot:
        """The gauges of this moment; ``services`` are their statuses where they are known already."""
        now_ns = self.clock_ns()
        judge, exports, agreement, pull = self._parts.schedule.judge(), self._exports(), self._agreement(), self._pull()
        late, fleet, prompts = self._late_references(), self._fleet(), self.prompts()
        forwarding, peers, sessions = self._parts.listeners.forwarding(), self._parts.peers, self._parts.sessions
        kept = forwarding.buffer if forwarding is not None else None
        behind = self._parts.awaited.all_behind(now_ns)
        embedding, vectorless = self._parts.backends.embedding, self._parts.pipeline.judge_queue.without_vectors
        queues: dict[str, QueueSize | None] = {
            "assembly": QueueSize.since(self._parts.assembler.open_traces, self._parts.assembler.oldest_ns),
            "judging": self._judging(),
            "joining": QueueSize(items=peers.joining.waiting) if peers else None,
            "judge": QueueSize(items=judge.waiting, oldest_s=judge.oldest_s) if judge else None,
            "embeddings": QueueSize.since(len(vectorless), vectorless.oldest_ns) if embedding else None,
            "pull": QueueSize(items=pull.pending) if pull else None,
            "belated": QueueSize(items=late.waiting, oldest_s=late.oldest_s) if late else None,
            "sessions": QueueSize.since(sessions.open_sessions, sessions.oldest_ns) if sessions else None,
            "forward": QueueSize(items=kept.waiting, oldest_s=kept.oldest_s) if kept else None,
            **{export.destination: QueueSize(items=export.waiting, oldest_s=export.oldest_s) for export in exports},
        }
        # What waits for a judge is none of these: a judge that is away, slow or rationed has alerts of its own.
        stuck = [each.oldest_s for each in (queues["judging"], queues["embeddings"]) if each and each.oldest_s]
        return Snapshot(
            services=corrected(self._watch.service_statuses(now_ns) if services is None else services, agreement),
            agreement=agreement,
            unanswered=self._unanswered(now_ns),
            behind={key: found for key, found in behind.items() if key.rubric in self._parts.rubrics},
            failures=self._parts.failures.latest,
            traces_open=self._parts.outcomes.open,
            sampling_rate=self._parts.sampling_rate(),
            load_share=self._parts.shedding.share,
            behind_s=max([0.0, *(now_ns / 1e9 - since_s for since_s in stuck)]),
            queues={name: queue for name, queue in queues.items() if queue is not None},
            exports=exports,
            connections={
                **{export.destination: export.state for export in exports},
                **({} if pull is None else {"sources.langfuse": pull.state}),
                **({} if fleet is None else {"fleet.database": "stopped" if fleet.wrong_clock else fleet.state}),
                **(self._parts.references.places() if self._parts.references else {}),
                **({} if not prompts else {PROMPTS: "retrying" if any(each.reason for each in prompts) else "ok"}),
            },
            fleet=fleet,
            pull=pull,
            late_references=late,
            spool_bytes=self._parts.store.size,
            forward_buffer_bytes=None if kept is None else kept.bytes,
            contents_bytes=self._parts.store.contents.bytes,
            judge=judge,
            anomalies=self._anomalies(),
            alerts=list(self._watch.posted()),
            metrics=list(self._watch.metric_statuses()),
        )

    def _judging(self) -> QueueSize:
        waiting = self._parts.pipeline.waiting
        oldest_ns = min((closing.closed_ns for closing in islice(waiting, 1) if closing.closed_ns), default=None)
        return QueueSize.since(len(waiting), oldest_ns)

    def _anomalies(self) -> dict[str, bool]:
        found = {anomaly.kind for anomaly in self._parts.traffic.current()}
        return {kind.value: kind in found for kind in AnomalyKind}

    def _totals(self) -> Iterator[Series]:
        """What was counted since the start."""
        counts, forwarding = self._parts.intake.counts, self._parts.listeners.forwarding()
        yield f.TRACES_SEEN, (), self._parts.outcomes.balance().seen
        yield from intake_totals(counts)
        yield from claim_totals(self._parts.intake.trust)
        yield from receiving_totals(self._parts.listeners.receiving(counts))
        if forwarding is not None:
            yield from forwarding_totals(forwarding)
        if (pull := self._pull()) is not None:
            yield from pull_totals(pull)
        if (late_references := self._late_references()) is not None:
            yield from late_reference_totals(late_references)
        if (fleet := self._fleet()) is not None:
            yield from fleet_totals(fleet)

    def _embeddings(self) -> EmbeddingsSnapshot | None:
        backend, section = self._parts.backends.embedding, self._parts.config.evaluators.embedding
        if backend is None or section is None:
            return None
        waiting = self._parts.pipeline.judge_queue.without_vectors
        queue = QueueSize.since(len(waiting), waiting.oldest_ns)
        outage = None if backend.outage is None else backend.outage.logged
        return EmbeddingsSnapshot(name=section.model, outage=outage, waiting=queue.items, oldest_s=queue.oldest_s)

    def _pull(self) -> PullSnapshot | None:
        return self._parts.pull.snapshot() if self._parts.pull else None

    def _fleet(self) -> FleetSnapshot | None:
        return self._parts.fleet.snapshot() if self._parts.fleet else None

    def _whole_fleet(self, now_ns: int) -> FleetReport | None:
        return self._parts.fleet_status.report(now_ns) if self._parts.fleet_status else None

    def _agreement(self) -> AgreementSnapshot | None:
        return self._parts.annotating.snapshot() if self._parts.annotating else None

    def _late_references(self) -> LateReferenceSnapshot | None:
        """How far re-evaluation is; None where nothing can come late."""
        if self._parts.revisions is None or self._parts.config.revised_within is None:
            return None
        return self._parts.revisions.snapshot()

    def _trace_url(self, trace_id: str) -> str | None:
        """The trace's page in the Langfuse to which scores go, else in the one from which traces come."""
        langfuse = self._parts.sinks.langfuse or self._parts.pull
        return None if langfuse is None else langfuse.trace_url(trace_id)

    def _exports(self) -> list[ExportSnapshot]:
        """The destinations of scores, own telemetry and notices, and the progress of each."""
        fed = self._parts.annotating.exports() if self._parts.annotating else ()
        return [*self._parts.sinks.snapshots(), *fed, *self._parts.notifications.exports()]


def _one_more(query: VerdictQuery | TraceQuery) -> dict[str, Any]:
    """The query as the store takes it, with one more than asked for: whether there is a next page."""
    wanted = {each.name: getattr(query, each.name) for each in fields(query)}
    return {**wanted, "after": astuple(query.after) if query.after else None, "limit": query.limit + 1}


def _bounds(choice: ServiceChoice) -> tuple[float, float | None]:
    """The metric's range; for a declared rubric's own metric it is unknown, and open above."""
    rubric = RUBRICS.get(choice.rubric)
    found = next((each.metric for each in rubric.criteria if each.metric.id == choice.metric), None) if rubric else None
    if found is not None:
        return found.bounds
    return (0.0, None) if choice.metric else (0.0, 1.0)


def _page_of(found: Sequence[VerdictDocument], limit: int) -> VerdictPage:
    """The page of as many as were wanted; where there is one more, with the position at which the next one begins."""
    if len(found) <= limit:
        return VerdictPage(verdicts=found)
    last = found[limit - 1]
    of = last["trace_id"] or last["case_id"]  # a session has no trace id: its key is the id of the case
    position = Position(closed_ns=last["closed_ns"], trace_id=of, rubric=last["rubric"])
    return VerdictPage(verdicts=found[:limit], next=position)

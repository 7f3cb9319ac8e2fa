"""Response schemas: the JSON bodies of the HTTP API, as its OpenAPI document describes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from integrations.otlp.server.traffic import Forwarding, Receiving
from monitor.ingest.anomaly import AnomalyKind
from scoring.alerts.lifecycle import Stage
from scoring.lexical.label import label
from scoring.metrics.judge_metrics import Tier
from scoring.status.cascade_snapshot import CascadeSnapshot
from scoring.status.export_snapshot import ExportSnapshot, ExportState
from scoring.status.fleet_snapshot import FleetSnapshot, FleetState
from scoring.status.judge_snapshot import JudgeSnapshot
from scoring.status.late_reference_snapshot import BelatedState, LateReferenceSnapshot
from scoring.status.pull_snapshot import PullSnapshot, PullState
from scoring.status.service_status import ServiceStatus
from scoring.status.status import WORST_FIRST, Policy, Status

from .agreement_schemas import AgreementBody, CorrectedBody
from .alert_schemas import AlertBody, ChangeBody, instant
from .metric_schemas import LimitedMetricBody
from .prompt_schemas import PromptBody
from .report import MonitorReport
from .response_body import Ratio, ResponseBody

Count = Annotated[int, Field(ge=0)]
MOST_SERVICES = 1000
"""Services and rubrics in one body of the status."""
_LONGEST_NAME = 300


class AvailableMetricBody(ResponseBody):
    """One metric of the rubric `agent`."""

    name: str
    display_name: str
    description: str
    tier: Tier
    default_weight: Ratio = Field(description="0: has to be given a weight when it is selected")
    score_type: Literal["scored", "binary"] = Field(description="0-5, or pass and fail")
    rubric: str = Field(description="what each score means, a line each")
    include_in_defaults: bool


class AvailableMetricsBody(ResponseBody):
    """Every metric that a judge's configuration may select."""

    data: list[AvailableMetricBody]
    count: Count


class ThresholdsBody(ResponseBody):
    """Pass ratios below which a level is reached."""

    warning: Ratio
    critical: Ratio


class CascadeBody(ResponseBody):
    """Verdicts of the window that went through a cascade of judges. The pass ratio is that of the strongest judge."""

    verdicts: dict[str, int] = Field(
        description="by why a stronger judge was asked: `sure` (it was not), `doubt`, `drawn`"
    )
    changed: dict[str, int] = Field(description="those that it turned, from pass to fail or back")
    unanswered: Count = Field(description="times that a stronger judge gave no answer")
    as_delivered: Ratio = Field(description="pass ratio of the verdicts as they are")
    corrected: bool = Field(description="whether 30 verdicts were drawn; before that the pass ratio is as delivered")

    @classmethod
    def of(cls, seen: CascadeSnapshot) -> CascadeBody:
        return cls(
            verdicts=dict(seen.verdicts), changed=dict(seen.changed), unanswered=seen.unanswered,
            as_delivered=seen.as_delivered, corrected=seen.corrected,
        )  # fmt: skip


class ServiceStatusBody(ResponseBody):
    """One service under one rubric. What is not known is null, never 0."""

    service: str
    environment: str
    rubric: str
    status: Status
    reason: str = Field(description="the numbers that led to the status, in one sentence")
    pass_ratio: Ratio | None = Field(
        description="estimated share of all traffic that passes (weighted by 1/probability)"
    )
    lower: Ratio | None = Field(description="lower Wilson bound of the pass ratio")
    upper: Ratio | None = Field(description="upper Wilson bound of the pass ratio")
    confidence: Ratio | None = Field(description="chance with which each bound holds on its own")
    interval_lower: Ratio | None = Field(description="95 % interval to be shown: both of its bounds hold together")
    interval_upper: Ratio | None
    n: Count = Field(description="verdicts in the window that passed or failed")
    failures: Count
    effective_n: Annotated[float, Field(ge=0)] = Field(
        description="Kish's effective sample size, divided by the design effect"
    )
    clusters: Count | None = Field(description="sessions (`alerts.cluster`) of these verdicts; null: none names one")
    design_effect: Annotated[float, Field(ge=1)] | None = Field(
        description="by how much less verdicts say because those of a session pass and fail together"
    )
    traffic: Annotated[float, Field(ge=0)] = Field(description="traces that these verdicts stand for (sum of weights)")
    incomplete: Count = Field(description="verdicts in the window that neither passed nor failed")
    judge_failed: Count = Field(description="those of them that did not because the judge failed")
    forced: Count = Field(description="verdicts in the window that only a sampling rule drew")
    composite_mean: Ratio | None = Field(description="weighted mean composite, normalised to 0-1")
    metric_means: dict[str, float] = Field(description="weighted mean of each metric, in its own unit")
    worst: Ratio | None = Field(description="pass ratio if every incomplete verdict had failed")
    best: Ratio | None = Field(description="pass ratio if every incomplete verdict had passed")
    since: datetime | None = Field(description="since when the status is in force")
    sequence_upper: Ratio | None = Field(description="upper bound that holds at all times (mode `sequence`)")
    change: ChangeBody | None = Field(description="the early warning of a falling pass ratio")
    drift: ChangeBody | None = Field(description="the early warning that runs depart from their scenario")
    corrected: CorrectedBody | None = Field(
        description="pass ratio that people would have found (Rogan-Gladen); null: labels do not determine it"
    )
    prediction_powered: CorrectedBody | None = Field(
        default=None, description="the same by prediction-powered inference; null: fewer than 30 labels"
    )
    cascade: CascadeBody | None = Field(
        default=None, description="what a stronger judge changed; null: no cascade of judges"
    )
    thresholds: ThresholdsBody
    window_s: Annotated[float, Field(gt=0)]

    @classmethod
    def of(cls, status: ServiceStatus, window_s: float) -> ServiceStatusBody:
        found, bounds, missing = status.estimate, status.thresholds, status.missing
        return cls(
            service=_text(status.service), environment=_text(status.environment), rubric=status.rubric,
            status=status.appraisal.status, reason=status.appraisal.reason,
            pass_ratio=found.pass_ratio if found else None, lower=found.lower if found else None,
            upper=found.upper if found else None, confidence=found.confidence if found else None,
            interval_lower=found.pair.lower if found else None, interval_upper=found.pair.upper if found else None,
            clusters=found.clusters if found else None, design_effect=found.design_effect if found else None,
            n=found.n if found else 0, failures=found.failures if found else 0,
            effective_n=found.effective_n if found else 0.0, traffic=found.weight_sum if found else 0.0,
            incomplete=status.incomplete, judge_failed=status.judge_failed, forced=status.forced,
            composite_mean=status.composite_mean, metric_means=dict(status.metric_means),
            worst=missing.worst if missing else None, best=missing.best if missing else None,
            since=instant(status.since_ns), sequence_upper=status.sequence_upper,
            change=ChangeBody.of(status.change) if status.change else None,
            drift=ChangeBody.of(status.drift) if status.drift else None,
            corrected=CorrectedBody.of(status.corrected) if status.corrected else None,
            prediction_powered=CorrectedBody.of(status.rectified) if status.rectified else None,
            cascade=CascadeBody.of(status.cascade) if status.cascade else None,
            thresholds=ThresholdsBody(warning=bounds.warning, critical=bounds.critical),
            window_s=window_s,
        )  # fmt: skip


class OutcomesBody(ResponseBody):
    """Every trace that was seen is open or has ended with exactly one reason."""

    seen: Count
    open: Count
    ended: dict[str, int] = Field(description="traces by the reason they ended with")
    revisions: Count = Field(description="re-scores of traces that had ended already")


class SamplingBody(ResponseBody):
    """The sampling in force."""

    rate: Ratio = Field(description="base rate")
    rules: list[str] = Field(description="names of the rules, in order")


class AlertsBody(ResponseBody):
    """How a status is reached."""

    mode: str = Field(
        description="what is compared: the ratio since a drop began (`adaptive`), the upper bound (`bound`), the ratio "
        "(`point`), a confidence sequence"
    )
    thresholds: ThresholdsBody
    min_samples: Annotated[float, Field(ge=0)]
    min_failures: Count

    @classmethod
    def of(cls, policy: Policy) -> AlertsBody:
        bounds = ThresholdsBody(warning=policy.thresholds.warning, critical=policy.thresholds.critical)
        return cls(
            mode=policy.mode, thresholds=bounds, min_samples=policy.min_samples, min_failures=policy.min_failures
        )


class JudgeModelBody(ResponseBody):
    """One judge and its circuit breaker."""

    model: str
    state: Literal["closed", "open", "half_open"] = Field(
        description="`closed`: it is asked; `open`: it is not; `half_open`: it is tried"
    )
    reason: str | None = Field(description="why it is not closed")
    since: datetime | None
    next_probe: datetime | None = Field(description="when it is tried again")


class JudgeBudgetBody(ResponseBody):
    """US dollars since the running hour or day (UTC) began; `limit_usd` is null without a budget."""

    period: Literal["hour", "day"]
    spent_usd: Annotated[float, Field(ge=0)]
    limit_usd: float | None


class JudgeBody(ResponseBody):
    """The judge: whether it can be asked, what it costs, what waits for it."""

    name: str = Field(description="the model, or the panel")
    outage: str | None = Field(description="why no answer can be had now; null when one can")
    models: list[JudgeModelBody]
    budgets: list[JudgeBudgetBody]
    shares: dict[str, float] = Field(
        description="share of the cases that need the judge that its budget can pay for now, by priority"
    )
    in_flight: Count = Field(description="cases that are being judged")
    waiting: Count = Field(description="cases that wait until the judge can be asked")
    oldest_since: datetime | None = Field(description="since when the oldest of them waits")

    @classmethod
    def of(cls, judge: JudgeSnapshot) -> JudgeBody:
        return cls(
            name=judge.name, outage=judge.outage,
            models=[
                JudgeModelBody(
                    model=each.model, state=each.circuit, reason=each.reason or None, since=_at(each.since_s),
                    next_probe=_at(each.next_probe_s),
                )
                for each in judge.models
            ],
            budgets=[
                JudgeBudgetBody(period=each.period, spent_usd=each.spent_usd, limit_usd=each.limit_usd)
                for each in judge.spending
            ],
            shares=dict(judge.shares), in_flight=judge.under_way, waiting=judge.waiting,
            oldest_since=_at(judge.oldest_s),
        )  # fmt: skip


class AnomalyBody(ResponseBody):
    """Something about the traffic that makes verdicts fewer, or other, than the configuration asks for."""

    kind: AnomalyKind
    service: str | None = Field(description="null: all of them")
    cause: str
    remedy: str


class ReceivingBody(ResponseBody):
    """Requests received since start."""

    protocols: list[str] = Field(description="protocols that are listened for: `http`, `grpc`")
    encrypted: bool
    authenticated: bool = Field(description="whether senders need credentials")
    requests: Count
    spans: Count
    log_records: Count
    refused: dict[str, int] = Field(description="requests answered with an error, by HTTP status")
    dropped: Count = Field(description="requests with signals that are not looked at")

    @classmethod
    def of(cls, receiving: Receiving) -> ReceivingBody:
        return cls(
            protocols=list(receiving.protocols), encrypted=receiving.encrypted, authenticated=receiving.authenticated,
            requests=receiving.requests, spans=receiving.spans, log_records=receiving.log_records,
            refused={str(code): count for code, count in receiving.refused.items()}, dropped=receiving.dropped,
        )  # fmt: skip


class ForwardingBody(ResponseBody):
    """Requests forwarded upstream since start."""

    upstream: str
    requests: dict[str, int] = Field(description="requests by signal; `other`: paths that are passed through")
    answers: dict[str, int] = Field(description="upstream's answers by class of status")
    failed: dict[str, int] = Field(description="requests without an answer, or with half of one, by reason")
    unjudged: dict[str, int] = Field(description="requests that went on and were not taken in here, by reason")
    last_failure: str = Field(description="why upstream last gave no answer; empty: it always did")

    @classmethod
    def of(cls, forwarding: Forwarding) -> ForwardingBody:
        return cls(
            upstream=forwarding.upstream, requests=dict(forwarding.requests), answers=dict(forwarding.answers),
            failed=dict(forwarding.failed), unjudged=dict(forwarding.unjudged), last_failure=forwarding.last_failure,
        )  # fmt: skip


class ExportBody(ResponseBody):
    """A destination of scores or notices, and how far they have come."""

    destination: str
    state: ExportState = Field(description="`retrying`: waiting helps; `stopped`: only a person can")
    reason: str = Field(description="why it is not `ok`; empty when it is")
    server: str | None = Field(description="what answers there; null until it has")
    project: str | None = Field(description="where scores go to; null until it is known")
    waiting: Count = Field(description="what it has not accepted yet")
    oldest_since: datetime | None = Field(description="since when the oldest of them waits")
    unseen: Count = Field(description="scores that it accepted and that were not read back yet")
    dead: Count = Field(description="what was given up")
    last_success: datetime | None

    @classmethod
    def of(cls, export: ExportSnapshot) -> ExportBody:
        return cls(
            destination=export.destination, state=export.state, reason=_text(export.reason), server=export.server,
            project=export.project, waiting=export.waiting, oldest_since=_at(export.oldest_s),
            unseen=export.unseen, dead=export.dead, last_success=_at(export.last_success_s),
        )  # fmt: skip


class PullBody(ResponseBody):
    """Reading traces from Langfuse: how far it has come."""

    state: PullState = Field(
        description="`waiting`: too much waits here already; `retrying`: waiting helps; `stopped`: only a person can"
    )
    reason: str = Field(description="why it is not `ok`; empty when it is")
    server: str | None = Field(description="what answers there; null until it has")
    project: str | None = Field(description="whose traces are read; null until it is known")
    reads: Literal["v2", "legacy"] | None = Field(description="by which interface; null until it is known")
    pending: Count = Field(description="traces that were seen and are not whole yet, or were not read")
    lag_s: float | None = Field(description="for how long what is there was not listed, or what is whole not read")
    last_success: datetime | None
    rows: Count = Field(description="observations that were read since the start")
    taken: Count = Field(description="traces that were taken since the start")
    errors: dict[str, int] = Field(description="readings that ended early since the start, by why")

    @classmethod
    def of(cls, pull: PullSnapshot) -> PullBody:
        return cls(
            state=pull.state, reason=_text(pull.reason), server=pull.server, project=pull.project, reads=pull.reads,
            pending=pull.pending, lag_s=pull.lag_s, last_success=_at(pull.read_s), rows=pull.rows, taken=pull.taken,
            errors=dict(pull.errors),
        )  # fmt: skip


class FleetBody(ResponseBody):
    """What this monitor shares with others by the fleet's database."""

    state: FleetState = Field(description="`retrying`: waiting helps; `stopped`: only a person can")
    reason: str = Field(description="why it is not `ok`; empty when it is")
    name: str = Field(description="name of this monitor in the fleet")
    database: str = Field(description="address, without credentials")
    away_s: float = Field(description="for how long the database has been away; this monitor goes on alone meanwhile")
    monitors: Count = Field(description="monitors that are there, this one included")
    leases: list[str] = Field(description="what this monitor alone may do")
    schema_version: int | None = Field(description="of the tables; null until it is known")
    last_success: datetime | None = Field(description="when a round was last whole")
    rounds: dict[str, int] = Field(description="rounds since the start, by how they ended")

    @classmethod
    def of(cls, fleet: FleetSnapshot) -> FleetBody:
        return cls(
            state=fleet.state, reason=_text(fleet.reason), name=fleet.name, database=_text(fleet.database),
            away_s=fleet.away_s, monitors=fleet.monitors, leases=list(fleet.leases),
            schema_version=fleet.schema_version, last_success=_at(fleet.read_s), rounds=dict(fleet.rounds),
        )  # fmt: skip


class LateReferenceBody(ResponseBody):
    """Traces whose reference came, changed or went after their spans were let go: read again, and judged again."""

    state: BelatedState = Field(
        description="`waiting`: others go first; `retrying`: waiting helps; `stopped`: only a person can; `off`: no "
        "Langfuse is configured that they could be read from"
    )
    reason: str = Field(description="why it is not `ok`; empty when it is")
    waiting: Count = Field(description="traces that are to be judged again")
    oldest: datetime | None = Field(description="since when the oldest of them waits")
    given_up: Count = Field(description="traces whose verdict stands all the same; `/v1/traces/{id}` names the reason")
    revised: Count = Field(description="judged again since the start, with another verdict")
    unchanged: Count = Field(description="judged again since the start, with the same verdicts")
    failures: dict[str, int] = Field(description="attempts since the start that came to nothing, by why")

    @classmethod
    def of(cls, late: LateReferenceSnapshot) -> LateReferenceBody:
        return cls(
            state=late.state, reason=_text(late.reason), waiting=late.waiting, oldest=_at(late.oldest_s),
            given_up=late.given_up, revised=late.revised, unchanged=late.unchanged,
            failures=dict(late.failures),
        )  # fmt: skip


class StatusBody(ResponseBody):
    """The state of this process at one moment."""

    status: Status = Field(
        description="the worst of all windows and limited metrics; `insufficient_data` only when all are"
    )
    services: list[ServiceStatusBody] = Field(description=f"the worst first, at most {MOST_SERVICES:,}")
    service_count: Count = Field(description="services and rubrics that have a status, those left out included")
    metrics: list[LimitedMetricBody] = Field(
        description=f"continuous metrics with limits (`alerts.metrics`), the worst first, at most {MOST_SERVICES:,}"
    )
    standings: list[ServiceStatusBody] = Field(description="the former name of `services`")
    outcomes: OutcomesBody
    ledger: OutcomesBody = Field(description="the former name of `outcomes`")
    open_traces: Count
    sampling: SamplingBody
    alerts: AlertsBody
    firing: list[AlertBody] = Field(description="alerts that fire; `/v1/alerts` shows all, and what is watched")
    window_s: Annotated[float, Field(gt=0)]
    judge: JudgeBody | None = Field(description="null where no judge is configured")
    agreement: AgreementBody | None = Field(description="null where no labels of people are read")
    anomalies: list[AnomalyBody] = Field(description="what is odd about the traffic; empty when nothing is")
    suspicions: list[AnomalyBody] = Field(description="the former name of `anomalies`")
    receiving: ReceivingBody | None = Field(description="null: this process does not listen for exports")
    forwarding: ForwardingBody | None = Field(description="null: nothing goes on (`forward` is not configured)")
    pull: PullBody | None = Field(description="null: no traces are read from Langfuse")
    fleet: FleetBody | None = Field(description="null: this monitor is for itself (`fleet` is not configured)")
    late_references: LateReferenceBody | None = Field(description="null: references are looked for in the traces alone")
    belated: LateReferenceBody | None = Field(description="the former name of `late_references`")
    prompts: list[PromptBody] = Field(description="questions whose text lies in Langfuse; empty where none does")
    exports: list[ExportBody] = Field(description="where scores are written back to, and receivers of notices")
    window_shortened: Count = Field(description="verdicts that left their window early, for lack of memory")
    version: str
    config_fingerprint: str = Field(description="first digits of the SHA-256 of the configuration in force")
    started_at: datetime
    now: datetime
    uptime_s: Annotated[float, Field(ge=0)]

    @classmethod
    def of(cls, report: MonitorReport) -> StatusBody:
        alerts, window_s = AlertsBody.of(report.policy), report.window_ns / 1e9
        worst = sorted(report.services, key=lambda each: WORST_FIRST.index(each.appraisal.status))[:MOST_SERVICES]
        services = [ServiceStatusBody.of(each, window_s) for each in worst]
        outcomes = OutcomesBody(
            seen=report.seen, open=report.open, ended=dict(report.ended), revisions=report.revisions
        )
        anomalies = [
            AnomalyBody(kind=each.kind, service=each.service, cause=each.cause, remedy=each.remedy)
            for each in report.anomalies
        ]
        late_references = LateReferenceBody.of(report.late_references) if report.late_references is not None else None
        return cls(
            status=report.overall,
            services=services, service_count=len(report.services), standings=services,
            metrics=[LimitedMetricBody.of(each) for each in report.metrics[:MOST_SERVICES]],
            outcomes=outcomes, ledger=outcomes,
            open_traces=report.open,
            sampling=SamplingBody(rate=report.sampling_rate, rules=list(report.sampling_rules)),
            alerts=alerts,
            firing=[AlertBody.of(each) for each in report.alerts if each.alert.stage is Stage.FIRING],
            window_s=window_s, window_shortened=report.shortened,
            judge=JudgeBody.of(report.judge) if report.judge is not None else None,
            agreement=AgreementBody.of(report.agreement) if report.agreement is not None else None,
            anomalies=anomalies, suspicions=anomalies,
            receiving=ReceivingBody.of(report.receiving) if report.receiving else None,
            forwarding=ForwardingBody.of(report.forwarding) if report.forwarding else None,
            pull=PullBody.of(report.pull) if report.pull is not None else None,
            fleet=FleetBody.of(report.fleet) if report.fleet is not None else None,
            late_references=late_references, belated=late_references,
            prompts=[PromptBody.of(each) for each in report.prompts],
            exports=[ExportBody.of(export) for export in report.exports],
            version=report.version, config_fingerprint=report.fingerprint,
            started_at=_instant(report.started_ns), now=_instant(report.now_ns),
            uptime_s=max(0.0, (report.now_ns - report.started_ns) / 1e9),
        )  # fmt: skip


def _text(name: str) -> str:
    """A name from a trace, cut, as Unicode that can be written: JSON may have carried half of a surrogate pair."""
    return label(name, _LONGEST_NAME)


def _at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _instant(ns: int) -> datetime:
    return datetime.fromtimestamp(ns / 1e9, UTC)

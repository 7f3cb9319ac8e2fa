"""Response schemas: the JSON bodies of the HTTP API, as its OpenAPI document describes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from sidejudge.dashboards.pages.status_page import MonitorReport
from sidejudge.integrations.otlp.server.traffic import Buffered, Forwarding, Receiving
from sidejudge.scoring.alerts.lifecycle import Stage
from sidejudge.scoring.metrics.judge_metrics import Tier
from sidejudge.scoring.status.service_status import ServiceStatus, SilenceCause, SliceStatus
from sidejudge.scoring.status.snapshots import (
    Anomaly,
    CascadeSnapshot,
    CircuitName,
    EmbeddingsSnapshot,
    ExportSnapshot,
    FleetSnapshot,
    JudgeModelSnapshot,
    JudgeSnapshot,
    LateReferenceSnapshot,
    PullSnapshot,
    Spending,
)
from sidejudge.scoring.status.status import WORST_FIRST, Status

from .response_body import Count, Instant, InstantNs, Ratio, ResponseBody, Text, body_of
from .status_schemas import AgreementBody, AlertBody, ChangeBody, CorrectedBody, LimitedMetricBody, PromptBody

MOST_SERVICES = 1000
"""Services and rubrics in one body of the status."""


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


@body_of(CascadeSnapshot)
class CascadeBody(ResponseBody):
    """Verdicts of the window that went through a cascade of judges. The pass ratio is the strongest judge's."""

    as_delivered: Ratio


class SilenceBody(ResponseBody):
    """Why a service has no verdicts any more, as far as this monitor knows."""

    cause: SilenceCause = Field(
        description="`no_spans`, `none_sampled` (spans arrive), `none_judged` (traces are sampled), `incomplete` "
        "(verdicts neither pass nor fail), `unknown`"
    )
    page: str = Field(description="the page of the documentation that goes on from there")


class SliceBody(ResponseBody):
    """A part of the traffic compared with the rest, by verdicts in their first version."""

    slice: str = Field(
        validation_alias="by", description="by what traffic is divided, such as `version` or `metadata.tenant`"
    )
    value: Text = Field(description="`__other__`: all values that are too many to be kept apart")
    pass_ratio: Ratio | None
    lower: Ratio | None = Field(description="it lies between `lower` and `upper`, with 95 %")
    upper: Ratio | None
    n: Count
    others: Ratio | None = Field(description="pass ratio of all other traffic meanwhile")
    others_n: Count
    worse: bool = Field(description="whether its alert is raised: `version_worse` or `slice_worse`")
    since: InstantNs | None = Field(
        validation_alias="since_ns", description="since when it seems to be so; null: it does not"
    )

    @classmethod
    def of(cls, status: SliceStatus) -> SliceBody:
        found, others = status.estimate, status.others
        return cls.read(
            status,
            pass_ratio=found.pass_ratio if found else None,
            lower=found.lower if found else None,
            upper=found.upper if found else None,
            n=found.n if found else 0,
            others=others.pass_ratio if others else None,
            others_n=others.n if others else 0,
        )


class ServiceStatusBody(ResponseBody):
    """One service under one rubric. What is not known is null, never 0."""

    service: Text
    environment: Text
    rubric: str
    status: Status
    reason: str = Field(description="the numbers that led to the status, in one sentence")
    pass_ratio: Ratio | None = Field(
        description="estimated share of all traffic that passes (weighted by 1/probability)"
    )
    lower: Ratio | None = Field(description="the pass ratio lies between `lower` and `upper` (Wilson)")
    upper: Ratio | None
    confidence: Ratio | None = Field(description="chance with which both bounds hold together")
    interval_lower: Ratio | None = Field(description="the same as `lower`")
    interval_upper: Ratio | None = Field(description="the same as `upper`")
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
    since: InstantNs | None = Field(validation_alias="since_ns", description="since when the status is in force")
    sequence_upper: Ratio | None = Field(description="upper bound that holds at all times (mode `adaptive`)")
    change: ChangeBody | None = Field(description="the early warning of a falling pass ratio")
    drift: ChangeBody | None = Field(description="the early warning that runs depart from their scenario")
    corrected: CorrectedBody | None = Field(
        description="pass ratio that people would have found (Rogan-Gladen); null: labels do not determine it"
    )
    prediction_powered: CorrectedBody | None = Field(
        default=None,
        validation_alias="rectified",
        description="the same by prediction-powered inference; null: fewer than 30 labels",
    )
    cascade: CascadeBody | None = Field(
        default=None, description="what a stronger judge changed; null: no cascade of judges"
    )
    thresholds: ThresholdsBody
    window_s: Annotated[float, Field(gt=0)] = Field(
        description="how far back the window reaches, in s: to the fall, while an alarm stands on one"
    )
    last_verdict: InstantNs | None = Field(
        default=None, validation_alias="last_ns", description="when a verdict last passed or failed"
    )
    silence: SilenceBody | None = Field(
        default=None, description="why no verdict comes, with status `no_data`; null: verdicts come"
    )
    slices: list[SliceBody] = Field(
        default=[], description="parts of the traffic (`alerts.slices`) that are worse, or come nearest to it"
    )

    @classmethod
    def of(cls, status: ServiceStatus, window_s: float) -> ServiceStatusBody:
        found, missing = status.estimate, status.missing
        lower, upper = (found.lower, found.upper) if found else (None, None)
        return cls.read(
            status,
            status=status.appraisal.status, reason=status.appraisal.reason,
            pass_ratio=found.pass_ratio if found else None, lower=lower, upper=upper,
            confidence=0.95 if found else None, interval_lower=lower, interval_upper=upper,
            clusters=found.clusters if found else None, design_effect=found.design_effect if found else None,
            n=found.n if found else 0, failures=found.failures if found else 0,
            effective_n=found.effective_n if found else 0.0, traffic=found.weight_sum if found else 0.0,
            worst=missing.worst if missing else None, best=missing.best if missing else None,
            window_s=window_s if status.reach_ns is None else status.reach_ns / 1e9,
            slices=list(map(SliceBody.of, status.slices)),
        )  # fmt: skip


def worst_first(statuses: Iterable[ServiceStatus], window_s: float) -> list[ServiceStatusBody]:
    """The bodies of those that matter most."""
    ordered = sorted(statuses, key=lambda each: WORST_FIRST.index(each.appraisal.status))[:MOST_SERVICES]
    return [ServiceStatusBody.of(each, window_s) for each in ordered]


class OutcomesBody(ResponseBody):
    """Every trace that was seen is open or has ended with exactly one reason."""

    seen: Count
    open: Count
    ended: dict[str, int] = Field(description="traces by the reason they ended with")
    revisions: Count = Field(
        description="endings of traces that had ended before, judged or not: spans came late, or a reference"
    )


class SamplingBody(ResponseBody):
    """The sampling in force."""

    rate: Ratio = Field(validation_alias="sampling_rate", description="base rate")
    rules: list[str] = Field(validation_alias="sampling_rules", description="names of the rules, in order")
    begun_by_callers: Count = Field(
        description="traces below a span of another process that did not arrive: the caller chose their ids"
    )
    disbelieved: dict[str, int] = Field(
        description="claims to stand for more traces that are not believed, by reason; they change no weight"
    )


class AlertsBody(ResponseBody):
    """How a status is reached."""

    mode: str = Field(
        description="what is compared: the ratio since a drop began (`adaptive`), the upper bound (`bound`), the ratio "
        "(`point`)"
    )
    thresholds: ThresholdsBody
    min_samples: Annotated[float, Field(ge=0)]
    min_failures: Count


@body_of(JudgeModelSnapshot)
class JudgeModelBody(ResponseBody):
    """One judge and its circuit breaker."""

    state: CircuitName = Field(validation_alias="circuit")
    reason: str | None
    since: Instant | None = Field(validation_alias="since_s")
    next_probe: Instant | None = Field(validation_alias="next_probe_s")


@body_of(Spending)
class JudgeBudgetBody(ResponseBody):
    """US dollars since the running hour or day (UTC) began; `limit_usd` is null without a budget."""

    spent_usd: Annotated[float, Field(ge=0)]


@body_of(JudgeSnapshot)
class JudgeBody(ResponseBody):
    """The judge: whether it can be asked, its cost, and the cases that wait for it."""

    models: list[JudgeModelBody]
    budgets: list[JudgeBudgetBody] = Field(validation_alias="spending")
    in_flight: Count = Field(validation_alias="under_way")
    oldest_since: Instant | None = Field(validation_alias="oldest_s")
    estimating: list[str] = Field(default=[])
    unpriced: list[str] = Field(default=[])


@body_of(EmbeddingsSnapshot)
class EmbeddingsBody(ResponseBody):
    """Embeddings: whether their endpoint can be asked, and the cases that wait for it."""

    oldest_since: Instant | None = Field(validation_alias="oldest_s")


@body_of(Anomaly)
class AnomalyBody(ResponseBody):
    """A property of the traffic that makes verdicts fewer than, or different from, what the configuration asks for."""


@body_of(Receiving)
class ReceivingBody(ResponseBody):
    """Requests received since start."""


@body_of(Buffered)
class BufferedBody(ResponseBody):
    """Requests that upstream did not accept and that are kept on disk; counts since start."""

    oldest_since: Instant | None = Field(validation_alias="oldest_s")


@body_of(Forwarding)
class ForwardingBody(ResponseBody):
    """Requests forwarded upstream since start."""

    buffer: BufferedBody | None


@body_of(ExportSnapshot)
class ExportBody(ResponseBody):
    """A destination of scores or notices, with the progress of deliveries."""

    reason: Text
    oldest_since: Instant | None = Field(validation_alias="oldest_s")
    last_success: Instant | None = Field(validation_alias="last_success_s")


@body_of(PullSnapshot)
class PullBody(ResponseBody):
    """Reading traces from Langfuse: how far it has come."""

    reason: Text
    last_success: Instant | None = Field(validation_alias="read_s")


@body_of(FleetSnapshot, less=("clock_offset_s", "wrong_clock"))
class FleetBody(ResponseBody):
    """This monitor's exchange with others by the fleet's database."""

    reason: Text
    database: Text
    last_success: Instant | None = Field(validation_alias="read_s")


@body_of(LateReferenceSnapshot)
class LateReferenceBody(ResponseBody):
    """Traces whose reference came, changed or went after their spans were dropped: they are read and judged again."""

    reason: Text
    oldest: Instant | None = Field(validation_alias="oldest_s")


class StatusBody(ResponseBody):
    """The state of this process at one moment."""

    status: Status = Field(
        validation_alias="overall",
        description="the worst of all windows and limited metrics; `no_data` or `insufficient_data` only where none "
        "is known",
    )
    services: list[ServiceStatusBody] = Field(description=f"the worst first, at most {MOST_SERVICES:,}")
    service_count: Count = Field(description="services and rubrics that have a status, those left out included")
    metrics: list[LimitedMetricBody] = Field(
        description=f"continuous metrics with limits (`alerts.metrics`), the worst first, at most {MOST_SERVICES:,}"
    )
    standings: list[ServiceStatusBody] = Field(description="the former name of `services`")
    outcomes: OutcomesBody
    ledger: OutcomesBody = Field(description="the former name of `outcomes`")
    open_traces: Count = Field(validation_alias="open")
    sampling: SamplingBody
    alerts: AlertsBody = Field(validation_alias="policy")
    firing: list[AlertBody] = Field(description="alerts that fire; `/v1/alerts` shows all, and what is watched")
    window_s: Annotated[float, Field(gt=0)]
    judge: JudgeBody | None = Field(description="null where no judge is configured")
    embeddings: EmbeddingsBody | None = Field(description="null where no embeddings are configured")
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
    window_shortened: Count = Field(
        validation_alias="shortened", description="verdicts that left their window early, for lack of memory"
    )
    version: str
    config_fingerprint: str = Field(
        validation_alias="fingerprint", description="first digits of the SHA-256 of the configuration in force"
    )
    started_at: InstantNs = Field(validation_alias="started_ns")
    now: InstantNs = Field(validation_alias="now_ns")
    uptime_s: Annotated[float, Field(ge=0)]

    @classmethod
    def of(cls, report: MonitorReport) -> StatusBody:
        window_s = report.window_ns / 1e9
        services = worst_first(report.services, window_s)
        outcomes = OutcomesBody.read(report)
        return cls.read(
            report,
            services=services,
            service_count=len(report.services),
            standings=services,
            metrics=[LimitedMetricBody.of(each) for each in report.metrics[:MOST_SERVICES]],
            outcomes=outcomes,
            ledger=outcomes,
            suspicions=report.anomalies,
            belated=report.late_references,
            sampling=SamplingBody.read(report),
            firing=[AlertBody.of(each) for each in report.alerts if each.alert.stage is Stage.FIRING],
            window_s=window_s,
            uptime_s=max(0.0, (report.now_ns - report.started_ns) / 1e9),
        )

"""Status schemas: the parts of the API's JSON about alerts, metrics under limits, prompts and agreement with people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from sidejudge.scoring.alerts.condition import Condition, Severity
from sidejudge.scoring.alerts.event import fingerprint
from sidejudge.scoring.alerts.lifecycle import Posted, Stage
from sidejudge.scoring.calibration.calibrated import Calibrated
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot, AnnotationQueueSnapshot
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import StatusChange
from sidejudge.scoring.status.snapshots import PromptSnapshot
from sidejudge.scoring.status.status import Status

from .response_body import Count, Instant, InstantNs, Ratio, ResponseBody, SecondsNs, Text, body_of, instant, moment


@body_of(StatusChange)
class ChangeBody(ResponseBody):
    """The change detector of one service and rubric: the early warning."""

    score: Annotated[float, Field(ge=0)] = Field(validation_alias="share")
    since: InstantNs | None = Field(validation_alias="since_ns")


class AlertBody(ResponseBody):
    """One alert. What is not known is null, never 0."""

    fingerprint: str = Field(description="the same in all notices of it")
    condition: str
    severity: Severity
    stage: Stage
    muted: bool = Field(description="a more severe alert about the same thing fires or did, and this one was not sent")
    title: str
    said: str = Field(description="how bad it is, in one sentence")
    labels: dict[str, str]
    unit: str
    value: float | None
    lower: float | None
    upper: float | None
    n: int | None
    limit: float | None
    since: datetime = Field(description="breached since")
    fired_at: datetime | None = Field(description="null while it is pending")
    last_breached_at: datetime
    changed_at: datetime | None = Field(description="when the change detector thinks it began")
    measured_from: datetime | None = Field(description="what the value is measured since; null where it is of now")
    runbook: str

    @classmethod
    def of(cls, posted: Posted) -> AlertBody:
        condition, alert, found = posted.condition, posted.alert, posted.alert.finding
        return cls.read(
            found, fingerprint=fingerprint(alert.condition, alert.labels), condition=condition.id,
            severity=condition.severity, stage=alert.stage, muted=posted.muted, title=condition.title,
            said=found.stated, labels=dict(alert.labels), unit=condition.unit, since=moment(alert.since_ns),
            fired_at=instant(alert.fired_ns), last_breached_at=moment(alert.breached_ns),
            changed_at=instant(found.changed_ns), measured_from=instant(found.measured_ns), runbook=condition.runbook,
        )  # fmt: skip


@body_of(Condition, less=("find", "examples"))
class ConditionBody(ResponseBody):
    """One thing that is watched, with the limits in force."""

    labels: list[str] = Field(validation_alias="scope")
    unit: str
    for_s: SecondsNs = Field(validation_alias="for_ns")
    keep_s: SecondsNs = Field(validation_alias="keep_ns")
    runbook: str


class BoardBody(ResponseBody):
    """The alerts of this moment, what matters most first, and everything that is watched."""

    alerts: list[AlertBody]
    conditions: list[ConditionBody]


class LimitedMetricBody(ResponseBody):
    """One metric with limits (`alerts.metrics`) in one service and environment. What is not known is null, never 0."""

    service: str
    environment: str
    rubric: str | None = Field(description="whose metric it is; null: a figure of the application")
    metric: str = Field(description="as configured: `latency_p95`, `answer_relevance_mean`")
    unit: str
    status: Status
    reason: str = Field(description="the numbers that led to the status, in one sentence")
    value: float | None = Field(description="the quantile or mean of all traffic (weighted by 1/probability)")
    lower: float | None = Field(
        description="the bounds hold together with 95 % at any look, whatever the distribution; null: there is none"
    )
    upper: float | None
    n: Count
    effective_n: Annotated[float, Field(ge=0)]
    clusters: int | None = Field(description="sessions (`alerts.cluster`) of these values; null: none names one")
    warning: float | None
    critical: float | None
    worse: Literal["above", "below"] = Field(description="the side of the limits that is worse")
    since: InstantNs | None = Field(validation_alias="since_ns", description="since when the status is in force")

    @classmethod
    def of(cls, status: MetricStatus) -> LimitedMetricBody:
        limit, found = status.limit, status.estimate
        return cls.read(
            status, rubric=limit.rubric or None, metric=limit.name,
            unit=limit.unit, status=status.appraisal.status, reason=status.appraisal.reason,
            value=found.value if found else None, lower=found.lower if found else None,
            upper=found.upper if found else None, n=found.n if found else 0,
            effective_n=found.effective_n if found else 0.0, clusters=found.clusters if found else None,
            warning=limit.warning, critical=limit.critical, worse="below" if limit.below else "above",
        )  # fmt: skip


@body_of(PromptSnapshot, less=("reason",))
class PromptBody(ResponseBody):
    """A prompt of Langfuse that a question is asked with."""

    name: Text
    requested: Text
    state: Literal["read", "fallback", "missing"] = Field(
        description="`fallback`: the one read last is used; `missing`: there is none, its metric is unavailable"
    )
    reason: Text = Field(description="why it cannot be read now; empty when it can")


def _written(measured: Sequence[Calibrated]) -> list[dict[str, object]]:
    return [each.to_json() for each in measured]


class CorrectedBody(ResponseBody):
    """A pass ratio corrected for the judge's errors on labelled traces, with its two-sided 95 % interval."""

    pass_ratio: Ratio = Field(validation_alias="rate")
    lower: Ratio
    upper: Ratio


@body_of(AnnotationQueueSnapshot)
class QueueBody(ResponseBody):
    """The annotation queue that verdicts in doubt are put into."""

    reason: Text


@body_of(AgreementSnapshot, less=("elsewhere",))
class AgreementBody(ResponseBody):
    """The labels that people give, and how far our verdicts agree with them."""

    reason: Text
    read_until: Instant | None = Field(validation_alias="read_s")
    measured: Annotated[list[dict[str, object]], BeforeValidator(_written)]
    queue: QueueBody | None

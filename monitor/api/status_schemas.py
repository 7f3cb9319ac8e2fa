"""Status schemas: the parts of the API's JSON about alerts, metrics under limits, prompts and agreement with people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import fingerprint
from sidejudge.scoring.alerts.lifecycle import Posted, Stage
from sidejudge.scoring.calibration.calibrated import Calibrated
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.status import Status

from .response_body import Count, Counts, Instant, InstantNs, Ratio, ResponseBody, SecondsNs, Text, instant, moment


class ChangeBody(ResponseBody):
    """The change detector of one service and rubric: the early warning."""

    alarmed: bool
    score: Annotated[float, Field(ge=0)] = Field(
        validation_alias="share", description="share of what raises the early warning"
    )
    since: InstantNs | None = Field(
        validation_alias="since_ns", description="estimated time of the change; null: nothing speaks for one"
    )
    good: float = Field(description="pass ratio that it distinguishes from `bad`")
    bad: float
    run_length: float = Field(description="mean number of verdicts to a false alarm, at `good`")


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


class ConditionBody(ResponseBody):
    """One thing that is watched, with the limits in force."""

    id: str
    severity: Severity
    title: str
    when: str
    meaning: str
    labels: list[str] = Field(validation_alias="scope", description="labels that distinguish its alerts")
    unit: str
    limit: float | None
    for_s: SecondsNs = Field(validation_alias="for_ns", description="it fires once it was breached for this long")
    keep_s: SecondsNs = Field(
        validation_alias="keep_ns", description="it resolves once it was not breached for this long"
    )
    muted_by: str | None
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


class PromptBody(ResponseBody):
    """A prompt of Langfuse that a question is asked with."""

    name: Text
    requested: Text = Field(description="its label or version as configured")
    used: str | None = Field(description="the version in use; null: none could ever be read")
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


class QueueBody(ResponseBody):
    """The annotation queue that verdicts in doubt are put into."""

    name: str
    reason: Text = Field(description="why nothing is put in now; empty when something may be")
    put: Counts = Field(description="what was put in since start, by why it is in doubt")
    left_out: Count = Field(description="what was not of late, for the hour's number was reached")


class AgreementBody(ResponseBody):
    """The labels that people give, and how far our verdicts agree with them."""

    source: str = Field(description="where people's labels are read")
    reason: Text = Field(description="why they cannot be read now; empty when they can")
    read_until: Instant | None = Field(
        validation_alias="read_s", description="until when they have been read; null: never"
    )
    measured: Annotated[list[dict[str, object]], BeforeValidator(_written)] = Field(
        description="by rubric and metric (`pass`: the verdict), as `sidejudge calibrate --format json` prints it"
    )
    passed_over: Counts = Field(description="labels of the time last read that are no evidence of agreement, by why")
    corrections: Counts = Field(description="answers with a verdict that people corrected, by rubric")
    corrected_passes: Counts = Field(description="those of them that we had passed")
    queue: QueueBody | None = Field(description="null: no verdict is put before people")

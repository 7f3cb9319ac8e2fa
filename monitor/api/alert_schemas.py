"""Alert schemas: the JSON bodies of ``/v1/alerts``, as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sidejudge.scoring.alerts.board import Posted
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import fingerprint
from sidejudge.scoring.alerts.lifecycle import Stage

from .response_body import InstantNs, ResponseBody, SecondsNs, instant, moment


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
    muted: bool = Field(description="a more severe alert about the same thing fires")
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
    runbook: str

    @classmethod
    def of(cls, posted: Posted) -> AlertBody:
        condition, alert, found = posted.condition, posted.alert, posted.alert.finding
        return cls(
            fingerprint=fingerprint(alert.condition, alert.labels), condition=condition.id,
            severity=condition.severity, stage=alert.stage, muted=posted.muted, title=condition.title,
            said=found.stated, labels=dict(alert.labels), unit=condition.unit, value=found.value, lower=found.lower,
            upper=found.upper, n=found.n, limit=found.limit,
            since=moment(alert.since_ns), fired_at=instant(alert.fired_ns),
            last_breached_at=moment(alert.breached_ns),
            changed_at=instant(found.changed_ns), runbook=condition.runbook,
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

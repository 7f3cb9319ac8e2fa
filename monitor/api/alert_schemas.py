"""Alert schemas: the JSON bodies of ``/v1/alerts``, as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from scoring.alerts.board import Posted
from scoring.alerts.condition import Condition, Severity
from scoring.alerts.event import fingerprint
from scoring.alerts.lifecycle import Stage
from scoring.status.service_status import StatusChange

from .response_body import ResponseBody


class ChangeBody(ResponseBody):
    """The change detector of one service and rubric: the early warning."""

    alarmed: bool
    score: Annotated[float, Field(ge=0)] = Field(description="share of what raises the early warning")
    since: datetime | None = Field(description="estimated time of the change; null: nothing speaks for one")
    good: float = Field(description="pass ratio that it distinguishes from `bad`")
    bad: float
    run_length: float = Field(description="mean number of verdicts to a false alarm, at `good`")

    @classmethod
    def of(cls, change: StatusChange) -> ChangeBody:
        return cls(
            alarmed=change.alarmed, score=change.share, since=instant(change.since_ns), good=change.good,
            bad=change.bad, run_length=change.run_length,
        )  # fmt: skip


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
            since=datetime.fromtimestamp(alert.since_ns / 1e9, UTC), fired_at=instant(alert.fired_ns),
            last_breached_at=datetime.fromtimestamp(alert.breached_ns / 1e9, UTC),
            changed_at=instant(found.changed_ns), runbook=condition.runbook,
        )  # fmt: skip


class ConditionBody(ResponseBody):
    """One thing that is watched, with the limits in force."""

    id: str
    severity: Severity
    title: str
    when: str
    meaning: str
    labels: list[str] = Field(description="labels that distinguish its alerts")
    unit: str
    limit: float | None
    for_s: Annotated[float, Field(ge=0)] = Field(description="it fires once it was breached for this long")
    keep_s: Annotated[float, Field(ge=0)] = Field(description="it resolves once it was not breached for this long")
    muted_by: str | None
    runbook: str

    @classmethod
    def of(cls, condition: Condition) -> ConditionBody:
        return cls(
            id=condition.id, severity=condition.severity, title=condition.title, when=condition.when,
            meaning=condition.meaning, labels=list(condition.scope), unit=condition.unit, limit=condition.limit,
            for_s=condition.for_ns / 1e9, keep_s=condition.keep_ns / 1e9, muted_by=condition.muted_by,
            runbook=condition.runbook,
        )  # fmt: skip


class BoardBody(ResponseBody):
    """The alerts of this moment, what matters most first, and everything that is watched."""

    alerts: list[AlertBody]
    conditions: list[ConditionBody]


def instant(ns: int | None) -> datetime | None:
    """A time in ns since the epoch as a time of day in UTC."""
    return None if ns is None else datetime.fromtimestamp(ns / 1e9, UTC)

"""Metric schemas: continuous metrics under their limits, as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.status import Status

from .response_body import Count, ResponseBody, instant


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
    since: datetime | None = Field(description="since when the status is in force")

    @classmethod
    def of(cls, status: MetricStatus) -> LimitedMetricBody:
        limit, found = status.limit, status.estimate
        return cls(
            service=status.service, environment=status.environment, rubric=limit.rubric or None, metric=limit.name,
            unit=limit.unit, status=status.appraisal.status, reason=status.appraisal.reason,
            value=found.value if found else None, lower=found.lower if found else None,
            upper=found.upper if found else None, n=found.n if found else 0,
            effective_n=found.effective_n if found else 0.0, clusters=found.clusters if found else None,
            warning=limit.warning, critical=limit.critical, worse="below" if limit.below else "above",
            since=instant(status.since_ns),
        )  # fmt: skip

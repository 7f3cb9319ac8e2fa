"""Comparison schemas: the JSON body of ``/v1/compare``, as the OpenAPI document describes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from sidejudge.monitor.alerting.comparisons import By, Cluster, PlaceComparison, Within
from sidejudge.scoring.result.result import Unavailable

from .response_body import ResponseBody


class SideBody(ResponseBody):
    """One side of a comparison."""

    label: str = Field(description="`before`, `after`, or the version")
    n: int
    clusters: int = Field(description="sessions or users; a verdict that names none is one of its own")
    mean: float = Field(description="pass rate or mean, over what both sides have, in their common mix")
    raw_mean: float = Field(description="the same over all verdicts of the side, in its own mix")


class ComparisonBody(ResponseBody):
    """After minus before, for one service, environment and rubric. What cannot be known is null, with the reason."""

    service: str
    environment: str
    rubric: str
    before: SideBody | None
    after: SideBody | None
    difference: float | None
    lower: float | None = Field(description="the interval holds at any look, however often one looks")
    upper: float | None
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        description="of this interval: together all keep `confidence` of the body"
    )
    strata: int | None = Field(description="kinds of traces that were compared with their like")
    compared: float | None = Field(description="share of the weight that both sides have a like for")
    verdict: Literal["worse", "better", "no_difference_shown"] | None
    unavailable: str | None = Field(description="why there is no difference")

    @classmethod
    def of(cls, each: PlaceComparison, *, higher_is_better: bool) -> ComparisonBody:
        found, key = each.found, each.key
        if isinstance(found, Unavailable):
            return cls(
                service=key.service, environment=key.environment, rubric=key.rubric, before=None, after=None,
                difference=None, lower=None, upper=None, confidence=None, strata=None, compared=None, verdict=None,
                unavailable=found.reason,
            )  # fmt: skip
        worse, better = (found.is_worse(higher_is_better=higher is higher_is_better) for higher in (True, False))
        return cls.read(
            found, service=key.service, environment=key.environment, rubric=key.rubric,
            before=SideBody.read(found.before, label=each.before), after=SideBody.read(found.after, label=each.after),
            confidence=1 - found.error,
            verdict="worse" if worse else "better" if better else "no_difference_shown", unavailable=None,
        )  # fmt: skip


class CompareBody(ResponseBody):
    """Comparisons by service, environment and rubric."""

    by: By
    metric: str | None = Field(description="null: the pass rate")
    higher_is_better: bool
    cluster: Cluster
    within: Within
    since: datetime = Field(description="the first verdicts that were read")
    split: datetime | None = Field(description="the moment between before and after")
    until: datetime
    confidence: float = Field(description="that all intervals hold, at any look")
    capped: bool = Field(description="older verdicts were not read")
    comparisons: list[ComparisonBody]

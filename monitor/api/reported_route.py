"""``/v1/reported``: the agreement of our verdicts with those of others on the same traces, over a status's window."""

from __future__ import annotations

from fastapi import Depends, FastAPI
from pydantic import Field

from sidejudge.scoring.statistics.agreement import Kappa, cohen_kappa
from sidejudge.scoring.statistics.interval import wilson_pair

from .params import only_known
from .response_body import Count, Ratio, ResponseBody, Text
from .view import MonitorView, ReportedAgreement


class ReportedAgreementBody(ResponseBody):
    """One pair of rubrics at one service."""

    service: Text
    environment: Text
    reported: Text = Field(description="the rubric of verdicts of others")
    rubric: Text = Field(description="ours")
    n: Count = Field(description="traces on which both passed or failed")
    both_pass: Count
    both_fail: Count
    only_reported_passes: Count
    only_ours_passes: Count
    agreement: Ratio | None = Field(description="share of equal verdicts; null without traces")
    lower: Ratio | None = Field(description="the agreement lies between `lower` and `upper`, with 95 % (Wilson)")
    upper: Ratio | None
    kappa: float | None = Field(description="Cohen's; null where one side never varies or nothing is shared")

    @classmethod
    def of(cls, found: ReportedAgreement) -> ReportedAgreementBody:
        table, kappa = found.table, cohen_kappa(found.table)
        (both_fail, only_ours), (only_reported, both_pass) = table.counts
        pair = wilson_pair(table.agreeing, table.n)
        return cls.read(
            found, n=table.n, both_pass=both_pass, both_fail=both_fail, only_reported_passes=only_reported,
            only_ours_passes=only_ours, agreement=table.agreeing / table.n if table.n else None,
            lower=pair.lower if pair else None, upper=pair.upper if pair else None,
            kappa=kappa.value if isinstance(kappa, Kappa) else None,
        )  # fmt: skip


class ReportedBody(ResponseBody):
    """Agreement with verdicts of others."""

    agreements: list[ReportedAgreementBody] = Field(description="empty where no rubric takes verdicts of others")


def add_reported(app: FastAPI, view: MonitorView) -> None:
    """Serve the route."""

    @app.get("/v1/reported", response_model=ReportedBody, tags=["v1"], dependencies=[Depends(only_known)])
    async def reported() -> ReportedBody:
        """The agreement of our verdicts with those of others on the same traces, over the windows of statuses."""
        return ReportedBody(agreements=list(map(ReportedAgreementBody.of, view.reported_agreements())))

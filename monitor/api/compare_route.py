"""``/v1/compare``: verdicts before and after a moment, or of two versions, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Protocol

from fastapi import Depends, FastAPI, Query, Response

from sidejudge.integrations.store.compared import ComparedFilter
from sidejudge.monitor.alerting.comparisons import By, Cluster, ComparisonQuery, Within
from sidejudge.monitor.config.metric_limits import parse_metric
from sidejudge.scoring.case.run_figures import UNITS

from .comparison_schemas import CompareBody, ComparisonBody
from .errors import ProblemError
from .params import duration_of, nanoseconds_of, only_known, rubric_of
from .report import ComparedReport
from .response_body import instant
from .verdict_schemas import ProblemBody

_METRIC = "its mean instead of the pass rate; `accuracy_p10`, `latency_p95`: a percentile, also of `cost` and `tokens`"


def _measure(metric: str | None) -> tuple[str | None, float | None]:
    """The metric and its quantile, None for its mean."""
    measure, quantile = (metric and parse_metric(metric)) or (metric, None)
    if quantile is None and measure not in UNITS:
        return metric, None
    if quantile is not None and not 0 < quantile < 1:
        raise ProblemError("metric: a percentile lies between 0 and 100", "name p50")
    if measure in UNITS and quantile is None:
        error = f"metric: a mean of {measure} has no bound, since one rare value may move it by any amount"
        raise ProblemError(error, f"compare {measure}_p50 or {measure}_p95")
    return measure, quantile


class ComparedView(Protocol):
    """What the route asks of the monitor."""

    @property
    def clock_ns(self) -> Callable[[], int]:
        """The time, in ns since the epoch."""

    @property
    def rubrics(self) -> Sequence[str]:
        """The names of all rubrics."""

    async def compare(self, wanted: ComparedFilter, query: ComparisonQuery) -> ComparedReport:
        """How far verdicts before and after, or of two versions, lie apart. Raises ``StoreError``."""


def add_comparisons(app: FastAPI, view: ComparedView) -> None:
    """Serve the route."""

    @app.get(
        "/v1/compare",
        response_model=CompareBody,
        responses={422: {"model": ProblemBody, "description": "The request is wrong; the body describes how."}},
        tags=["v1"],
        dependencies=[Depends(only_known)],
    )
    async def comparison(  # noqa: PLR0917  # the framework calls it by name
        rubric: Annotated[str | None, Query(max_length=200)] = None,
        service: Annotated[str | None, Query(max_length=2000)] = None,
        environment: Annotated[str | None, Query(max_length=2000)] = None,
        metric: Annotated[str | None, Query(max_length=200, description=_METRIC)] = None,
        by: Annotated[By, Query(description="what distinguishes the sides; `release` is `service.version`")] = "time",
        a: Annotated[str | None, Query(max_length=200, description="version; default: the one before `b`")] = None,
        b: Annotated[str | None, Query(max_length=200, description="version; default: the one that began last")] = None,
        since: Annotated[
            datetime | None, Query(description="by time: the moment of the change; default: a day ago")
        ] = None,
        before: Annotated[str, Query(max_length=20, description="how far back of `since`, or of now, is read")] = "7d",
        cluster: Annotated[Cluster, Query(description="what belongs together")] = "session",
        within: Annotated[Within, Query(description="what must be alike: the trace's name")] = "name",
        confidence: Annotated[float, Query(gt=0, lt=1, description="that all intervals hold, at any look")] = 0.95,
    ) -> Response:
        """Before and after, or version against version: differences with intervals that hold at any look."""
        now_ns = view.clock_ns()
        split_ns = since_ns = nanoseconds_of(since)
        if since_ns is None:
            since_ns = now_ns if by != "time" else now_ns - 86_400 * 10**9
        if by == "time":
            split_ns = since_ns
        measure, quantile = _measure(metric)
        query = ComparisonQuery(
            by=by, split_ns=split_ns or 0, a=a, b=b, metric=measure, cluster=cluster, within=within,
            error=round(1 - confidence, 9), quantile=quantile,
        )  # fmt: skip
        read_ns = since_ns - duration_of("before", before) if by == "time" or since is None else since_ns
        wanted = ComparedFilter(
            since_ns=read_ns, until_ns=now_ns, service=service, environment=environment,
            rubric=rubric_of(rubric, view.rubrics), metric=measure,
            figure=measure in UNITS,
        )  # fmt: skip
        found = await view.compare(wanted, query)
        first, last = (datetime.fromtimestamp(ns / 1e9, UTC) for ns in (read_ns, now_ns))
        body = CompareBody(
            by=by, metric=metric, higher_is_better=found.higher_is_better, cluster=cluster, within=within, since=first,
            split=instant(split_ns) if by == "time" else None, until=last, confidence=confidence, capped=found.capped,
            comparisons=[ComparisonBody.of(e, higher_is_better=found.higher_is_better) for e in found.comparisons],
        )  # fmt: skip
        return Response(body.model_dump_json(), media_type="application/json")

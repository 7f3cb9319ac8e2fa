"""The page that compares the verdicts of a service before and after a change.

``/v1/compare``: verdicts before and after a moment, or of two versions, in numbers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import Field

from sidejudge.dashboards.pages.compare_page import (
    KINDS,
    ComparableService,
    ComparedMetric,
    ComparePage,
    ShownSide,
    compare_list_page,
    compare_page,
)
from sidejudge.dashboards.pages.rendering import query_of
from sidejudge.integrations.store.bounded_read import ComparedFilter, ComparedVerdict
from sidejudge.integrations.store.errors import SearchTooLong
from sidejudge.monitor.alerting.comparisons import (
    BY,
    By,
    Cluster,
    ComparedVerdicts,
    ComparisonQuery,
    PlaceComparison,
    Within,
    difference_of,
    version_named,
    version_of,
    versions_of,
)
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.config.metric_limits import parse_metric
from sidejudge.scoring.case.run_figures import UNITS
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Difference
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS

from .errors import ProblemError
from .params import duration_of, nanoseconds_of, one_of, only_known, rubric_of, span_of
from .response_body import ResponseBody, instant
from .verdict_pages import html, refused
from .verdict_schemas import ProblemBody
from .view import MonitorView, PlaceChoice


class SideBody(ResponseBody):
    """One side of a comparison."""

    label: str = Field(description="`before`, `after`, or the version")
    n: int
    clusters: int = Field(description="sessions or users; a verdict that names none is one of its own")
    mean: float = Field(description="pass rate or mean, over what both sides have, in their common mix")
    raw_mean: float = Field(description="the same over all verdicts of the side, in its own mix")
    unanswered: int = Field(
        description="traces beside `n` for which nobody could be asked, in an outage or by a spent budget; bounds of "
        "pass rates allow that they pass, and that they fail"
    )


class ComparisonBody(ResponseBody):
    """After minus before, for one service, environment and rubric. Unknown values are null, with the reason."""

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
            before=SideBody.read(found.before, label=each.before, unanswered=each.unanswered[0]),
            after=SideBody.read(found.after, label=each.after, unanswered=each.unanswered[1]),
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


_ERROR = 0.05
"""The chance that bounds are ever wrong, however often one looks."""
MOST = 20_000
"""Verdicts that are read at most, with all their metrics: the latest."""
SERVICES = 200
"""Services to choose from at most."""
_LAST = "7d"
VERSIONS: tuple[By, ...] = ("release", "prompt", "model")
"""The kinds of versions of a trace, in the page's order of search for two versions."""
_LIKE = ComparisonQuery()
"""The choice of clusters and strata."""
_Used: TypeAlias = Sequence[tuple[ComparedVerdict, bool]]
"""The compared verdicts, each with whether it belongs to the later side."""


class ComparisonChoice(PlaceChoice):
    """What is compared. ``by`` and ``last`` are empty where the page chooses; versions are ``before`` and ``after``."""

    by: str = Field(default="", max_length=20)
    before: str = Field(default="", max_length=2000)
    after: str = Field(default="", max_length=2000)
    at: str = Field(default="", max_length=40)
    last: str = Field(default="", max_length=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What is read: verdicts from ``since_ns`` to ``until_ns``. Where times are compared, ``split_ns`` parts them."""

    since_ns: int
    until_ns: int
    split_ns: int


def add_compare_page(app: FastAPI, view: MonitorView) -> None:
    """Serve the page. It shows names and numbers, and no contents."""

    @app.get("/compare", response_class=HTMLResponse, include_in_schema=False)
    async def compare(request: Request, choice: Annotated[ComparisonChoice, Query()]) -> Response:  # noqa: ARG001  # as its siblings
        if choice.rubric and choice.rubric not in view.rubrics:
            return refused(ProblemError("rubric: there is no such rubric", "choose a service on the status page"))
        now_ns = view.clock_ns()
        try:
            period = period_of(choice, now_ns)
            wanted = ComparedFilter(
                since_ns=period.since_ns, until_ns=period.until_ns, service=choice.service or None,
                environment=choice.environment or None, rubric=choice.rubric or None,
                all_metrics=bool(choice.rubric), most=MOST,
            )  # fmt: skip
            found = await view.compared_verdicts(wanted)
        except (ProblemError, SearchTooLong) as problem:
            return refused(problem)
        if not choice.rubric:
            services = await asyncio.to_thread(comparable, found.verdicts)
            return html(await asyncio.to_thread(lambda: compare_list_page(services, capped=found.capped)))
        return html(await asyncio.to_thread(lambda: compare_page(compared(choice, found, period, now_ns))))


def comparable(verdicts: Sequence[ComparedVerdict]) -> list[ComparableService]:
    """Services to compare, by their two latest versions, else by two times; most verdicts first."""
    by_key: dict[Key, list[ComparedVerdict]] = {}
    for each in verdicts:
        by_key.setdefault(Key(each.service, each.environment, each.rubric), []).append(each)
    largest = sorted(by_key.items(), key=lambda item: -len(item[1]))[:SERVICES]
    return [_comparable(key, of) for key, of in largest]


def _comparable(key: Key, verdicts: Sequence[ComparedVerdict]) -> ComparableService:
    latest = ((by, list(versions_of(verdicts, by))[-2:]) for by in VERSIONS)
    by, (before, after) = next(((by, two) for by, two in latest if len(two) > 1), ("time", ["", ""]))
    return ComparableService(
        service=key.service, environment=key.environment, rubric=key.rubric, by=by, before=before, after=after,
        verdicts=len(verdicts),
    )  # fmt: skip


def compared(choice: ComparisonChoice, found: ComparedVerdicts, period: Period, now_ns: int) -> ComparePage:
    """The page of these verdicts. Where nothing is chosen, the latest two versions are compared, or two times."""
    verdicts = found.verdicts
    versions = {version: _versions(verdicts, version) for version in VERSIONS}
    latest = (version for version in VERSIONS if len(versions[version]) > 1 and not choice.at)
    usual: By = next(latest, "time")
    by: By = next((known for known in BY if known == choice.by), usual)
    options = versions.get(by, {})
    at, last = choice.at, choice.last or _LAST
    if by == "time":
        split_ns = period.split_ns
        if not (choice.by or choice.at):
            split_ns, at = _halfway(verdicts, period)
            names: Sequence[str] = (f"before {at}", f"from {at}")
        else:
            names = (f"the {last} before {at}".rstrip(), f"from {at}" if at else f"the last {last}")
        used = [(each, each.closed_ns >= split_ns) for each in verdicts]
    else:
        names = _chosen(choice, list(options))
        used = [(each, version == names[1]) for each in verdicts if (version := version_of(each, by)) in names]
    sides = [_side(name, used, choice, by, after=bool(n)) for n, name in enumerate(names)] if verdicts else []
    before, after = sides or (None, None)
    return ComparePage(
        service=choice.service, environment=choice.environment, rubric=choice.rubric, by=by, last=last,
        now_ns=now_ns, at=at, options=options, before=before, after=after,
        difference=difference_of(used, _passed, _LIKE, error=_ERROR) if sides else None,
        metrics=_metrics(used) if sides else (),
        unversioned=0 if by == "time" else sum(not version_of(each, by) for each in verdicts),
        capped=found.capped,
    )  # fmt: skip


def period_of(choice: ComparisonChoice, now_ns: int) -> Period:
    """The time that is read, and where times are compared, the moment that parts it: ``at`` alone asks for that."""
    if choice.by and choice.by not in KINDS:
        raise ProblemError("by: there is no such choice", f"choose from {', '.join(KINDS)}")
    span_ns = span_of(choice.last or _LAST)
    split_ns = now_ns - span_ns
    if choice.at:
        try:
            split_ns = nanoseconds_of(datetime.fromisoformat(choice.at)) or split_ns
        except ValueError:
            raise ProblemError("at: cannot be read", "write 2026-01-31T09:00, in UTC") from None
    if choice.by == "time" or (choice.at and not choice.by):
        return Period(since_ns=split_ns - span_ns, until_ns=min(now_ns + 1, split_ns + span_ns + 1), split_ns=split_ns)
    return Period(since_ns=now_ns - span_ns, until_ns=now_ns + 1, split_ns=now_ns - span_ns // 2)


def _halfway(verdicts: Sequence[ComparedVerdict], period: Period) -> tuple[int, str]:
    """The middle of the time since the first verdict, ns since the epoch and as an address has it."""
    first_ns = min((each.closed_ns for each in verdicts), default=period.since_ns)
    step_ns = 10**9 if period.until_ns - first_ns < HOUR_NS else MINUTE_NS
    split_ns = (first_ns + period.until_ns) // 2 // step_ns * step_ns
    return split_ns, datetime.fromtimestamp(split_ns // 10**9, UTC).replace(tzinfo=None).isoformat()


def _versions(verdicts: Sequence[ComparedVerdict], by: By) -> dict[str, int]:
    """How many verdicts each version has, the version that was seen first first."""
    counts = Counter(version_of(each, by) for each in verdicts)
    return {version: counts[version] for version in versions_of(verdicts, by)}


def _chosen(choice: ComparisonChoice, known: Sequence[str]) -> tuple[str, ...]:
    """Both versions, as chosen; by default the latest and the one before it. Empty if there are not two."""
    wanted, asked = (version_named(each, known) for each in (choice.before, choice.after))
    after = asked if asked in known else next((k for k in reversed(known) if k != wanted), "")
    left = [each for each in known if each != after]
    earlier = known[: known.index(after)] if after in known else ()
    before = wanted if wanted in left else next(iter([*reversed(earlier), *left]), "")
    return (before, after) if before and after else ()


def _side(name: str, used: _Used, choice: ComparisonChoice, by: By, *, after: bool) -> ShownSide:
    verdicts = [each for each, is_after in used if is_after == after]
    decided = [(each.passed, each.weight) for each in verdicts if each.passed is not None]
    where = {"service": choice.service, "environment": choice.environment, "rubric": choice.rubric}
    wanted = {} if by == "time" else {**where, "passed": "false", "last": choice.last or _LAST, by: name}
    return ShownSide(
        name=name, verdicts=len(verdicts), incomplete=len(verdicts) - len(decided),
        unanswered=sum(each.unanswered for each in verdicts),
        estimate=estimate(decided), first_ns=verdicts[-1].closed_ns if verdicts else None,
        last_ns=verdicts[0].closed_ns if verdicts else None, failed=f"/verdicts?{query_of(wanted)}" if wanted else "",
    )  # fmt: skip


def _passed(verdict: ComparedVerdict) -> float | None:
    return None if verdict.passed is None else float(verdict.passed)


def _metrics(used: _Used) -> list[ComparedMetric]:
    """Every metric, those that changed most surely first; the bounds of all hold together (Bonferroni)."""
    names = list(
        dict.fromkeys(metric for each, _ in sorted(used, key=lambda row: not row[1]) for metric in each.metrics)
    )
    rows = [_metric(name, used, _ERROR / len(names)) for name in names]
    return sorted(rows, key=lambda row: (not row.shown, -abs(row.difference.difference) if row.difference else 0.0))


def _metric(name: str, used: _Used, error: float) -> ComparedMetric:
    def failing(verdict: ComparedVerdict) -> float | None:
        return float(verdict.metrics[name][1]) if name in verdict.metrics else None

    sides = [
        [(*each.metrics[name], each.weight) for each, is_after in used if is_after == side and name in each.metrics]
        for side in (False, True)
    ]
    whole = [sum(weight for _, _, weight in side) for side in sides]
    shares, means = (
        [sum(each[of] * each[2] for each in side) / weight if weight else None
         for side, weight in zip(sides, whole, strict=True)]
        for of in (1, 0)
    )  # fmt: skip
    found = difference_of(used, failing, _LIKE, error=error) if any(shares) else None
    return ComparedMetric(
        metric=name, failing=(shares[0], shares[1]), means=(means[0], means[1]),
        difference=found if isinstance(found, Difference) else None,
    )  # fmt: skip


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


def add_comparisons(app: FastAPI, view: MonitorView) -> None:
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
        a: Annotated[str | None, Query(max_length=2000, description="version; default: the one before `b`")] = None,
        b: Annotated[
            str | None, Query(max_length=2000, description="version; default: the one that began last")
        ] = None,
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
            since_ns = now_ns if by != "time" else now_ns - DAY_NS
        if by == "time":
            split_ns = since_ns
        measure, quantile = _measure(metric)
        error = round(1 - confidence, 9)
        if not 0 < error < 1:
            raise ProblemError("confidence: is too near to 0 or 1", "name one from 0.000000001 to 0.999999999")
        query = ComparisonQuery(
            by=by, split_ns=split_ns or 0, a=a, b=b, metric=measure, cluster=cluster, within=within,
            error=error, quantile=quantile,
        )  # fmt: skip
        read_ns = since_ns - duration_of("before", before) if by == "time" or since is None else since_ns
        wanted = ComparedFilter(
            since_ns=read_ns, until_ns=now_ns, service=service, environment=environment,
            rubric=rubric_of(rubric, view.rubrics), metric=measure,
            figure=measure in UNITS,
        )  # fmt: skip
        found = await view.compare(wanted, query)
        if found.metrics and not found.comparisons:  # one that only an earlier version of a rubric had is compared
            one_of("metric", measure, found.metrics)
        first, last = (datetime.fromtimestamp(ns / 1e9, UTC) for ns in (read_ns, now_ns))
        body = CompareBody(
            by=by, metric=metric, higher_is_better=found.higher_is_better, cluster=cluster, within=within, since=first,
            split=instant(split_ns) if by == "time" else None, until=last, confidence=confidence, capped=found.capped,
            comparisons=[ComparisonBody.of(e, higher_is_better=found.higher_is_better) for e in found.comparisons],
        )  # fmt: skip
        return Response(body.model_dump_json(), media_type="application/json")

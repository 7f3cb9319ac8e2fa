"""Service page: one service under a rubric, or one metric of it: trend, distribution, versions, worst traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import Thresholds
from sidejudge.scoring.status.trend import Trend
from sidejudge.scoring.verdict.documents import FAILING

from .failing_metrics import scores_of
from .rendering import query_of, render
from .trend import trend_drawing

_RANGES = ("1h", "6h", "1d", "7d")
_FAR = ("30d", "90d", "365d")
"""Where a history of Parquet files is kept, the trend goes beyond the store."""
_BINS = 20
_WORST = 10
_WIDTH, _HEIGHT = 1000, 220
_BAR_HEIGHT = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePage:
    """The contents of the page. ``verdicts`` are the latest ones within the time ``last``, in their JSON form.

    ``capped``: there are more of them. ``status`` is None where the window of the status holds no verdict. ``metric``
    is empty for the composite; ``bounds`` are those of the metric (None: open). ``failures`` are groups of failed
    verdicts, the largest first. ``history``: the trend comes from further back than the store's verdicts.
    """

    service: str
    environment: str
    rubric: str
    last: str
    now_ns: int
    metric: str = ""
    bounds: tuple[float, float | None] = (0.0, 1.0)
    thresholds: Thresholds
    status: ServiceStatus | None
    trend: Trend | None
    verdicts: Sequence[Mapping[str, object]]
    capped: bool = False
    failures: Sequence[FailureGroup] = ()
    history: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """A metric over the verdicts: how many have a value, their plain mean, and how many fail or have none."""

    metric: str
    scored: int
    mean: float | None
    failing: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of the histogram: how many values lie from ``low`` to ``high``, and its height in the drawing."""

    low: str
    high: str
    count: int
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A version of the rubric with its verdicts; times are ns since the epoch."""

    version: str
    count: int
    passed: int
    decided: int
    first_ns: int
    last_ns: int


def service_page(page: ServicePage) -> str:
    """The page as HTML. Every value is escaped."""
    valued = [(value, each) for each in page.verdicts if (value := value_in(each, page.metric)) is not None]
    about = {"service": page.service, "environment": page.environment, "rubric": page.rubric}
    ranges = list(dict.fromkeys([*_RANGES, *(_FAR if page.history else ()), page.last]))
    lower_is_worse = page.metric == "" or not _fails_high(page)
    worst = sorted(valued, key=lambda each: each[0], reverse=not lower_is_worse)[:_WORST]
    return render(
        "service.html", title=f"{page.service} · {page.rubric} · sidejudge", here="/", page=page,
        drawing=trend_drawing(page.trend, page.thresholds, _WIDTH, _HEIGHT),
        ranges=[(each, _address(about, page.metric, each)) for each in ranges],
        metrics=[(row, _address(about, row.metric, page.last)) for row in metric_rows(page.verdicts)],
        whole=_address(about, "", page.last), compare=f"/compare?{query_of(about)}",
        bars=histogram([value for value, _ in valued], page.bounds),
        bar_height=_BAR_HEIGHT, versions=version_rows(page.verdicts), worst=worst,
        all_failed="/verdicts?" + query_of({**about, "passed": "false", "last": page.last, "metric": page.metric}),
    )  # fmt: skip


def value_in(verdict: Mapping[str, object], metric: str) -> float | None:
    """The value of a metric in a verdict, or with an empty name the composite in [0, 1]; None where there is none."""
    if not metric:
        value = verdict.get("composite_norm")
    else:
        value = next((each.get("value") for each in scores_of(verdict) if each.get("metric") == metric), None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def metric_rows(verdicts: Sequence[Mapping[str, object]]) -> list[MetricRow]:
    """Each metric of the verdicts, the most frequent failures first."""
    values: dict[str, list[float]] = {}
    failing, missing = Counter[str](), Counter[str]()
    for verdict in verdicts:
        for score in scores_of(verdict):
            metric, value = str(score.get("metric")), score.get("value")
            known = values.setdefault(metric, [])
            if isinstance(value, int | float):
                known.append(float(value))
            failing[metric] += score.get("rating") in FAILING
            missing[metric] += score.get("status") in ("unavailable", "error")
    rows = [
        MetricRow(
            metric=metric,
            scored=len(known),
            mean=sum(known) / len(known) if known else None,
            failing=failing[metric],
            missing=missing[metric],
        )
        for metric, known in values.items()
    ]
    return sorted(rows, key=lambda row: (-row.failing, -row.missing))


def histogram(values: Sequence[float], bounds: tuple[float, float | None]) -> list[Bar]:
    """How the values are spread, in equal steps over their range; empty without a value."""
    if not values:
        return []
    low, high = bounds[0], bounds[1] if bounds[1] is not None else max(*values, bounds[0] + 1)
    step = (high - low) / _BINS
    counts = Counter(min(_BINS - 1, max(0, int((value - low) / step))) for value in values)
    most = max(counts.values())
    return [
        Bar(low=f"{low + at * step:.4g}", high=f"{low + (at + 1) * step:.4g}", count=counts[at],
            height=counts[at] / most * _BAR_HEIGHT)
        for at in range(_BINS)
    ]  # fmt: skip


def version_rows(verdicts: Sequence[Mapping[str, object]]) -> list[VersionRow]:
    """The versions of the rubric, the latest first."""
    by_version: dict[str, list[Mapping[str, object]]] = {}
    for verdict in verdicts:
        by_version.setdefault(str(verdict.get("rubric_version")), []).append(verdict)
    rows = []
    for version, found in by_version.items():
        times = [at for each in found if isinstance(at := each.get("closed_ns"), int)]
        rows.append(VersionRow(
            version=version, count=len(found), passed=sum(each.get("passed") is True for each in found),
            decided=sum(each.get("passed") is not None for each in found), first_ns=min(times), last_ns=max(times),
        ))  # fmt: skip
    return sorted(rows, key=lambda row: -row.last_ns)


def _fails_high(page: ServicePage) -> bool:
    """Whether the failing values of the metric are the large ones: latencies, costs, counts of faults."""
    ratings: dict[bool, list[float]] = {True: [], False: []}
    for verdict in page.verdicts:
        for score in scores_of(verdict):
            value = score.get("value")
            if score.get("metric") == page.metric and isinstance(value, int | float):
                ratings[score.get("rating") in FAILING].append(float(value))
    if not ratings[True] or not ratings[False]:
        return False
    return sum(ratings[True]) / len(ratings[True]) > sum(ratings[False]) / len(ratings[False])


def _address(about: Mapping[str, str], metric: str, last: str) -> str:
    return f"/services?{query_of({**about, 'metric': metric, 'last': last})}"

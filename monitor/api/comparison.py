"""Comparison: the verdicts of a service before and after a change, and the page that shows them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Protocol

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field

from dashboards.pages.compare_page import KINDS, ComparedMetric, ComparePage, ShownSide, compare_page
from dashboards.pages.rendering import query_of
from integrations.store.errors import SearchTooLong
from integrations.store.verdict_samples import MOST, VERSIONS, VerdictSample
from monitor.config.units import parse_duration
from scoring.result.result import Unavailable
from scoring.statistics.comparison import Compared, Difference, difference
from scoring.statistics.estimate import estimate
from scoring.statistics.interval import Z_95_TWO_SIDED

from .errors import ProblemError
from .params import nanoseconds_of
from .verdict_pages import html, refused

_ERROR = 0.05
"""The chance that bounds are ever wrong, however often one looks."""
_LEAST_IN_STRATUM = 20
"""Verdicts that a name of runs needs on each side to be compared with itself alone."""


class ComparisonChoice(BaseModel):
    """What is compared. ``by`` is empty where the page chooses; ``before`` and ``after`` name versions."""

    service: str = Field(default="", max_length=2000)
    environment: str = Field(default="", max_length=2000)
    rubric: str = Field(default="", max_length=200)
    by: str = Field(default="", max_length=20)
    before: str = Field(default="", max_length=200)
    after: str = Field(default="", max_length=200)
    at: str = Field(default="", max_length=40)
    last: str = Field(default="7d", max_length=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What is read: verdicts from ``since_ns`` to ``until_ns``. Where times are compared, ``split_ns`` parts them."""

    since_ns: int
    until_ns: int
    split_ns: int


class ComparisonView(Protocol):
    """What the page asks of the monitor."""

    def clock_ns(self) -> int:
        """The time, in ns since the epoch."""
        ...

    async def samples(self, choice: ComparisonChoice, period: Period) -> Sequence[VerdictSample] | None:
        """The verdicts of the period, newest first; None for a rubric that there is not. Raises ``StoreError``."""


def add_compare_page(app: FastAPI, view: ComparisonView) -> None:
    """Serve the page. It shows names and numbers, and no contents."""

    @app.get("/compare", response_class=HTMLResponse, include_in_schema=False)
    async def compare(request: Request, choice: Annotated[ComparisonChoice, Query()]) -> Response:  # noqa: ARG001  # as its siblings
        if not choice.rubric:
            return RedirectResponse("/")  # the status page lists the services
        now_ns = view.clock_ns()
        try:
            period = _period(choice, now_ns)
            samples = await view.samples(choice, period)
        except (ProblemError, SearchTooLong) as problem:
            return refused(problem)
        if samples is None:
            return refused(_problem("rubric: there is no such rubric", "choose a service on the status page"))
        return html(await asyncio.to_thread(lambda: compare_page(compared(choice, samples, period, now_ns))))


def compared(choice: ComparisonChoice, samples: Sequence[VerdictSample], period: Period, now_ns: int) -> ComparePage:
    """The page of these verdicts. Where nothing is chosen, the latest two versions are compared, or two times."""
    by = choice.by or next((kind for kind in VERSIONS if len(_versions(samples, kind)) > 1), "time")
    options = {} if by == "time" else _versions(samples, by)
    parts: Sequence[Sequence[VerdictSample]]
    if by == "time":
        names: Sequence[str] = (
            f"the {choice.last} before {choice.at}".rstrip(),
            f"from {choice.at}" if choice.at else f"the last {choice.last}",
        )  # fmt: skip
        parts = (
            [each for each in samples if each.closed_ns < period.split_ns],
            [each for each in samples if each.closed_ns >= period.split_ns],
        )
    else:
        names = _chosen(choice, list(options))
        parts = [[each for each in samples if each.versions.get(by) == name] for name in names]
    found = [_side(name, part, choice, by) for name, part in zip(names, parts, strict=True)] if samples else []
    before, after = found or (None, None)
    return ComparePage(
        service=choice.service, environment=choice.environment, rubric=choice.rubric, by=by, last=choice.last,
        now_ns=now_ns, at=choice.at, options=options, before=before, after=after,
        difference=_difference(parts[0], parts[1], _passed) if found else None,
        metrics=_metrics(*parts) if found else (),
        unversioned=0 if by == "time" else sum(by not in each.versions for each in samples),
        capped=len(samples) >= MOST,
    )  # fmt: skip


def _period(choice: ComparisonChoice, now_ns: int) -> Period:
    if choice.by and choice.by not in KINDS:
        raise _problem("by: there is no such choice", f"choose from {', '.join(KINDS)}")
    try:
        span_ns = round(parse_duration(choice.last).seconds * 1e9)
    except ValueError:
        raise _problem("last: cannot be read", "write 30m, 6h or 2d") from None
    split_ns = now_ns - span_ns
    if choice.at:
        try:
            split_ns = nanoseconds_of(datetime.fromisoformat(choice.at)) or split_ns
        except ValueError:
            raise _problem("at: cannot be read", "write 2026-01-31T09:00, in UTC") from None
    if choice.by == "time":
        return Period(since_ns=split_ns - span_ns, until_ns=min(now_ns + 1, split_ns + span_ns + 1), split_ns=split_ns)
    return Period(since_ns=now_ns - span_ns, until_ns=now_ns + 1, split_ns=now_ns - span_ns // 2)


def _versions(samples: Sequence[VerdictSample], kind: str) -> dict[str, int]:
    """How many verdicts each version has, the version that was seen first first."""
    found: Counter[str] = Counter()
    for each in reversed(samples):
        if version := each.versions.get(kind):
            found[version] += 1
    return dict(found)


def _chosen(choice: ComparisonChoice, known: Sequence[str]) -> tuple[str, ...]:
    """Both versions: those that were chosen, else the latest and the one before it; empty where there are not two."""
    after = choice.after if choice.after in known else next((k for k in reversed(known) if k != choice.before), "")
    left = [each for each in known if each != after]
    earlier = known[: known.index(after)] if after in known else ()
    before = choice.before if choice.before in left else next(iter([*reversed(earlier), *left]), "")
    return (before, after) if before and after else ()


def _side(name: str, samples: Sequence[VerdictSample], choice: ComparisonChoice, by: str) -> ShownSide:
    decided = [(each.passed, each.weight) for each in samples if each.passed is not None]
    where = {"service": choice.service, "environment": choice.environment, "rubric": choice.rubric}
    wanted = {} if by == "time" else {**where, "passed": "false", "last": choice.last, by: name}
    return ShownSide(
        name=name, verdicts=len(samples), incomplete=len(samples) - len(decided),
        estimate=estimate(decided, z=Z_95_TWO_SIDED), first_ns=samples[-1].closed_ns if samples else None,
        last_ns=samples[0].closed_ns if samples else None, failed=f"/verdicts?{query_of(wanted)}" if wanted else "",
    )  # fmt: skip


def _difference(
    before: Sequence[VerdictSample], after: Sequence[VerdictSample],
    value: Callable[[VerdictSample], bool | None], error: float = _ERROR,
) -> Difference | Unavailable:  # fmt: skip
    """The difference of the shares of verdicts for which a value holds; verdicts without one are left out.

    A session counts as one draw. Runs of one name are compared with each other where both sides have enough of them.
    """
    known = [(each, held, False) for each in before if (held := value(each)) is not None]
    known += [(each, held, True) for each in after if (held := value(each)) is not None]
    counts = Counter((each.name, is_after) for each, _, is_after in known)
    own = {name for name, _ in counts if min(counts[name, False], counts[name, True]) >= _LEAST_IN_STRATUM}
    return difference(
        (
            Compared(
                after=is_after, value=float(held), weight=each.weight, cluster=each.session_id,
                stratum=f"={each.name}" if each.name in own else "",
            )
            for each, held, is_after in known
        ),
        error=error,
    )  # fmt: skip


def _passed(sample: VerdictSample) -> bool | None:
    return sample.passed


def _metrics(before: Sequence[VerdictSample], after: Sequence[VerdictSample]) -> list[ComparedMetric]:
    """Every metric, those that changed most surely first; the bounds of all hold together (Bonferroni)."""
    names = list(dict.fromkeys(metric for each in (*after, *before) for metric in each.metrics))
    rows = [_metric(name, before, after, _ERROR / len(names)) for name in names]
    return sorted(rows, key=lambda row: (not row.shown, -abs(row.difference.difference) if row.difference else 0.0))


def _metric(name: str, before: Sequence[VerdictSample], after: Sequence[VerdictSample], error: float) -> ComparedMetric:
    def failing(sample: VerdictSample) -> bool | None:
        return sample.metrics[name][1] if name in sample.metrics else None

    sides = [[(*each.metrics[name], each.weight) for each in side if name in each.metrics] for side in (before, after)]
    whole = [sum(weight for _, _, weight in side) for side in sides]
    shares, means = (
        [sum(each[of] * each[2] for each in side) / weight if weight else None
         for side, weight in zip(sides, whole, strict=True)]
        for of in (1, 0)
    )  # fmt: skip
    found = _difference(before, after, failing, error) if any(shares) else None
    return ComparedMetric(
        metric=name, failing=(shares[0], shares[1]), means=(means[0], means[1]),
        difference=found if isinstance(found, Difference) else None,
    )  # fmt: skip


def _problem(error: str, remedy: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, error, remedy)

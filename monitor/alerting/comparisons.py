"""Comparisons of verdicts before and after a moment, or of two versions, by service, environment and rubric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from sidejudge.integrations.store.bounded_read import ComparedVerdict
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Compared, Difference, difference
from sidejudge.scoring.statistics.design_effect import LARGEST
from sidejudge.scoring.statistics.quantile import quantile_difference

from .observation import Key

By: TypeAlias = Literal["time", "release", "prompt", "model", "rubric_version"]
"""What distinguishes the sides: a moment, or a version: the application's, its prompt's, its model's, the rubric's."""
Cluster: TypeAlias = Literal["session", "user", "none"]
"""What belongs together."""
Within: TypeAlias = Literal["name", "none"]
"""What must be alike to be compared: the trace's name (a route, a kind of request)."""
BY: tuple[By, ...] = get_args(By)
_LEAST_IN_STRATUM = 20
"""Verdicts that a stratum needs on each side; smaller ones are one stratum together."""
MOST = 200
"""Comparisons at a time; each is promised less the more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonQuery:
    """What is compared. ``a`` and ``b`` are versions; without them the two that began last.

    ``split_ns`` is the moment that ``by="time"`` needs, ns since the epoch. ``error`` is the chance that any interval
    is ever wrong, and is split evenly. ``metric``: its mean instead of the pass rate, or its ``quantile``.
    """

    by: By = "time"
    split_ns: int = 0
    a: str | None = None
    b: str | None = None
    metric: str | None = None
    cluster: Cluster = "session"
    within: Within = "name"
    error: float = 0.05
    quantile: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceComparison:
    """One comparison: ``before`` and ``after`` name the sides; ``found`` is the difference or why there is none."""

    key: Key
    before: str
    after: str
    found: Difference | Unavailable


def compare(verdicts: Iterable[ComparedVerdict], query: ComparisonQuery) -> list[PlaceComparison]:
    """One comparison for each service, environment and rubric, in alphabetical order, ``MOST`` at most."""
    by_key: dict[Key, list[ComparedVerdict]] = {}
    for verdict in verdicts:
        if _value(verdict, query) is not None:
            by_key.setdefault(Key(verdict.service, verdict.environment, verdict.rubric), []).append(verdict)
    keys = sorted(by_key)[:MOST]
    return [_compared(key, by_key[key], query, query.error / len(keys)) for key in keys]


def difference_of(
    used: Sequence[tuple[ComparedVerdict, bool]], value: Callable[[ComparedVerdict], float | None],
    query: ComparisonQuery, *, error: float, pass_rates: bool = True,
) -> Difference | Unavailable:  # fmt: skip
    """How far a value lies apart between verdicts, each with whether it is after; those without the value are left out.

    Verdicts that belong together count as one draw, and like is compared with like where both sides have enough of it.
    """
    known = [(verdict, side, held) for verdict, side in used if (held := value(verdict)) is not None]
    strata, seen = _strata([(verdict.name, side) for verdict, side, _ in known], query), Counter[str]()
    rows = (
        Compared(
            after=side, value=float(held), weight=verdict.weight, cluster=_cluster(verdict, query, seen),
            stratum=strata[verdict.name],
        )
        for verdict, side, held in known
    )  # fmt: skip
    if query.quantile is not None:
        return quantile_difference(rows, query.quantile, error=error)
    return difference(rows, error=error, pass_rates=pass_rates)


def versions_of(verdicts: Iterable[ComparedVerdict], by: By) -> dict[str, int]:
    """When each version was first seen, ns since the epoch, the earliest first."""
    began: dict[str, int] = {}
    for verdict in verdicts:
        if version := version_of(verdict, by):
            began[version] = min(verdict.closed_ns, began.get(version, verdict.closed_ns))
    return dict(sorted(began.items(), key=lambda each: each[1]))


def version_of(verdict: ComparedVerdict, by: By) -> str:
    """Empty where the trace states none."""
    known = {
        "release": verdict.release, "prompt": verdict.prompt, "model": verdict.model,
        "rubric_version": verdict.rubric_version,
    }  # fmt: skip
    return known.get(by) or ""


def _compared(key: Key, verdicts: Sequence[ComparedVerdict], query: ComparisonQuery, error: float) -> PlaceComparison:
    before, after = ("before", "after") if query.by == "time" else _versions(verdicts, query)
    if before == after:
        found: Difference | Unavailable = Unavailable(f"all verdicts are of one version: {before or 'none is named'}")
    else:
        sides = ((verdict, _side(verdict, query, before, after)) for verdict in verdicts)
        used = [(verdict, side) for verdict, side in sides if side is not None]
        found = difference_of(
            used, lambda verdict: _value(verdict, query), query, error=error, pass_rates=query.metric is None
        )
    return PlaceComparison(key=key, before=before, after=after, found=found)


def _value(verdict: ComparedVerdict, query: ComparisonQuery) -> float | None:
    if query.metric is not None:
        return verdict.metrics[query.metric][0] if query.metric in verdict.metrics else None
    return None if verdict.passed is None else float(verdict.passed)


def _versions(verdicts: Sequence[ComparedVerdict], query: ComparisonQuery) -> tuple[str, str]:
    """The two that are asked for; of those that are not, the last that began, and the one before it."""
    order = list(versions_of(verdicts, query.by))
    after = query.b if query.b is not None else next((v for v in reversed(order) if v != query.a), query.a or "")
    earlier = [version for version in order if version != after]
    return (query.a if query.a is not None else earlier[-1] if earlier else after), after


def _side(verdict: ComparedVerdict, query: ComparisonQuery, before: str, after: str) -> bool | None:
    if query.by == "time":
        return verdict.closed_ns >= query.split_ns
    version = version_of(verdict, query.by)
    return True if version == after else False if version == before else None


def _cluster(verdict: ComparedVerdict, query: ComparisonQuery, seen: Counter[str]) -> str | None:
    """What the verdict belongs to; of one that is large, as in the design effect, each ``LARGEST`` are one."""
    cluster = {"session": verdict.session, "user": verdict.user, "none": None}[query.cluster]
    if cluster is None:
        return None
    seen[cluster] += 1
    return f"{cluster}/{(seen[cluster] - 1) // LARGEST}"


def _strata(used: Sequence[tuple[str | None, bool]], query: ComparisonQuery) -> Mapping[str | None, str]:
    """The stratum of each name."""
    counted = Counter(used)
    enough = {
        name for name, _ in counted
        if query.within == "name" and min(counted[name, True], counted[name, False]) >= _LEAST_IN_STRATUM
    }  # fmt: skip
    return {name: name or "" if name in enough else "" for name, _ in counted}

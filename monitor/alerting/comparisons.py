"""Comparisons of verdicts before and after a moment, or of two versions, by service, environment and rubric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from integrations.store.compared import ComparedVerdict
from scoring.result.result import Unavailable
from scoring.statistics.comparison import Compared, Difference, difference

from .observation import Key

By: TypeAlias = Literal["time", "release", "prompt", "rubric_version"]
"""What distinguishes the sides: a moment, the application's version, its prompts' version, the rubric's version."""
Cluster: TypeAlias = Literal["session", "user", "none"]
"""What belongs together."""
Within: TypeAlias = Literal["name", "none"]
"""What must be alike to be compared: the trace's name (a route, a kind of request)."""
BY: tuple[By, ...] = get_args(By)
CLUSTERS: tuple[Cluster, ...] = get_args(Cluster)
WITHIN: tuple[Within, ...] = get_args(Within)
_LEAST_IN_STRATUM = 20
"""Verdicts that a stratum needs on each side; smaller ones are one stratum together."""
MOST = 200
"""Comparisons at a time; each is promised less the more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonQuery:
    """What is compared. ``a`` and ``b`` are versions; without them the two that began last.

    ``split_ns`` is the moment that ``by="time"`` needs, ns since the epoch. ``error`` is the chance that any interval
    is ever wrong, and is split evenly. ``metric``: its mean instead of the pass rate.
    """

    by: By = "time"
    split_ns: int = 0
    a: str | None = None
    b: str | None = None
    metric: str | None = None
    cluster: Cluster = "session"
    within: Within = "name"
    error: float = 0.05


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


def _compared(key: Key, verdicts: Sequence[ComparedVerdict], query: ComparisonQuery, error: float) -> PlaceComparison:
    before, after = ("before", "after") if query.by == "time" else _versions(verdicts, query)
    sides = [(verdict, _side(verdict, query, before, after)) for verdict in verdicts]
    used = [(verdict, side) for verdict, side in sides if side is not None]
    strata = _strata(used, query)
    rows = [
        Compared(
            after=side, value=float(_value(verdict, query) or 0.0), weight=verdict.weight,
            cluster=_cluster(verdict, query), stratum=strata[verdict.name],
        )
        for verdict, side in used
    ]  # fmt: skip
    if before == after:
        found: Difference | Unavailable = Unavailable(f"all verdicts are of one version: {before or 'none is named'}")
    else:
        found = difference(rows, error=error, pass_rates=query.metric is None)
    return PlaceComparison(key=key, before=before, after=after, found=found)


def _value(verdict: ComparedVerdict, query: ComparisonQuery) -> float | None:
    if query.metric is not None:
        return verdict.value
    return None if verdict.passed is None else float(verdict.passed)


def _version(verdict: ComparedVerdict, query: ComparisonQuery) -> str:
    known = {"release": verdict.release, "prompt": verdict.prompt, "rubric_version": verdict.rubric_version}
    return known.get(query.by) or ""


def _versions(verdicts: Sequence[ComparedVerdict], query: ComparisonQuery) -> tuple[str, str]:
    """The two that are asked for; of those that are not, the last that began, and the one before it."""
    began: dict[str, int] = {}
    for verdict in verdicts:
        if version := _version(verdict, query):
            began[version] = min(verdict.closed_ns, began.get(version, verdict.closed_ns))
    order = sorted(began, key=began.__getitem__)
    after = query.b if query.b is not None else next((v for v in reversed(order) if v != query.a), query.a or "")
    earlier = [version for version in order if version != after]
    return (query.a if query.a is not None else earlier[-1] if earlier else after), after


def _side(verdict: ComparedVerdict, query: ComparisonQuery, before: str, after: str) -> bool | None:
    if query.by == "time":
        return verdict.closed_ns >= query.split_ns
    version = _version(verdict, query)
    return True if version == after else False if version == before else None


def _cluster(verdict: ComparedVerdict, query: ComparisonQuery) -> str | None:
    return {"session": verdict.session, "user": verdict.user, "none": None}[query.cluster]


def _strata(used: Sequence[tuple[ComparedVerdict, bool]], query: ComparisonQuery) -> Mapping[str | None, str]:
    """The stratum of each name."""
    counted = Counter((verdict.name, side) for verdict, side in used)
    enough = {
        name for name, _ in counted
        if query.within == "name" and min(counted[name, True], counted[name, False]) >= _LEAST_IN_STRATUM
    }  # fmt: skip
    return {name: name or "" if name in enough else "" for name, _ in counted}

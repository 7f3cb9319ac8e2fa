"""Figures of a window's verdicts other than the pass ratio, computed once a look, from a copy, off the event loop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.scoring.alerts.condition import VIOLATION
from sidejudge.scoring.rubrics.workflow import CHECKS, SIDES, habits
from sidejudge.scoring.statistics.estimate import Estimate, MeanEstimate, estimate, from_sums, mean_estimate
from sidejudge.scoring.verdict.rubric import Rubric

from .observation import Observation, SliceFirst
from .windows import HeldObservation

LIMITED_SHARE: Final = "limited_share"
"""The dimension of the shares with a limit, among those by which traffic is counted; no configured one is named so."""
_WORKFLOW = frozenset((*SIDES, *CHECKS))


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedWindow:
    """The watched parts of a rubric: the metrics that can block, and the acceptable bound of each metric with bands.

    ``on_average`` are the bounds that a mean can both keep and miss. Where only the best value is acceptable, one
    failure in a thousand puts the mean below it, and the pass ratio limits failures. Where the worst value is
    acceptable, as for a sign, no mean is below it. ``version`` is that of the rubric; verdicts by another do not count.
    """

    blocking: tuple[str, ...] = ()
    acceptable: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    on_average: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    workflow: bool = False
    version: str = ""

    @classmethod
    def of(cls, rubric: Rubric) -> WatchedWindow:
        """The watched parts of this rubric."""
        metrics = [(criterion.metric, criterion) for criterion in rubric.criteria]
        acceptable = {
            metric.id: (metric.bands.acceptable, metric.bands.higher_is_better)
            for metric, _ in metrics
            if metric.bands is not None
        }
        return cls(
            blocking=tuple(metric.id for metric, c in metrics if c.blocker or c.prerequisite),
            acceptable=acceptable,
            on_average={
                metric.id: acceptable[metric.id]
                for metric, _ in metrics
                if metric.bands is not None and metric.bands.acceptable not in metric.bounds
            },
            workflow=rubric.checks_scenario,
            version=rubric.version,
        )


def keeps_to_scenario(metrics: Iterable[tuple[str, float]], *, signs: bool = False) -> bool | None:
    """Whether a run kept to its scenario in everything; None where nothing of it was checked.

    ``signs``: also in what most runs do. Such a departure is no violation, but the first sign of a drift.
    """
    checked = [value for name, value in metrics if name in _WORKFLOW or (signs and name == habits.id)]
    return min(checked) >= 1.0 if checked else None


def limited_shares(seen: Observation, watched: WatchedWindow) -> Iterator[SliceFirst]:
    """What a decided verdict adds to the shares with a limit: violations, and of each metric that blocks its hits."""
    if seen.passed is None:
        return
    for metric in watched.blocking:
        yield SliceFirst(LIMITED_SHARE, metric, metric not in seen.blockers, seen.weight)
    kept = keeps_to_scenario(seen.metrics.items()) if watched.workflow else None
    if kept is not None:
        yield SliceFirst(LIMITED_SHARE, VIOLATION, kept, seen.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Shares whose *failures* are the events, and means, by metric. ``keeping`` counts departures from signs too."""

    blocked: Mapping[str, Estimate] = field(default_factory=dict)
    means: Mapping[str, MeanEstimate] = field(default_factory=dict)
    violating: Estimate | None = None
    keeping: Estimate | None = None
    judge_failed: Estimate | None = None


def details(members: Sequence[HeldObservation], watched: WatchedWindow, design_effect: float = 1.0) -> Details:
    """The details of one window; shares of traffic and means have the design effect of its pass ratio."""
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in watched.on_average}
    followed: dict[bool, list[tuple[bool, float]]] = {False: [], True: []}
    for held in members:
        for name, value in zip(held.metrics, held.values, strict=True):
            if name in values:
                values[name].append((value, held.weight))
        for signs, runs in followed.items() if watched.workflow else ():
            kept = keeps_to_scenario(zip(held.metrics, held.values, strict=True), signs=signs)
            if kept is not None:
                runs.append((kept, held.weight))
    means = {name: mean_estimate(pairs, design_effect=design_effect) for name, pairs in values.items()}
    return Details(
        blocked=_blocked(members, watched.blocking, design_effect),
        means={name: reported for name, reported in means.items() if reported is not None},
        violating=estimate(followed[False], design_effect=design_effect),
        keeping=estimate(followed[True], design_effect=design_effect),
        # Of verdicts, not of traffic: what the judge fails at is what it was given.
        judge_failed=estimate((not held.judge_failed, 1.0) for held in members),
    )


def _blocked(members: Iterable[HeldObservation], blocking: Sequence[str], design_effect: float) -> dict[str, Estimate]:
    decided = [held for held in members if held.passed is not None]
    weight = math.fsum(held.weight for held in decided)
    squared = math.fsum(held.weight * held.weight for held in decided)
    found = {}
    for metric in blocking:
        hit = [held.weight for held in decided if metric in held.blockers]
        reported = from_sums(
            n=len(decided), failures=len(hit), weight=weight, failed_weight=math.fsum(hit), squared_weight=squared,
            design_effect=design_effect,
        )  # fmt: skip
        if reported is not None:
            found[metric] = reported
    return found

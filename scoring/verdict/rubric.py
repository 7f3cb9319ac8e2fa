"""Rubric: the metrics of a judgement, their weights, and the blockers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.result.result import Bands, Blocker, Method, Result
from sidejudge.scoring.trace.notebook import table_html

_VERSION_DIGITS = 8


def _as_it_is(value: float) -> float:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A metric's part in a rubric.

    ``weight`` is its share of the composite (0: reported, not weighed). A ``prerequisite`` that is not 1 makes the
    others not applicable and the composite invalid. ``component`` maps the value to the [0, 1] that is weighed.
    """

    metric: Metric
    weight: float = 0.0
    prerequisite: bool = False
    blocker: Blocker | None = None
    component: Callable[[float], float] = _as_it_is


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """A rubric of the seeds. ``scale`` is the composite's upper end; ``pass_mark`` None means ``passes`` alone decides.

    ``passes`` gets the composite and the results and returns whether the case passes, beyond the pass mark; ``None``
    when what it needs is unknown and nothing has failed yet, which leaves the verdict incomplete. ``breached`` names
    the metrics any of which fails the case alone, so that what is unknown of the others changes nothing: without a
    composite they block, as blockers do. ``detail`` derives top-level fields of the verdict from the case, the
    composite and the results (the workflow result in its seed's shape). ``violations`` names the results' departures
    from the case's scenario; None: it uses no scenario. ``good_mark`` is the composite that is rated *good*, None:
    derived. ``opt_in`` are criteria that a configuration may add; they are not measured.
    """

    id: str
    title: str
    source: str
    formula: str
    criteria: tuple[Criterion, ...]
    pass_mark: float | None
    scale: float = 1.0
    min_coverage: float = 0.90
    passes: Callable[[float, Mapping[str, Result]], bool | None] | None = None
    breached: Callable[[Mapping[str, Result]], tuple[str, ...]] | None = None
    detail: Callable[[Case, float | None, Mapping[str, Result]], Mapping[str, object]] | None = None
    violations: Callable[[Mapping[str, Result]], tuple[str, ...]] | None = None
    good_mark: float | None = None
    opt_in: tuple[Criterion, ...] = ()

    def __post_init__(self) -> None:
        total = sum(criterion.weight for criterion in self.criteria)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"weights of rubric {self.id!r} sum to {total}, not to 1")

    @cached_property
    def version(self) -> str:
        """``qa@3f9c2a71``: the digits change when anything changes that can change a number."""
        stated = repr(
            (
                self.id, self.formula, self.pass_mark, self.scale, self.min_coverage,
                [
                    (c.metric.id, c.metric.formula, c.metric.bands, c.weight, c.prerequisite, c.blocker)
                    for c in self.criteria
                ],
            )
        )  # fmt: skip
        return f"{self.id}@{hashlib.sha256(stated.encode()).hexdigest()[:_VERSION_DIGITS]}"

    def _repr_html_(self) -> str:
        passes = "by its own conditions" if self.pass_mark is None else f"from {self.pass_mark:g} of {self.scale:g}"
        rows = (
            (
                each.metric.id, f"{each.weight:g}", each.metric.bands.describe() if each.metric.bands else "",
                each.blocker.describe() if each.blocker else "",
                each.metric.meaning,
            )
            for each in self.criteria
        )  # fmt: skip
        title = f"<b>{escape(self.id)}</b> {escape(self.title)}: passes {passes}"
        return table_html(title, ("metric", "weight", "bands", "blocker", "meaning"), rows)

    @property
    def checks_scenario(self) -> bool:
        """Whether it compares a case with a scenario."""
        return self.violations is not None

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """Its metrics, in order."""
        return tuple(criterion.metric for criterion in self.criteria)

    @cached_property
    def metric_ids(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(metric.id for metric in self.metrics)

    @cached_property
    def weighed(self) -> tuple[Criterion, ...]:
        """The criteria with a weight in the composite."""
        return tuple(criterion for criterion in self.criteria if criterion.weight)

    @cached_property
    def prerequisites(self) -> tuple[Criterion, ...]:
        """The criteria that must be 1 for the others to apply."""
        return tuple(criterion for criterion in self.criteria if criterion.prerequisite)

    @cached_property
    def blocking(self) -> tuple[tuple[Criterion, Blocker], ...]:
        """The criteria that may block, each with its blocker."""
        return tuple((criterion, criterion.blocker) for criterion in self.criteria if criterion.blocker)

    @cached_property
    def bands(self) -> Bands | None:
        """Bands of the composite: a case at the lower bound of *good* (or *acceptable*) in every metric."""
        weighed = [(c.metric.bands, c) for c in self.weighed]
        if self.pass_mark is None or any(bands is None for bands, _ in weighed):
            return None
        good = self.good_mark
        if good is None:
            good = self.scale * sum(c.component(bands.good) * c.weight for bands, c in weighed if bands)
        return Bands((("good", max(round(good, 9), self.pass_mark)), ("acceptable", self.pass_mark)), "fail")

    def with_overrides(self, *, pass_mark: float | None = None, min_coverage: float | None = None) -> Rubric:
        """The same rubric with the configuration's overrides, which change its version."""
        return replace(
            self,
            pass_mark=self.pass_mark if pass_mark is None else pass_mark,
            min_coverage=self.min_coverage if min_coverage is None else min_coverage,
        )

    def with_embeddings(self, model: str) -> Rubric:
        """The same rubric with the cosines of this embedding model, wherever embeddings may answer.

        The model's name becomes part of these metrics' formulas, and so of the version: another model, other numbers.
        """
        return replace(
            self,
            criteria=tuple(_by(model, criterion) for criterion in self.criteria),
            opt_in=tuple(_by(model, criterion) for criterion in self.opt_in),
        )


def all_criteria(rubric: Rubric) -> tuple[Criterion, ...]:
    """The criteria of a rubric, followed by the ones that a configuration may add."""
    return (*rubric.criteria, *rubric.opt_in)


def _by(model: str, criterion: Criterion) -> Criterion:
    metric = criterion.metric
    if Method.EMBEDDING not in metric.methods:
        return criterion
    return replace(criterion, metric=replace(metric, formula=f"{metric.formula}; embedding: {model}"))


def weights_in_words(criteria: Iterable[Criterion]) -> str:
    """The weighted sum as a formula: ``0.70 × accuracy + 0.30 × gap``."""
    return " + ".join(f"{each.weight:.2f} × {each.metric.id}" for each in criteria if each.weight)


def derived_pass_mark(*criteria: Criterion) -> float:
    """The composite of a case at the lower bound of every *acceptable* band (rubrics §1.6)."""
    return round(sum(c.metric.bands.acceptable * c.weight for c in criteria if c.weight and c.metric.bands), 9)

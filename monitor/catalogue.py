"""Catalogue: every metric of every rubric, for people and for programs, and the rubrics as configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scoring.rubric import Criterion, Rubric
from scoring.rubrics import RUBRICS

from .config import Config


@dataclass(frozen=True, slots=True)
class Card:
    """A metric's part in one rubric: what it means, how it is computed, and what it does to the verdict."""

    rubric: Rubric
    criterion: Criterion

    @property
    def id(self) -> str:
        return self.criterion.metric.id

    @property
    def bands(self) -> str:
        bands = self.criterion.metric.bands
        return bands.describe() if bands is not None else "-"

    @property
    def blocker(self) -> str:
        blocker = self.criterion.blocker
        if blocker is not None:
            return blocker.describe()
        return "must be 1, else the composite is invalid" if self.criterion.prerequisite else "-"

    @property
    def range(self) -> str:
        low, high = self.criterion.metric.bounds
        return f"[{low:g}, {high:g}]" if high is not None else f"[{low:g}, ∞)"

    def to_json(self) -> dict[str, object]:
        metric, criterion = self.criterion.metric, self.criterion
        bands, blocker = metric.bands, criterion.blocker
        return {
            "id": metric.id, "rubric": self.rubric.id, "rubric_version": self.rubric.version,
            "title": metric.title, "meaning": metric.meaning, "formula": metric.formula,
            "unit": metric.unit, "bounds": list(metric.bounds), "weight": criterion.weight,
            "bands": None if bands is None else {
                "steps": [list(step) for step in bands.steps], "otherwise": bands.otherwise,
                "higher_is_better": bands.higher_is_better,
            },
            "blocker": None if blocker is None else {
                "effect": blocker.effect.value, "below": blocker.below, "above": blocker.above,
            },
            "prerequisite": criterion.prerequisite, "methods": [method.value for method in metric.methods],
            "undefined": metric.undefined, "source": metric.source,
        }  # fmt: skip


def cards(rubrics: Mapping[str, Rubric] = RUBRICS) -> list[Card]:
    """Every metric in every rubric, in the order of the rubrics' declarations."""
    return [Card(rubric, criterion) for rubric in rubrics.values() for criterion in rubric.criteria]


def configured(config: Config) -> dict[str, Rubric]:
    """The rubrics with what the configuration changes in them."""
    changes = config.rubrics
    return {
        name: rubric.with_overrides(pass_mark=changes[name].pass_mark, min_coverage=changes[name].min_coverage)
        if name in changes
        else rubric
        for name, rubric in RUBRICS.items()
    }

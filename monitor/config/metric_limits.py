"""The section of the configuration on limits of continuous metrics: latency, cost, tokens and graded scores."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema, model_validator

from sidejudge.scoring.case.run_figures import UNITS
from sidejudge.scoring.status.metric_status import APPLICATION, MetricLimit
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria

from .errors import nearest
from .match import Globs
from .section import RubricName, Section, as_number
from .units import bounded_duration

_NAME: Final = re.compile(r"(?P<measure>.+)_(?:(?P<mean>mean)|p(?P<percent>\d{1,2}(?:\.\d{1,2})?))")
_MOST: Final = sys.float_info.max
_FORM: Final = "must be a metric and what of it: `latency_p95`, `cost_p50`, `tokens_p95`, `answer_relevance_mean`"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, or a duration in seconds; ``str`` writes it as the configuration would."""

    value: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.value:g}{self.unit}"


def _amount(value: object) -> object:
    if isinstance(value, Amount):
        return value
    value = as_number(value, (float,))
    if isinstance(value, str):
        return Amount(bounded_duration(value).seconds, "s")
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
        raise ValueError(f"must be a number, or a duration such as 5s, got {value!r}")
    return Amount(float(value))


def parse_metric(name: str) -> tuple[str, float | None] | None:
    """The metric and its quantile, None for its mean; None where the name does not end in either.

    >>> parse_metric("latency_p95"), parse_metric("accuracy_mean"), parse_metric("accuracy")
    (('latency', 0.95), ('accuracy', None), None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return found["measure"], None if found["mean"] else float(found["percent"]) / 100


LimitField: TypeAlias = Annotated[
    Amount, BeforeValidator(_amount), PlainSerializer(lambda amount: str(amount) if amount.unit else amount.value),
    WithJsonSchema({"type": ["number", "string"], "examples": ["5s", 0.7]}),
]  # fmt: skip


class MetricLimitSection(Section):
    """The limits of one continuous metric. `warning` and `critical` are reached above, the others below a value."""

    metric: str
    """a figure of the application (`latency`, `cost`, `tokens`) or a metric of a rubric, with `_p95` (any percentile)
    or `_mean` (of metrics with an upper end)"""
    rubric: RubricName | None = None
    """whose metric it is; default: every rubric that has it"""
    service: Globs = ()
    """services that it is for; without it: all"""
    warning: LimitField | None = None
    """above it the status is `warning`"""
    critical: LimitField | None = None
    """above it the status is `critical`; more than `warning`"""
    warning_below: LimitField | None = None
    """below it the status is `warning`"""
    critical_below: LimitField | None = None
    """below it the status is `critical`; less than `warning_below`"""

    @property
    def measure(self) -> str:
        """The metric or figure."""
        return self._parsed[0]

    @property
    def quantile(self) -> float | None:
        """In (0, 1); None for the mean."""
        return self._parsed[1]

    @property
    def _parsed(self) -> tuple[str, float | None]:
        found = parse_metric(self.metric)
        if found is None:
            raise ValueError(f"metric {_FORM}, got {self.metric!r}")
        return found

    @model_validator(mode="after")
    def _can_be_watched(self) -> MetricLimitSection:
        measure, quantile = self._parsed
        if quantile is not None and not 0 < quantile < 1:
            raise ValueError(f"metric: a percentile lies between 0 and 100, got {self.metric!r}; the median is _p50")
        above = [each for each in (self.warning, self.critical) if each is not None]
        below = [each for each in (self.warning_below, self.critical_below) if each is not None]
        if bool(above) == bool(below):
            raise ValueError("needs warning or critical (worse above), or warning_below or critical_below, not both")
        if len(above) == 2 and above[1].value <= above[0].value:
            raise ValueError(f"critical ({above[1]}) must be more than warning ({above[0]})")
        if len(below) == 2 and below[1].value >= below[0].value:
            raise ValueError(f"critical_below ({below[1]}) must be less than warning_below ({below[0]})")
        if measure in UNITS and quantile is None:
            raise ValueError(
                f"metric: {measure}_mean has no bound, since one rare value may move a mean without an upper end by "
                f"any amount; limit {measure}_p50 or {measure}_p95"
            )
        if measure in UNITS and self.rubric is not None:
            raise ValueError(f"rubric: {measure} is the application's and no rubric's; take it out")
        for each in (*above, *below):
            if (each.unit == "s") != (measure == "latency") and measure in UNITS:
                wanted = "a duration such as 5s" if measure == "latency" else "a number without a unit"
                raise ValueError(f"a limit of {self.metric} must be {wanted}")
            if measure in UNITS and each.value <= 0:
                raise ValueError(f"a limit of {self.metric} must be more than 0")
        return self

    def limits(self, rubrics: Mapping[str, Rubric]) -> list[MetricLimit]:
        """The limits that it sets, one for each rubric that has the metric.

        Raises:
            ValueError: No rubric has it, or it cannot be limited so.
        """
        below = self.warning is None and self.critical is None
        warning, critical = (self.warning_below, self.critical_below) if below else (self.warning, self.critical)
        common = MetricLimit(
            name=self.metric, measure=self.measure, quantile=self.quantile, below=below,
            warning=None if warning is None else warning.value, critical=None if critical is None else critical.value,
            services=self.service, rubric=APPLICATION, unit=UNITS.get(self.measure, ""),
        )  # fmt: skip
        if self.measure in UNITS:
            return [common]
        known = {
            name: {each.metric.id: each.metric for each in all_criteria(rubric)}
            for name, rubric in rubrics.items()
            if self.rubric in (None, name)
        }
        found = [(name, metrics[self.measure]) for name, metrics in known.items() if self.measure in metrics]
        if not found:
            where = f"rubric {self.rubric} has no" if self.rubric is not None else "no rubric has a"
            names = sorted({*UNITS, *(metric for metrics in known.values() for metric in metrics)})
            near = nearest(self.measure, names)
            hint = f"did you mean {near}?" if near else "'sidejudge metrics' lists them"
            raise ValueError(f"metric: {where} metric {self.measure!r}; {hint}")
        for name, metric in found:
            low, high = metric.bounds
            if self.quantile is None and high is None:
                raise ValueError(
                    f"metric: {self.measure} of {name} has no upper end, so its mean has no bound; limit "
                    f"{self.measure}_p50 or {self.measure}_p95"
                )
            for limit in (warning, critical):
                if limit is not None and limit.unit:
                    raise ValueError(f"a limit of {self.metric} must be a number without a unit")
                if limit is not None and not (low <= limit.value and (high is None or limit.value <= high)):
                    raise ValueError(f"a limit of {self.metric} must lie on its scale, from {low:g} to {high or '∞'}")
        return [replace(common, rubric=name, bounds=metric.bounds, unit=metric.unit) for name, metric in found]


def metric_limits(sections: Sequence[MetricLimitSection], rubrics: Mapping[str, Rubric]) -> tuple[MetricLimit, ...]:
    """All limits of the configuration, under these rubrics.

    Raises:
        ValueError: One cannot be watched, or two are of the same metric and the same services.
    """
    found: list[MetricLimit] = []
    for number, section in enumerate(sections):
        try:
            found += section.limits(rubrics)
        except ValueError as error:
            raise ValueError(f"metrics[{number}].{error}") from None
    if twice := _twice(found):
        raise ValueError(f"metrics: {twice} is limited twice for the same services; keep one of the two")
    return tuple(found)


def _twice(limits: Iterable[MetricLimit]) -> str | None:
    seen = set()
    for limit in limits:
        place = (limit.rubric, limit.name, limit.services)
        if place in seen:
            return limit.name
        seen.add(place)
    return None

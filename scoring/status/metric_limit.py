"""Metric limit: what a continuous metric may be, and how that is asked as a question about a mean of values in [0, 1].

A limit on a quantile is one on a share: the 95th percentile is above 5 s where less than 95 % of the traces take up to
5 s. A limit on a mean of a bounded metric is one on the mean of the values, scaled to [0, 1]. So every limit has a
threshold on the mean of some values in [0, 1], as a pass rate has, and all that is known of pass rates serves it:
weights, clusters, bounds, change detectors, confidence sequences and the budget of false alarms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

APPLICATION: Final = ""
"""The rubric of what is no rubric's: the application's own figures."""
Level: TypeAlias = Literal["warning", "critical"]
_RULE_OF_THREE: Final = 3.0
"""Values that lie beyond a quantile on average before a bound on that side can exist (Hanley and Lippman-Hand 1983)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLimit:
    """A limit on one metric. ``name`` is the configuration's: ``latency_p95``, ``answer_relevance_mean``.

    ``measure`` is the metric or figure, ``rubric`` whose metric it is (``APPLICATION``: a figure of the application).
    ``quantile`` in (0, 1), None for the mean. ``warning`` and ``critical`` are in the metric's ``unit``; with ``below``
    what is lower is worse, otherwise what is higher. ``services`` are globs, none: all. ``bounds`` are the metric's.
    """

    name: str
    measure: str
    rubric: str = APPLICATION
    quantile: float | None = None
    warning: float | None = None
    critical: float | None = None
    below: bool = False
    services: tuple[str, ...] = ()
    bounds: tuple[float, float | None] = (0.0, None)
    unit: str = ""

    def concerns(self, service: str) -> bool:
        """Whether it is a limit of this service."""
        return not self.services or any(fnmatchcase(service, glob) for glob in self.services)

    @property
    def levels(self) -> Iterator[tuple[Level, float]]:
        """The levels with their limits, the worst first."""
        if self.critical is not None:
            yield "critical", self.critical
        if self.warning is not None:
            yield "warning", self.warning

    def kept(self, value: float, limit: float) -> float:
        """How far a value keeps to a limit, in [0, 1]: 1 or 0 for a quantile, the place on the scale for a mean."""
        if self.quantile is not None:
            return float(value >= limit if self.below else value <= limit)
        return self._scaled(value)

    def threshold(self, limit: float) -> float:
        """The mean of ``kept`` below which the limit is passed."""
        if self.quantile is not None:
            return 1 - self.quantile if self.below else self.quantile
        return self._scaled(limit)

    def _scaled(self, value: float) -> float:
        low, high = self.bounds
        if high is None:
            raise ValueError(f"{self.name}: a metric without an upper end has no mean that can be bounded")
        place = min(1.0, max(0.0, (value - low) / (high - low)))
        return place if self.below else 1 - place

    def needed(self, min_samples: float) -> float:
        """The least effective sample size that is enough data."""
        if self.quantile is None:
            return min_samples
        return max(min_samples, _RULE_OF_THREE / min(self.quantile, 1 - self.quantile))

    def text(self, value: float) -> str:
        """A value in its unit, for people."""
        if self.unit == "seconds":
            return f"{value:.3g} s"
        return f"${value:.3g}" if self.unit == "US dollars" else f"{value:.4g}"

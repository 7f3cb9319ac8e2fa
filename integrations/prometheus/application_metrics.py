"""Counters of the application itself: its traces by version, their latency, and tokens and cost by model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sidejudge.scoring.status.service_status import OTHER

from . import families as f
from .collect import MetricValues
from .labels import LabelCap
from .version_metrics import VersionMetrics

_PLACES_PER_CAP: Final = 4
"""Combinations of service, environment and model that are kept apart, per value a label may have."""
_UNKNOWN: Final = "unknown"


class ApplicationMetrics:
    """Counts what traces took. Names of models come from traces, so they are cleaned and capped."""

    def __init__(
        self, counted: MetricValues, versions: VersionMetrics, *,
        bounded: Callable[[str | None, str | None], tuple[str, str]], label_cap: int,
    ) -> None:  # fmt: skip
        self._counter, self._histogram, self._bounded = counted.counter, counted.histogram, bounded
        self._versions = versions
        self._models, self._most = LabelCap("model", label_cap), _PLACES_PER_CAP * label_cap
        self._places: set[tuple[str, str, str]] = set()

    def trace(
        self, service: str | None, environment: str | None, version: str | None, *, weight: float,
        latency_s: float | None, models: Mapping[str, Sequence[float]], drawn: bool, trace_id: str,
    ) -> None:  # fmt: skip
        """Count the first result of a trace.

        Args:
            service: Where it ran.
            environment: Where it ran.
            version: The application's; None where it names none.
            weight: How many traces it stands for, 1/probability.
            latency_s: Of its root span; None where it is not known.
            models: Of each model, tokens of input, tokens of output and US dollars.
            drawn: Whether it was drawn at random, not kept for its content.
            trace_id: In hex, for the exemplar.
        """
        where = self._bounded(service, environment)
        self._versions.trace(where, version, weight)
        if drawn and latency_s is not None:
            self._histogram(f.APPLICATION_DURATION, *where).observe(latency_s, {"trace_id": trace_id})
        for name, (read, written, usd) in models.items():
            model = self._place(where, self._models.bound(name, _UNKNOWN))
            if read or written:
                self._counter(f.APPLICATION_TOKENS, *where, model, "input").inc(weight * read)
                self._counter(f.APPLICATION_TOKENS, *where, model, "output").inc(weight * written)
            if usd:
                self._counter(f.APPLICATION_COST, *where, model).inc(weight * usd)

    def _place(self, where: tuple[str, str], model: str) -> str:
        place = (*where, model)
        if place not in self._places:
            if len(self._places) >= self._most:
                return OTHER
            self._places.add(place)
        return model

"""Counters of the application itself: its traces by version, their latency, and tokens and cost by model.

Run health: counters of runs, what was found in them and the calls of their tools; gauges of groups of failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.service_status import OTHER

from . import families as f
from .collect import MetricValues, Series
from .labels import Combinations, LabelCap
from .version_metrics import VersionMetrics

_UNKNOWN: Final = "unknown"


class ApplicationMetrics:
    """Counts what traces took. Names of models come from traces, so they are cleaned and capped."""

    def __init__(
        self, counted: MetricValues, versions: VersionMetrics, *,
        bounded: Callable[[str | None, str | None], tuple[str, str]], label_cap: int,
    ) -> None:  # fmt: skip
        self._counter, self._histogram, self._bounded = counted.counter, counted.histogram, bounded
        self._versions = versions
        self._models, self._places = LabelCap("model", label_cap), Combinations(label_cap)

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
            model = self._models.bound(name, _UNKNOWN)
            model = model if self._places.admits(*where, model) else OTHER
            if read or written:
                self._counter(f.APPLICATION_TOKENS, *where, model, "input").inc(weight * read)
                self._counter(f.APPLICATION_TOKENS, *where, model, "output").inc(weight * written)
            if usd:
                self._counter(f.APPLICATION_COST, *where, model).inc(weight * usd)


class RunMetrics:
    """Counts runs and their tool calls. Names of tools come from traces, so they are cleaned and capped."""

    def __init__(self, counted: MetricValues, *, service: Callable[[str | None], str], label_cap: int) -> None:
        self._counter, self._service = counted.counter, service
        self._tools, self._pairs = LabelCap("tool", label_cap), Combinations(label_cap)

    def run(self, service: str | None, metrics: Mapping[str, bool], tools: Mapping[str, Sequence[int]]) -> None:
        """Count a run.

        Args:
            service: Where it ran.
            metrics: Every metric of run_health, and whether it found trouble.
            tools: By tool, how many calls there were and how many of them failed.
        """
        where = self._service(service)
        self._counter(f.RUNS, where).inc()
        for metric, found in metrics.items():
            signs = self._counter(f.RUN_SIGNS, where, metric)  # exported as 0 before it is first found
            if found:
                signs.inc()
        for tool, (calls, failed) in tools.items():
            label = self._tools.bound(tool, _UNKNOWN)
            pair = where, label if self._pairs.admits(where, label) else OTHER
            self._counter(f.TOOL_CALLS, *pair).inc(calls)
            self._counter(f.TOOL_ERRORS, *pair).inc(failed)


MOST: Final = 20
"""Groups that have a series of their own; the others share one for each rubric."""


def failure_gauges(groups: Sequence[FailureGroup], label: Callable[[str, str], str]) -> Iterator[Series]:
    """The gauges of the last day's groups, the largest first; ``label`` makes a value of a label fit to be one."""
    current = [group for group in groups if group.count]
    for group in current[:MOST]:
        yield f.FAILURE_GROUP_VERDICTS, _labels(group, label), float(group.count)
    others = Counter[str]()
    for group in current[MOST:]:
        others[label("rubric", group.rubric)] += group.count
    for rubric, count in others.items():
        yield f.FAILURE_GROUP_VERDICTS, (rubric, OTHER, OTHER), float(count)


def _labels(group: FailureGroup, label: Callable[[str, str], str]) -> tuple[str, str, str]:
    return label("rubric", group.rubric), label("metric", group.metric), group.group

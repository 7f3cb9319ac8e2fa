"""Metrics of the application itself: traces by version, latency, tokens and cost by model, and the health of its runs.

Only the latest versions have a label, so each new deployment gets one. The health of runs is shown by counters of runs,
of findings and of tool calls, and by gauges of groups of failures.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from sidejudge.scoring.lexical.shown_text import clean
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.service_status import OTHER

from . import families as f
from .collect import MetricValues, Series
from .labels import PER_CAP, Combinations, LabelCap, Recent

log = logging.getLogger("sidejudge.metrics")

IDLE_S: Final = 6 * 3600.0
"""Seconds without a trace after which a version may lose its label and series, once another one needs the room.

Longer than what marks of deployments look back, so that a rollback finds its version; and a sender of ever new
versions makes at most ``label_cap`` of them new series in this time.
"""
MOST_JUDGED: Final = 5
"""Versions of a service and environment whose verdicts are counted apart: three series for each rubric."""
JUDGED_IDLE_S: Final = 3600.0
"""Seconds without a verdict after which a version of these may give way to another."""
_JUDGED: Final = (f.VERSION_WEIGHT, f.VERSION_FAILED_WEIGHT, f.VERSION_WEIGHT_SQUARED)


class VersionMetrics:
    """Counts by version. Versions come from traces, so they are cleaned, and only those seen last are kept apart."""

    def __init__(self, counted: MetricValues, *, label_cap: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._counted, self._cap, self._warned, self._clock_s = counted, label_cap, False, clock_s
        self._versions = Recent[str](label_cap, idle_s=IDLE_S, clock_s=clock_s, forgotten=self._forget_version)
        self._places = Recent[tuple[str, str, str]](
            PER_CAP * label_cap, idle_s=IDLE_S, clock_s=clock_s, forgotten=self._forget_place
        )
        self._judged: dict[tuple[str, str], Recent[str]] = {}
        self._rubrics: dict[tuple[str, str, str], set[str]] = {}

    def trace(self, where: tuple[str, str], version: str | None, weight: float) -> None:
        """Count a trace.

        Args:
            where: Label values of its service and environment.
            version: The application's; None where it names none.
            weight: How many traces it stands for, 1/probability.
        """
        self._counted.counter(f.APPLICATION_TRACES, *where, self._label(where, version)).inc(weight)

    def verdict(self, where: tuple[str, str], rubric: str, version: str | None, *, weight: float, passed: bool) -> None:
        """Count a verdict that passed or failed.

        Args:
            where: Label values of its service and environment.
            rubric: Label value of its rubric.
            version: The application's; None where it names none.
            weight: How many traces it stands for, 1/probability.
            passed: Whether it passed.
        """
        label = self._label(where, version)
        if label != OTHER and not self._judged_of(where).admits(label):
            label = OTHER
        if label != OTHER:
            self._rubrics.setdefault((*where, label), set()).add(rubric)
        who = (*where, rubric, label)
        # All series of a version begin together: what is scraped first is of all, and their ratio is right.
        for family, amount in zip(_JUDGED, (weight, 0.0 if passed else weight, weight * weight), strict=True):
            self._counted.counter(family, *who).inc(amount)

    def _judged_of(self, where: tuple[str, str]) -> Recent[str]:
        if where not in self._judged:
            self._judged[where] = Recent(
                MOST_JUDGED, idle_s=JUDGED_IDLE_S, clock_s=self._clock_s,
                forgotten=lambda version: self._forget_verdicts((*where, version)),
            )  # fmt: skip
        return self._judged[where]

    def _label(self, where: tuple[str, str], version: str | None) -> str:
        text = clean(version or _UNKNOWN) or _UNKNOWN
        if text != OTHER and self._versions.admits(text) and self._places.admits((*where, text)):
            return text
        if text != OTHER and not self._warned:
            self._warned = True
            log.warning(
                "label version has no room for %r, so it is counted as %s: more than %d versions, or %d of all "
                "services, were seen within %d hours. Raise metrics.label_cap, or give fewer names",
                text, OTHER, self._cap, PER_CAP * self._cap, IDLE_S // 3600,
            )  # fmt: skip
        return OTHER

    def _forget_verdicts(self, place: tuple[str, str, str]) -> None:
        service, environment, version = place
        for rubric in self._rubrics.pop(place, ()):
            for family in _JUDGED:
                self._counted.remove(family, service, environment, rubric, version)

    def _forget_version(self, version: str) -> None:
        for place in self._places:
            if place[2] == version:
                self._places.forget(place)

    def _forget_place(self, place: tuple[str, str, str]) -> None:
        self._counted.remove(f.APPLICATION_TRACES, *place)
        self._judged_of(place[:2]).forget(place[2])


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

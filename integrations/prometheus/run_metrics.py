"""Counters of run health: runs, what was found in them, and the calls of their tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sidejudge.scoring.status.service_status import OTHER

from . import families as f
from .collect import MetricValues
from .labels import LabelCap

_PAIRS_PER_CAP: Final = 4
"""Combinations of service and tool that are kept apart, per value that a label may have."""


class RunMetrics:
    """Counts runs and their tool calls. Names of tools come from traces, so they are cleaned and capped.

    ``zeros``: what was never found in a service is exported as 0, so that the first time is seen.
    """

    def __init__(
        self, counted: MetricValues, *, service: Callable[[str | None], str], label_cap: int, zeros: bool = True
    ) -> None:
        self._counter, self._service, self._zeros = counted.counter, service, zeros
        self._tools = LabelCap("tool", label_cap)
        self._pairs: set[tuple[str, str]] = set()
        self._most_pairs = _PAIRS_PER_CAP * label_cap

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
            if found or self._zeros:
                self._counter(f.RUN_SIGNS, where, metric).inc(int(found))
        for tool, (calls, failed) in tools.items():
            pair = self._pair(where, tool)
            self._counter(f.TOOL_CALLS, *pair).inc(calls)
            self._counter(f.TOOL_ERRORS, *pair).inc(failed)

    def _pair(self, service: str, tool: str) -> tuple[str, str]:
        pair = service, self._tools.bound(tool, "unknown")
        if pair in self._pairs:
            return pair
        if len(self._pairs) >= self._most_pairs:
            return service, OTHER
        self._pairs.add(pair)
        return pair

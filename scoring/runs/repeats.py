"""Repeats: how much a figure varies over the runs of one benchmark (seed 002 §4.4; rubrics §11)."""

from __future__ import annotations

from collections.abc import Sequence

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.spread import MeanAndDeviation, spread

from .aggregates import Aggregates

MIN_RUNS = 3
REPEATED = ("aggregate_score", "latency_e2e_p95_ms")
"""The figures whose mean and standard deviation are reported."""


def over_runs(runs: Sequence[Aggregates], figure: str) -> MeanAndDeviation | Unavailable:
    """Mean and sample standard deviation (ddof 1) of a figure over at least three runs that all have it."""
    if len(runs) < MIN_RUNS:
        return Unavailable(f"needs at least {MIN_RUNS} runs, there {'is' if len(runs) == 1 else 'are'} {len(runs)}")
    values = []
    for number, run in enumerate(runs, 1):
        value = run.figures[figure]
        if isinstance(value, Unavailable):
            return Unavailable(f"run {number} of {len(runs)} has none: {value.reason}")
        values.append(float(value))
    return spread(values) or Unavailable(f"needs at least {MIN_RUNS} runs")

"""Writes docs/reference/metrics-coverage.md: how often bounds of means and percentiles hold, and how limits alarm.

``python -m tests.simulation.metric_tables``; some minutes on two processors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.betting import Gamblers, Sampled, evidence_below, mean_bounds
from sidejudge.scoring.statistics.cusum import Cusum
from sidejudge.scoring.statistics.design_effect import DesignEffect
from sidejudge.scoring.statistics.estimate import mean_estimate
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED
from sidejudge.scoring.statistics.quantile import Measured, quantile
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.trace.time_units import HOUR_NS, MONTH_NS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics-coverage.md"
REPEATS = 1_000
SIZES = (60, 240)
RATES = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
_KINDS = ("independent", "clusters of 5", "rules")
_BASE = 0.2
"""Sampling rate of what no rule keeps."""
MONTHS = 100
LATENCY = MetricLimit(name="latency_p95", measure="latency", quantile=0.95, warning=5.0)
GRADE = MetricLimit(name="grade_mean", measure="grade", warning=0.7, below=True, bounds=(0.0, 1.0))


class Cell(NamedTuple):
    """What is covered: a statistic of values with a share ``rate`` of good ones, drawn in one way."""

    statistic: str
    rate: float
    kind: str
    size: int


def graded(rng: random.Random, rate: float) -> float:
    """An answer's grade: good ones about 0.9, poor ones about 0.3; the mean is 0.3 + 0.6 · rate."""
    return min(1.0, max(0.0, rng.uniform(0.8, 1.0) if rng.random() < rate else rng.uniform(0.2, 0.4)))


def slow(rng: random.Random, factor: float = 1.0) -> float:
    """Seconds, log-normal with σ = 0.8: the median is the factor, the 95th percentile 3.73 times as much."""
    return factor * math.exp(rng.gauss(0.0, 0.8))


def drawn(rng: random.Random, value: Callable[[random.Random], float], kind: str, size: int) -> list[Measured]:
    """So many values; under rules each that is below 0.5 or above 3 is kept, a fifth of the rest."""
    found: list[Measured] = []
    number = 0
    while len(found) < size:
        held = found[-1].value if kind == "clusters of 5" and number % 5 else value(rng)
        rare = kind == "rules" and (held < 0.5 or held > 3.0)
        probability = 1.0 if kind != "rules" or rare else _BASE
        if rng.random() < probability:
            found.append(Measured(held, 1 / probability, str(number // 5) if kind == "clusters of 5" else None))
        number += 1
    return found


def covered(cell: Cell) -> tuple[float, float, float]:
    """The share of repetitions whose interval holds the truth, that of a normal interval, and the mean width.

    Whether an interval holds a value is asked of the evidence against it; whole intervals are made for the width alone.
    """
    rng = random.Random(repr(cell))  # a simulation
    inside = normal = 0
    widths: list[float] = []
    of_means = cell.statistic == "mean"
    truth = 0.3 + 0.6 * cell.rate if of_means else math.exp(0.8 * _NORMAL[cell.rate])
    largest = _largest(cell)
    for number in range(REPEATS):
        if of_means:
            rows = drawn(rng, lambda rng: graded(rng, cell.rate), cell.kind, cell.size)
            plain = mean_estimate(((row.value, row.weight) for row in rows), z=Z_95_TWO_SIDED)
            normal += plain is not None and plain.lower <= truth <= plain.upper
            inside += not _refuted(rows, [row.value for row in rows], truth, largest)
            inside -= _refuted(rows, [1 - row.value for row in rows], 1 - truth, largest)
        else:
            rows = drawn(rng, slow, cell.kind, cell.size)
            above = min((row.value for row in rows if row.value > truth), default=None)
            below = max((row.value for row in rows if row.value < truth), default=None)
            inside += above is None or not _refuted(rows, [row.value <= above for row in rows], cell.rate, largest)
            inside -= below is not None and _refuted(rows, [row.value >= below for row in rows], 1 - cell.rate, largest)
        if number % 50 == 0:
            widths += _width(rows, cell, truth)
    return inside / REPEATS, normal / REPEATS, sum(widths) / len(widths) if widths else math.inf


def _largest(cell: Cell) -> float:
    """The largest weight of this traffic, which a running monitor knows."""
    return 1 / _BASE if cell.kind == "rules" else 1.0


def _refuted(rows: list[Measured], values: list[float], mean: float, largest: float) -> bool:
    """Whether the values show that their mean is below this one."""
    gamblers = Gamblers(((row.weight, row.cluster) for row in rows), largest=largest)
    return evidence_below(gamblers.bets(values), mean) >= 2 / 0.05


def _width(rows: list[Measured], cell: Cell, truth: float) -> list[float]:
    if cell.statistic == "mean":
        low, high = mean_bounds((Sampled(*row) for row in rows), largest=_largest(cell))
        return [high - low]
    found = quantile(rows, cell.rate, largest=_largest(cell))
    if found is None or found.lower is None or found.upper is None:
        return []
    return [(found.upper - found.lower) / truth]


_NORMAL = {
    0.01: -2.3263478740408408, 0.05: -1.6448536269514722, 0.2: -0.8416212335729143, 0.5: 0.0, 0.8: 0.8416212335729143,
    0.95: 1.6448536269514722, 0.99: 2.3263478740408408,
}  # fmt: skip
"""Standard normal quantiles."""


def cells() -> Iterator[Cell]:
    """Means at each rate, percentiles of each rank, drawn in each way, in each size."""
    for statistic, rates in (("mean", RATES), ("percentile", tuple(_NORMAL))):
        for kind in _KINDS:
            for size in SIZES:
                for rate in rates:
                    yield Cell(statistic, rate, kind, size)


class Story(NamedTuple):
    """A month of one limit at so many values an hour, in clusters of a size; after it, something changes."""

    name: str
    per_hour: float
    cluster: int


def alarms(story: Story) -> tuple[float, float, float]:
    """False alarms a month of one of one series, their standard error, and the median hours until a change shows."""
    limit = LATENCY if story.name.startswith("latency") else GRADE
    found, delays = [], []
    for month in range(MONTHS):
        rng = random.Random(f"{story}{month}")  # a simulation
        found.append(_month(limit, story, rng, changed=False)[0])
    for month in range(MONTHS // 2):
        rng = random.Random(f"changed {story}{month}")  # a simulation
        delays.append(_month(limit, story, rng, changed=True)[1])
    mean = sum(found) / len(found)
    spread = math.sqrt(sum((each - mean) ** 2 for each in found) / (len(found) - 1) / len(found))
    return mean, spread, sorted(delays)[len(delays) // 2]


def _month(limit: MetricLimit, story: Story, rng: random.Random, *, changed: bool) -> tuple[int, float]:
    """Alarms in a month, or hours until the first after a change that comes on the second day."""
    declared, threshold = Declaration(metrics=(limit,)), limit.threshold(limit.warning or 0.0)
    cusum, sequence, design = Cusum(), declared.sequence_at((threshold,)), DesignEffect()
    at_h, count, began, before, held = 0.0, 0, 24.0, False, 0.0
    alarms_seen = 0
    while at_h < MONTH_NS / HOUR_NS:
        at_h += rng.expovariate(story.per_hour)
        worse = changed and at_h > began
        if count % story.cluster == 0:
            # At the edge of good: 3.3 % beyond the limit of 5 s, a mean of 0.8; changed: 10 % beyond, a mean of 0.6.
            held = (
                slow(rng, 5 / math.exp(0.8 * (1.2816 if worse else 1.8339))) if limit is LATENCY
                else min(1.0, max(0.0, graded(rng, 0.5 if worse else 5 / 6)))
            )  # fmt: skip
        count += 1
        kept, at_ns = limit.kept(held, limit.warning or 0.0), int(at_h * HOUR_NS)
        cluster = str(count // story.cluster) if story.cluster > 1 else None
        worth = design.add(cluster, passed=kept, weight=1.0)
        chart = declared.metric_chart(threshold, story.per_hour / design.value, 1)
        cusum.add(chart, passed=kept, weight=1.0, at_ns=at_ns, worth=worth)
        sequence.add(passed=kept, weight=1.0, at_ns=at_ns, worth=worth)
        since = cusum.pass_ratio if cusum.alarmed else None
        alarm = (since is not None and since < threshold) or sequence.evidence(threshold) >= 1
        if changed and alarm and at_h > began:
            return 1, at_h - began
        alarms_seen += alarm and not before
        before = alarm
    return alarms_seen, math.inf


def stories() -> Iterator[Story]:
    """Thin and plain traffic, alone and in clusters."""
    for name in ("latency_p95 above 5 s", "mean grade below 0.7"):
        for per_hour in (5.0, 20.0):
            for cluster in (1, 5):
                yield Story(name, per_hour, cluster)


def page() -> str:
    """The page."""
    with ProcessPoolExecutor(max_workers=2) as pool:
        every = list(cells())
        found = dict(zip(every, pool.map(covered, every, chunksize=4), strict=True))
        told = list(stories())
        seen = dict(zip(told, pool.map(alarms, told), strict=True))
    return _HEAD + _coverage(found) + _alarms(seen)


_HEAD = f"""<!-- Generated by `python -m tests.simulation.metric_tables`; changes here are lost. -->
# How good the bounds of continuous metrics are

Simulated with the code that runs. Bounds are promised to hold with 95 % at any look; each figure is the share of
{REPEATS:,} repetitions in which the true value lay within them (its standard error is 0.7 points at 95 %). *Rules*: a
rule keeps every value that is poor, or slow or fast, and a fifth of the rest is drawn. *Clusters*: five values in a
row are the same, as in one session. Sources of the formulas: `scoring/statistics/betting.py` and `quantile.py`.

"""


def _coverage(found: dict[Cell, tuple[float, float, float]]) -> str:
    parts = []
    for statistic, what, rates in (
        ("mean", "Means of graded scores, by the share of good answers", RATES),
        ("percentile", "Percentiles of latency, by rank", tuple(_NORMAL)),
    ):
        rows = [f"## {what}\n", "| drawn | n | " + " | ".join(f"{rate:.0%}" for rate in rates) + " | width |"]
        rows.append("|---|---|" + "---|" * (len(rates) + 1))
        for kind in _KINDS:
            for size in SIZES:
                of = [found[Cell(statistic, rate, kind, size)] for rate in rates]
                middle = of[rates.index(0.5)][2]
                shown = " | ".join(f"{inside:.1%}" for inside, _, _ in of)
                rows.append(f"| {kind} | {size} | {shown} | {middle:.2f} |".replace("inf", "–"))
                if statistic == "mean":
                    plain = " | ".join(f"{normal:.1%}" for _, normal, _ in of)
                    rows.append(f"| the same by a normal approximation | {size} | {plain} | |")
        note = (
            "The width is the mean one at 50 %, on the scale from 0 to 1.\n" if statistic == "mean"
            else "The width is the mean one of the median, as a share of it, where both bounds exist. A bound that the "
            "values do not show is absent and cannot be wrong.\n"
        )  # fmt: skip
        parts.append("\n".join([*rows, "", note]))
    return "\n".join(parts) + "\n"


_ALARMS = f"""False alarms a month of one limit with the whole budget of one a month, over {MONTHS} months at the worst
that still counts as good (3.3 % of the traces beyond the limit; a mean grade of 0.8), and the median time until a
change is noticed (10 % beyond the limit; a mean grade of 0.6).
"""


def _alarms(seen: dict[Story, tuple[float, float, float]]) -> str:
    rows = [
        "## Alarms in mode `adaptive`\n",
        _ALARMS,
        "| limit | values an hour | clusters of | false alarms a month | noticed after |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for story, (mean, error, delay) in seen.items():
        rows.append(
            f"| {story.name} | {story.per_hour:g} | {story.cluster} | {mean:.2f} ± {error:.2f} | {delay:.1f} h |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

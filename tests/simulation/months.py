"""Many months at once: verdicts as columns of arrays, one column a month, and what each mode makes of them.

The detectors are those of ``scoring.statistics``, written once more for arrays; ``test_months.py`` holds both against
each other. Windows, estimates and looks are as in ``simulated.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.alerts.declaration import Declaration
from scoring.statistics.baseline import MEMORY, PRIOR
from scoring.statistics.cusum import Chart
from scoring.statistics.interval import Z_95_ONE_SIDED
from scoring.statistics.sequence import BETS

HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """One kind of service. ``size`` verdicts a cluster that agree; ``daily``: ten times as much at noon as at night.

    ``missing``: of the failures this share is never judged. ``forced``: failures are kept whatever the rate (weight 1)
    by half, the rest of the traffic at a twentieth (weight 20).
    """

    per_hour: float
    size: int = 1
    daily: bool = False
    missing: float = 0.0
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Months:
    """Verdicts of many months, each field (months, verdicts). Times are in hours; infinite ones are padding."""

    at_h: np.ndarray
    passed: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray
    hours: float


def drawn(rng: np.random.Generator, traffic: Traffic, *, months: int, hours: float, good: float,
          bad: float | None = None, from_h: float = 0.0) -> Months:  # fmt: skip
    """Months of a service that passes at ``good``, from ``from_h`` on at ``bad``. Clusters follow each other."""
    raw = traffic.per_hour * (20 if traffic.forced else 1)
    clusters = int(raw / traffic.size * hours + 6 * np.sqrt(raw / traffic.size * hours) + 10)
    at = np.cumsum(rng.exponential(traffic.size / raw, (months, clusters)), axis=1)
    if traffic.daily:
        at = _by_day(at, hours)
    at = np.repeat(at, traffic.size, axis=1)
    ratio = np.where((bad is not None) & (at >= from_h), good if bad is None else bad, good)
    passed = np.repeat(rng.random((months, clusters)), traffic.size, axis=1) < ratio
    cluster = np.repeat(np.broadcast_to(np.arange(clusters), (months, clusters)), traffic.size, axis=1)
    weight = np.ones(at.shape)
    kept = at < hours
    if traffic.forced:
        forced = ~passed & (rng.random(at.shape) < 0.5)
        weight = np.where(forced, 1.0, 20.0)
        kept &= forced | (rng.random(at.shape) < 0.05)
    if traffic.missing:
        kept &= passed | (rng.random(at.shape) >= traffic.missing)
    order = np.argsort(~kept, axis=1, kind="stable")[:, : int(kept.sum(axis=1).max())]
    at, passed, weight, cluster, kept = (
        np.take_along_axis(x, order, axis=1) for x in (at, passed, weight, cluster, kept)
    )
    return Months(at_h=np.where(kept, at, np.inf), passed=passed, weight=weight, cluster=cluster, hours=hours)


def _by_day(at: np.ndarray, hours: float) -> np.ndarray:
    """The same number a day, ten times as dense at noon as at midnight."""
    grid = np.linspace(0, hours + 48, int((hours + 48) * 4))
    density = 1 + 9 * np.sin(np.pi * (grid % 24) / 24) ** 2
    elapsed = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))]) / 5.5
    return np.interp(at, elapsed, grid, right=np.inf)


def worths(months: Months) -> tuple[np.ndarray, np.ndarray]:
    """What each verdict is worth, and the design effect before it, as ``DesignEffect`` has it."""
    failed = np.where(months.passed, 0.0, months.weight)
    known = np.isfinite(months.at_h)
    own, bad = np.where(known, months.weight, 0.0), np.where(known, failed, 0.0)
    new = np.concatenate([np.ones((len(own), 1), bool), months.cluster[:, 1:] != months.cluster[:, :-1]], axis=1)
    begin = np.maximum.accumulate(np.where(new, np.arange(own.shape[1]), 0), axis=1)

    def within(x: np.ndarray) -> np.ndarray:
        total = np.cumsum(x, axis=1) - x
        return total - np.take_along_axis(total, begin, axis=1)

    w, f = within(own), within(bad)
    parts = {
        "weight": own, "failed": bad, "own": own**2, "own_failed": bad**2, "together": own * (2 * w + own),
        "together_failed": (f + bad) * (w + own) - f * w, "failed_together": bad * (2 * f + bad),
        "failing": ((bad > 0) & (f == 0)).astype(float),
    }  # fmt: skip
    s = {name: np.cumsum(x, axis=1) - x for name, x in parts.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.where(s["own"] > 0, s["together"] / s["own"], 1.0)
        q = s["failed"] / s["weight"]
        apart = (1 - 2 * q) * s["own_failed"] + q * q * s["own"]
        found = (s["failed_together"] - 2 * q * s["together_failed"] + q * q * s["together"]) / apart
        value = np.maximum(1.0, (found * s["failing"] + np.minimum(worst, 5) * 3) / (s["failing"] + 3))
        effect = np.where(worst <= 1, 1.0, np.where(apart > 0, value, np.minimum(worst, 5)))
    worth = 1 / effect
    cap = 3 * np.maximum(1.0, worst / effect)
    return np.clip(np.minimum(worth, cap - within(worth)), 0, None), effect


def baselines(months: Months, worth: np.ndarray, expected: float) -> np.ndarray:
    """Before each verdict: what ``Baseline`` takes for usual."""
    share = np.where(np.isfinite(months.at_h), months.weight / months.weight.max(), 0.0)
    counts = worth * share
    rows, n = counts.shape
    weight, squared, failed = np.full(rows, PRIOR), np.full(rows, PRIOR), np.full(rows, PRIOR * (1 - expected))
    found = np.empty((rows, n))
    for k in range(n):
        bad = failed / weight
        found[:, k] = 1 - bad - np.sqrt(np.maximum(bad * (1 - bad), 1e-4) * squared) / weight
        kept = np.where(weight >= MEMORY, 1 - counts[:, k] / MEMORY, 1.0)
        weight = weight * kept + counts[:, k]
        failed = failed * kept + counts[:, k] * ~months.passed[:, k]
        squared = squared * kept**2 + counts[:, k] * share[:, k]
    return found


def cusum(
    months: Months, charts: Sequence[Chart], worth: np.ndarray, which: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """After each verdict: whether the chart is alarmed, and the weighted pass ratio since its score was 0.

    ``which`` of the charts is in force at each verdict; without it the first.
    """
    which = np.zeros(months.passed.shape, int) if which is None else which
    uneven = len(np.unique(months.weight)) > 1
    share = months.weight / months.weight.max()
    limits = np.array([chart.limit_any if uneven else chart.limit for chart in charts])
    bets, goods = (np.array([getattr(chart, name) for chart in charts]) for name in ("bet", "good"))
    mosts = limits + np.log1p(bets * goods)
    rows, n = months.passed.shape
    score, alarmed, weight, failed = (np.zeros(rows) for _ in range(4))
    alarms, ratios = np.zeros((rows, n), bool), np.ones((rows, n))
    rises = worth * np.log1p(np.maximum(-0.99, bets[which] * share * (goods[which] - months.passed)))
    rises = np.where(np.isfinite(months.at_h), rises, 0.0)
    for k in range(n):
        limit, most = limits[which[:, k]], mosts[which[:, k]]
        score = np.minimum(np.maximum(0.0, score + rises[:, k]), most)
        calm = score <= 1e-9
        weight = np.where(calm, 0.0, weight + share[:, k])
        failed = np.where(calm, 0.0, failed + share[:, k] * ~months.passed[:, k])
        alarmed = np.where(calm, 0.0, np.maximum(alarmed, score >= limit - 1e-9))
        alarms[:, k] = alarmed > 0
        ratios[:, k] = 1 - failed / np.maximum(weight, 1e-300)
    return alarms, ratios


def below(months: Months, level: float, *, error: float, period_h: float, worth: np.ndarray) -> np.ndarray:
    """After each verdict: whether a confidence sequence shows that the ratio is below the level."""
    rows, n = months.passed.shape
    share = months.weight / months.weight.max()
    wealth = np.zeros((len(BETS), rows))
    bets = np.array(BETS)[:, None]
    income = np.diff(np.where(np.isfinite(months.at_h), months.at_h, 1e12), axis=1, prepend=months.at_h[:, :1])
    income = np.minimum(1.0, income / period_h)
    found = np.zeros((rows, n), bool)
    for k in range(n):
        stake = bets * share[:, k]
        factor = np.where(months.passed[:, k], 1 - stake, 1 + stake * level / (1 - level)) ** worth[:, k]
        wealth = np.where(
            np.isfinite(months.at_h[:, k]), np.minimum(100 / error, wealth * factor + income[:, k]), wealth
        )
        found[:, k] = wealth.mean(axis=0) * error >= 1
    return found


def looks(declared: Declaration, months: Months) -> np.ndarray:
    """The times of the looks, in hours."""
    step = declared.look_ns / HOUR_NS
    return np.arange(1, int(months.hours / step) + 1) * step


def at_looks(months: Months, times_h: np.ndarray, after: np.ndarray, before: float) -> Iterator[np.ndarray]:
    """Month by month, what held after the last verdict before each look."""
    for at, column in zip(months.at_h, after, strict=True):
        place = np.searchsorted(at, times_h, side="right") - 1
        yield np.where(place >= 0, column[np.maximum(place, 0)], before)


def windows(
    months: Months, times_h: np.ndarray, window_h: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Month by month, at each look: effective n (Kish), failures, pass ratio."""
    for at, passed, weight in zip(months.at_h, months.passed, months.weight, strict=True):
        known = np.isfinite(at)
        w, failed = np.where(known, weight, 0.0), np.where(known, ~passed, False)
        sums = [np.concatenate([[0.0], np.cumsum(x)]) for x in (w, w * w, w * failed, failed)]
        begin, end = (np.searchsorted(at, t, side="right") for t in (times_h - window_h, times_h))
        weight_, squared, lost, failures = (x[end] - x[begin] for x in sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            yield (
                np.where(squared > 0, weight_**2 / squared, 0.0),
                failures,
                np.where(weight_ > 0, 1 - lost / weight_, 1.0),
            )


def bound_levels(
    declared: Declaration, months: Months, times_h: np.ndarray, effect: float = 1.0
) -> Iterator[np.ndarray]:
    """Modes ``bound`` and ``point``, month by month: -1 too little, 0 healthy, 1 warning, 2 critical, look by look."""
    policy, z = declared.policy, Z_95_ONE_SIDED
    for n, failures, ratio in windows(months, times_h, declared.window_ns / HOUR_NS):
        n_ = np.maximum(n / effect, 1e-9)
        upper = (n_ * ratio + z * z / 2 + z * np.sqrt(n_ * ratio * (1 - ratio) + z * z / 4)) / (n_ + z * z)
        compared = ratio if policy.mode == "point" else upper
        bad = (compared < policy.thresholds.warning) & ((policy.mode == "point") | (failures >= policy.min_failures))
        worse = bad & (compared < policy.thresholds.critical)
        yield np.where(n_ < policy.min_samples, -1, bad.astype(int) + worse)


def settled(declared: Declaration, levels: np.ndarray) -> np.ndarray:
    """The status in force: entered after ``needed`` of ``looks`` looks, left after as many good ones and the hold.

    The margin of a recovery is left out, which makes statuses end and begin again a little more often.
    """
    rule = declared.rule
    total = np.concatenate([[0], np.cumsum(levels >= 1)])
    ends = np.arange(1, len(levels) + 1)
    bad = total[ends] - total[np.maximum(0, ends - rule.looks)] >= rule.needed
    good = total[ends] - total[np.maximum(0, ends - rule.needed)] == 0
    hold = max(1, round(rule.hold_ns / declared.look_ns))
    force, place = np.zeros(len(levels), int), 0
    rises, calms = np.flatnonzero(bad), np.flatnonzero(good)
    while True:
        k = np.searchsorted(rises, place)
        if k == len(rises):
            break
        begin = rises[k]
        m = np.searchsorted(calms, begin + hold)
        end = calms[m] if m < len(calms) else len(levels)
        force[begin:end] = 1
        place = end
        if end == len(levels):
            break
    return np.where(force == 1, 1, np.where(levels == -1, -1, 0))


def adaptive_levels(
    declared: Declaration, months: Months, times_h: np.ndarray, series: int = 1
) -> Iterator[np.ndarray]:
    """Mode ``adaptive``, month by month: 0 healthy, 1 warning or worse, 2 critical."""
    worth, effect = worths(months)
    bounds = declared.policy.thresholds
    pace = np.isfinite(months.at_h).sum(axis=1).mean() / months.hours * declared.window_ns / HOUR_NS
    pace /= float(np.median(effect[:, effect.shape[1] // 2]))
    usual = baselines(months, worth, declared.good_and_bad("qa")[0])
    levels = sorted({declared.usual("qa", step / 100) for step in range(101)})
    which = np.searchsorted(levels, np.clip(np.floor(100 * usual + 1e-9) / 100, levels[0], levels[-1]) + 1e-9) - 1
    fall, since = cusum(months, [declared.chart("qa", pace, series, level) for level in levels], worth, which)
    collapse, since_collapse = cusum(months, [declared.collapse_chart("qa", pace, series)], worth)
    error = min(0.5, 0.1 * declared.false_alarms) / series
    slow = below(months, bounds.warning, error=error, period_h=720.0, worth=worth)
    worst = below(months, bounds.critical, error=error, period_h=720.0, worth=worth)
    warning = (fall & (since < bounds.warning)) | slow
    critical = (collapse & (since_collapse < bounds.critical)) | worst
    level = np.where(critical, 2, warning.astype(int))
    return at_looks(months, times_h, level, 0)


def beginnings(force: np.ndarray) -> np.ndarray:
    """The looks at which an alarm begins."""
    return np.flatnonzero((force >= 1) & (np.concatenate([[0], force[:-1]]) < 1))

"""Many months at once: verdicts as columns of arrays, one column a month, and what each mode makes of them.

The detectors are those of ``scoring.statistics``, written once more for arrays; ``test_months.py`` holds both
against each other. Windows, estimates and looks are as in ``simulated.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.baseline import MEMORY, PRIOR, RECENT
from sidejudge.scoring.statistics.baseline import MEMORY_NS as ANCHOR_NS
from sidejudge.scoring.statistics.cusum import Chart
from sidejudge.scoring.statistics.drop_level import BETS as DROP_BETS
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED
from sidejudge.scoring.statistics.sequence import BETS
from sidejudge.scoring.statistics.serial_dependence import BLOCK, MOST
from sidejudge.scoring.statistics.serial_dependence import MEMORY as MEMORY_OF_RUNS
from sidejudge.scoring.trace.time_units import HOUR_NS, MONTH_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """One kind of service. ``size`` verdicts a cluster that agree; ``daily``: ten times as much at noon as at night.

    ``missing``: of the failures this share is never judged. ``forced``: failures are kept whatever the rate (weight 1)
    by half, the rest of the traffic at a twentieth (weight 20). ``named``: verdicts state their cluster.
    """

    per_hour: float
    size: int = 1
    daily: bool = False
    missing: float = 0.0
    forced: bool = False
    named: bool = True


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
    if not traffic.named:
        cluster = np.broadcast_to(np.arange(at.shape[1]), at.shape)
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


def looks(declared: Declaration, months: Months) -> np.ndarray:
    """The times of the looks, in hours."""
    step = declared.look_ns / HOUR_NS
    return np.arange(1, int(months.hours / step) + 1) * step


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
    policy = declared.policy
    for n, failures, ratio in windows(months, times_h, declared.window_ns / HOUR_NS):
        n_ = np.maximum(n / effect, 1e-9)
        compared = ratio if policy.mode == "point" else 1 - _lower_of_pair(1 - ratio, n_)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What ``Tracked`` knows after each verdict, each field (verdicts, months). Ratios where nothing is alarmed are 1.

    ``fall``, ``collapse`` and ``slide`` are those of ``Drops``, ``fell_h`` since when a drop is noticed (or infinite);
    ``evidence`` at each of ``levels``, as a multiple of what convinces; ``effect`` is the design effect, ``early`` the
    early warning.
    """

    fall: np.ndarray
    collapse: np.ndarray
    slide: np.ndarray
    fell_h: np.ndarray
    levels: tuple[float, ...]
    evidence: np.ndarray
    effect: np.ndarray
    early: np.ndarray


class _Charts:
    """A CUSUM of every month at once, whose chart may differ from verdict to verdict."""

    def __init__(self, charts: Sequence[Chart], rows: int, *, uneven: bool) -> None:
        self.limits = np.array([chart.limit_any if uneven else chart.limit for chart in charts])
        self.bets, self.goods = (np.array([getattr(chart, name) for chart in charts]) for name in ("bet", "good"))
        self.score, self.weight, self.failed = (np.zeros(rows) for _ in range(3))
        self.alarmed, self.since_h = np.zeros(rows, bool), np.full(rows, np.inf)

    def add(
        self, which: np.ndarray, share: np.ndarray, worth: np.ndarray, passed: np.ndarray, now_h: np.ndarray
    ) -> None:
        bet, good, limit = self.bets[which], self.goods[which], self.limits[which]
        rise = worth * np.log1p(np.maximum(-0.99, bet * share * (good - passed)))
        self.score = np.minimum(np.maximum(0.0, self.score + rise), limit + np.log1p(bet * good))
        calm = self.score <= 1e-9
        self.weight = np.where(calm, 0.0, self.weight + share)
        self.failed = np.where(calm, 0.0, self.failed + share * ~passed)
        self.alarmed = ~calm & (self.alarmed | (self.score >= limit - 1e-9))
        self.since_h = np.where(calm, np.inf, np.minimum(self.since_h, now_h))

    @property
    def ratio(self) -> np.ndarray:
        """Since the score was 0, where it is alarmed."""
        return np.where(self.alarmed, 1 - self.failed / np.maximum(self.weight, 1e-300), 1.0)


class _Mean:
    """``Baseline`` (a memory in verdicts) or ``Anchor`` (one in hours) of every month at once."""

    def __init__(self, expected: float, rows: int, *, memory: float = math.inf, memory_h: float = math.inf) -> None:
        self.expected, self.memory, self.memory_h = expected, memory, memory_h
        prior = PRIOR if math.isinf(memory_h) else 0.0
        self.weight, self.squared = np.full(rows, prior), np.full(rows, prior)
        self.failed = np.full(rows, prior * (1 - expected))

    def add(self, counts: np.ndarray, share: np.ndarray, passed: np.ndarray, elapsed_h: np.ndarray) -> None:
        kept = np.where(self.weight >= self.memory, 1 - counts / self.memory, 1.0) * np.exp(-elapsed_h / self.memory_h)
        self.weight = self.weight * kept + counts
        self.failed = self.failed * kept + counts * ~passed
        self.squared = self.squared * kept * kept + counts * share

    @property
    def lower(self) -> np.ndarray:
        prior = 0.0 if math.isinf(self.memory_h) else PRIOR
        weight = self.weight + prior
        failed = (self.failed + prior * (1 - self.expected)) / weight
        size = weight**2 / (self.squared + prior)
        return 1 - failed - np.sqrt(np.maximum(failed * (1 - failed), 1e-4) / size)

    @property
    def mean(self) -> np.ndarray:
        return 1 - self.failed / self.weight


class _Serial:
    """``SerialDependence`` of every month at once; ``calm`` are the months that learn from this verdict."""

    def __init__(self, rows: int) -> None:
        self.n, self.failed, self.last = (np.zeros(rows) for _ in range(3))
        self.has_last = np.zeros(rows, bool)
        self.sums = np.zeros((5, rows))  # found, expected, pairs, failures, seen
        self.largest = np.zeros((2, 2, rows))
        self.value = np.ones(rows)

    def add(self, failed: np.ndarray, known: np.ndarray) -> None:
        self.n += known
        self.failed += failed & known
        whole = self.n >= BLOCK
        if whole.any():
            self._compare(whole)

    def skip(self, which: np.ndarray) -> None:
        self.n[which] = self.failed[which] = 0.0
        self.has_last &= ~which

    def _compare(self, whole: np.ndarray) -> None:
        paired = whole & self.has_last
        share = (self.failed + self.last) / (2 * BLOCK)
        found = np.where(paired, (self.last / BLOCK - self.failed / BLOCK) ** 2 / (1 / BLOCK + 1 / BLOCK), 0.0)
        expected = np.where(paired, share * (1 - share) * 2 * BLOCK / (2 * BLOCK - 1), 0.0)
        counted = [found, expected, paired, np.where(paired, (self.failed + self.last) / 2, 0), paired * BLOCK]
        self.sums += np.array(counted, float)
        for place in range(2):
            held = self.largest[place].copy()
            more = (found > held[0]) | ((found == held[0]) & (expected > held[1]))
            self.largest[place] = np.where(more, [found, expected], held)
            found, expected = np.where(more, held, [found, expected])
        halved = np.where(paired & (self.sums[4] >= MEMORY_OF_RUNS), 0.5, 1.0)
        self.sums *= halved
        self.largest *= halved
        self.last = np.where(whole, self.failed, self.last)
        self.has_last |= whole
        self.n[whole] = self.failed[whole] = 0.0
        rest, base = self.sums[0] - self.largest[:, 0].sum(axis=0), self.sums[1] - self.largest[:, 1].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = rest / base
            error = np.sqrt(3 / self.sums[2] + 0.75 / self.sums[3])
            sure = (base > 0) & (self.sums[3] > 0) & (quotient > 1 + 2.5 * error)
        self.value = np.where(sure, np.minimum(MOST, quotient), 1.0)


def followed(  # noqa: PLR0915  # one loop: each detector goes by what the others know
    declared: Declaration, months: Months, per_window: float, series: int = 1
) -> Followed:
    """All detectors of mode ``adaptive``, verdict by verdict; ``per_window`` verdicts as they are worth when named."""
    named, effects = worths(months)
    rows, n = months.passed.shape
    uneven = len(np.unique(months.weight)) > 1
    shares = months.weight / months.weight.max()
    known, first = np.isfinite(months.at_h), declared.good_and_bad("qa")[0]
    bounds, margin = declared.policy.thresholds, declared.rule.recovery_margin
    raised = bounds.raised(margin)
    levels = (bounds.warning, bounds.critical, raised.warning, raised.critical)
    usual = sorted({declared.usual("qa", step / 100) for step in range(101)})
    # The charts of what the traffic is worth as a whole: a design effect that is learned moves them a little.
    worst = max(1.0, float(np.median(effects[:, effects.shape[1] // 2])))
    pace = per_window / worst
    fall = _Charts([declared.chart("qa", pace, series, level) for level in usual], rows, uneven=uneven)
    slide = _Charts([declared.slide_chart("qa", pace, series, level) for level in usual], rows, uneven=uneven)
    collapse = _Charts([declared.collapse_chart("qa", pace, series)], rows, uneven=uneven)
    short, recent = _Mean(first, rows, memory=MEMORY), _Mean(first, rows, memory=RECENT)
    anchor = _Mean(first, rows, memory_h=ANCHOR_NS / HOUR_NS)
    serial, drop = _Serial(rows), declared.new_drop_level("qa")
    odds_of_drop, convincing = bounds.critical / (1 - bounds.critical), drop.convincing
    stakes = np.array(DROP_BETS)[:, None]
    wealth, gate, below = np.ones((len(stakes), rows)), np.zeros(rows, bool), np.zeros(rows, bool)
    after, lost = np.zeros(rows), np.zeros(rows)
    error, period_ns = declared.level_error, MONTH_NS
    bets, odds = np.array(BETS)[:, None, None], np.array([each / (1 - each) for each in levels])[None, :, None]
    held = np.zeros((len(BETS), len(levels), rows))
    none, last = np.zeros(rows, int), np.where(known[:, 0], months.at_h[:, 0], 0.0)
    out = Followed(
        fall=np.ones((n, rows)), collapse=np.ones((n, rows)), slide=np.ones((n, rows)),
        fell_h=np.full((n, rows), np.inf), levels=levels,
        evidence=np.zeros((n, len(levels), rows), np.float32), effect=np.ones((n, rows), np.float32),
        early=np.zeros((n, rows), bool),
    )  # fmt: skip
    for k in range(n):
        seen, passed, share = known[:, k], months.passed[:, k], shares[:, k]
        worth = np.where(seen, named[:, k] / np.maximum(1.0, serial.value / effects[:, k]), 0.0)
        now = np.where(seen, months.at_h[:, k], last)
        elapsed, last = np.maximum(0.0, now - last), np.maximum(now, last)
        counting = np.where(seen & gate, worth, 0.0)
        wealth *= np.where(passed, np.maximum(1e-9, 1 - stakes * share), 1 + stakes * share * odds_of_drop) ** counting
        wealth = np.minimum(100 * convincing, wealth)
        after, lost = after + share * (seen & gate), lost + share * (seen & gate & ~passed)
        evidence = wealth.mean(axis=0)
        below = gate & ((evidence >= convincing) | (below & (evidence > 1)))
        collapse.add(none, share, worth, passed, now)
        slide.add(_of_usual(usual, anchor.lower), share, worth, passed, now)
        fall.add(_of_usual(usual, short.lower), share, worth, passed, now)
        open_ = fall.alarmed | collapse.alarmed
        fresh = ~open_ | ~gate
        wealth, after, lost = np.where(fresh, 1.0, wealth), np.where(fresh, 0.0, after), np.where(fresh, 0.0, lost)
        gate, below = open_, below & open_
        serial.skip(fall.alarmed & seen)
        serial.add(~passed, seen)
        income = np.minimum(1.0, elapsed / (period_ns / HOUR_NS))
        stake = bets * share
        held = np.minimum(100 / error, held * np.where(passed, 1 - stake, 1 + stake * odds) ** worth + income)
        for mean in (short, recent, anchor):
            mean.add(worth * share, share, passed, elapsed)
        out.fall[k] = fall.ratio
        out.fell_h[k] = np.where(fall.alarmed, fall.since_h, np.where(collapse.alarmed, collapse.since_h, np.inf))
        out.collapse[k] = np.where(below & (after > 0), 1 - lost / np.maximum(after, 1e-300), 1.0)
        between = np.maximum(anchor.weight - recent.weight, 1e-9)
        ahead = np.minimum(0.25, recent.weight / between)
        present = np.maximum(0.0, recent.mean - 0.75 * ahead * np.maximum(0.0, anchor.lower - recent.mean))
        out.slide[k] = np.where(slide.alarmed, present, 1.0)
        out.evidence[k] = held.mean(axis=0) * error / series
        out.effect[k] = np.maximum(effects[:, k], serial.value)
        out.early[k] = fall.alarmed | slide.alarmed
    return out


def _of_usual(usual: Sequence[float], lower: np.ndarray) -> np.ndarray:
    return np.searchsorted(usual, np.clip(np.floor(100 * lower + 1e-9) / 100, usual[0], usual[-1]) + 1e-9) - 1


def adaptive_force(declared: Declaration, months: Months, times_h: np.ndarray, series: int = 1) -> np.ndarray:
    """Mode ``adaptive``, (looks, months): the status in force, -1 insufficient, 0 healthy, 1 warning, 2 critical."""
    per_window = np.isfinite(months.at_h).sum(axis=1).mean() / months.hours * declared.window_ns / HOUR_NS
    known = followed(declared, months, per_window, series)
    columns = [_looked_at(declared, months, known, month, times_h) for month in range(len(months.at_h))]
    level, better, ruled = (np.stack(each, axis=1) for each in zip(*columns, strict=True))
    hold = declared.rule.hold_ns / declared.look_ns
    force, since = np.full(level.shape, -1), np.zeros(level.shape[1])
    state = np.full(level.shape[1], -1)
    for k in range(len(level)):
        now, undecided = np.maximum(level[k], -1), level[k] == -2
        worse = now > state
        calmer = (state >= 1) & (better[k] >= 0) & (better[k] < state) & (k - since >= hold)
        denied = (state >= 1) & (state >= ruled[k]) & (ruled[k] > 0)
        allowed = np.where(now == -1, -1, np.maximum(now, np.where(ruled[k] == 2, 1, 0)))
        unknown = np.where((now == -1) & ~undecided, -1, state)
        after = np.where(worse | (state <= 0), now, unknown)
        after = np.where(~worse & calmer, better[k], after)
        after = np.where(~worse & denied & (allowed < state), allowed, after)
        since = np.where(after != state, k, since)
        force[k] = state = after
    return force


def _looked_at(
    declared: Declaration, months: Months, known: Followed, month: int, times_h: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of one month at each look: the level of the moment (-2 undecided, -1 too little), that with the margin of a
    recovery, and the mildest alarm that is ruled out (0: none)."""
    at, weight = months.at_h[month], np.where(np.isfinite(months.at_h[month]), months.weight[month], 0.0)
    failed = weight * ~months.passed[month]
    sums = [np.concatenate([[0.0], np.cumsum(x)]) for x in (weight, weight * weight, failed, failed > 0)]
    end = np.searchsorted(at, times_h, side="right")
    place = np.maximum(end - 1, 0)
    effect, least = known.effect[place, month], declared.policy.min_samples
    needed = np.ceil(least * effect).astype(int)
    begin = np.searchsorted(at, times_h - declared.window_ns / HOUR_NS, side="right")
    longest = np.searchsorted(at, times_h - declared.longest_ns / HOUR_NS, side="right")
    begin = np.minimum(begin, np.maximum(end - needed, longest))
    n, ratio, failures = _estimated(sums, begin, end, effect)
    size = np.maximum(n, 1e-9)
    least_shown, upper = _lower_of_pair(ratio, size), 1 - _lower_of_pair(1 - ratio, size)
    fell_h = known.fell_h[place, month]
    fell = np.where(np.isfinite(fell_h), np.searchsorted(at, fell_h, side="left"), 0)
    m, since, _ = _estimated(sums, np.minimum(np.maximum(begin, fell), place), end, effect)
    chosen = _Z_OF_BEGINS[np.minimum(failures, len(_Z_OF_BEGINS) - 1).astype(int)]
    least_since = _lower_of_pair(since, np.maximum(m, 1e-9), np.where(fell > begin, chosen, Z_95_TWO_SIDED))
    any_ = end > begin
    bounds, margin = declared.policy.thresholds, declared.rule.recovery_margin

    def at_level(more: float) -> np.ndarray:
        warning, critical = bounds.warning + more, bounds.critical + more
        first = 2 if more else 0
        strong = known.evidence[place, :, month] >= 1
        dropped = (known.collapse[place, month] < critical) & (least_since <= critical)
        collapsed = dropped | (strong[:, first + 1] & (least_shown <= critical))
        shown = strong[:, first] | (known.slide[place, month] < warning)
        below = known.fall[place, month] < warning
        fallen = (below & (least_since <= warning)) | (shown & (least_shown <= warning))
        calm = np.where(n < least, -1, np.where(shown | below | (upper < warning), -2, 0))
        return np.where(any_, np.where(collapsed, 2, np.where(fallen, 1, calm)), -1)

    plain, raised = at_level(0.0), at_level(margin)
    above = np.where(least_shown > bounds.warning, 1, np.where(least_shown > bounds.critical, 2, 0))
    still = np.where(ratio < bounds.critical + margin, 2, np.where(ratio < bounds.warning + margin, 1, 0))
    raised = np.where((n < least) & (raised < 1), -1, np.maximum(raised, still))
    return plain, raised, np.where(any_, above, 0)


_Z_OF_BEGINS = np.array([NormalDist().inv_cdf(1 - 0.025 / max(1, begins)) for begins in range(1_000)])
"""The quantile of the interval of what came since one of so many failures."""


def _estimated(
    sums: Sequence[np.ndarray], begin: np.ndarray, end: np.ndarray, effect: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the verdicts from ``begin`` to ``end``: the effective sample size, the pass ratio, the failures."""
    w, w2, lost, failures = (x[end] - x[begin] for x in sums)
    n = np.where(w2 > 0, w * w / np.maximum(w2, 1e-300) / effect, 0.0)
    return n, np.where(w > 0, 1 - lost / np.maximum(w, 1e-300), 1.0), failures


def _lower_of_pair(ratio: np.ndarray, n: np.ndarray, z: np.ndarray | float = Z_95_TWO_SIDED) -> np.ndarray:
    """The lower bound of ``interval.wilson_pair``."""
    plain = (n * ratio + z * z / 2 - z * np.sqrt(n * ratio * (1 - ratio) + z * z / 4)) / (n + z * z)
    root = np.maximum(0.0, z * z - 2 - 1 / n + 4 * ratio * (n * (1 - ratio) + 1))
    corrected = np.maximum(0.0, (2 * n * ratio + z * z - 1 - z * np.sqrt(root)) / (2 * (n + z * z)))
    return np.minimum(plain, corrected)


def beginnings(force: np.ndarray) -> np.ndarray:
    """The looks at which an alarm begins. While too little is known, or nothing decided, it neither ends nor begins."""
    known = force[force >= 0] >= 1
    begins = known & ~np.concatenate([[False], known[:-1]])
    return np.flatnonzero(force >= 0)[begins]

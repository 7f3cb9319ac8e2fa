"""Plan: the expected behaviour of statuses at some traffic: false alarms, delays, time without an answer.

Delays are simulated with the detectors themselves and a seed that does not change; false alarms of the change detector
are computed (``cusum.average_run_length``), those of a bound simulated over a month. Where a configuration needs more
verdicts than there are, it warns.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from sidejudge.integrations.store.bounded_read import read_courses, read_first
from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.units import Duration
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.baseline import MEMORY
from sidejudge.scoring.statistics.cusum import Chart, Cusum, average_run_length
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.status.hysteresis import HysteresisState, Look, step
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE
from sidejudge.scoring.status.status import Status, appraise
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS, MONTH_NS

from .build import declaration

_MOST = 20_000
"""Verdicts of one run; a drop that takes longer is not noticed."""
_LOOKS = 6_000
_MOST_AFTER = 2_000
"""Verdicts after a warning within which a drop is seen to be critical, or is not."""
_BEFORE = 100.0
"""Verdicts before a drop, on average: a detector that has seen good ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTraffic:
    """One service under one rubric: verdicts an hour, the pass rate before a drop and after it.

    ``series`` is services times rubrics, among which the false alarms are divided. ``ValueError`` unless
    0 < bad < good < 1 and the numbers are positive.
    """

    per_hour: float
    good: float
    bad: float
    series: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.bad < self.good < 1 or not 0 < self.per_hour < math.inf or self.series < 1:
            raise ValueError(f"a plan needs 0 < bad < good < 1 and a positive rate, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What to expect of one service under one rubric at ``per_hour`` verdicts.

    ``false_alarms`` is the most in a month at the good pass rate (in mode ``bound``: those of one simulated month).
    ``median_h`` and ``late_h`` are the hours until a drop is noticed in half and in nine of ten cases, infinite if it
    is not; ``critical_median_h`` and ``critical_late_h`` those until it is *critical*, which alone pages by default.
    ``insufficient`` is the share of the time without an answer, ``first_h`` the hours until the first answer. Hours
    include the wait for a look, and leave out the time until a trace is closed and judged.
    """

    per_hour: float
    false_alarms: float
    median_h: float
    late_h: float
    critical_median_h: float
    critical_late_h: float
    insufficient: float
    first_h: float


def expected(declared: Declaration, traffic: PlannedTraffic, *, runs: int = 200) -> Expected:
    """What to expect of the declared mode; ``runs`` drops are simulated."""
    rng = random.Random(20)  # noqa: S311  # a simulation
    mode, per_hour = declared.policy.mode, traffic.per_hour
    run = _followed if mode == "adaptive" else _looked
    found = [run(rng, declared, traffic) for _ in range(runs)]
    delays, pages = sorted(each.warning_h for each in found), sorted(each.critical_h for each in found)
    needed = declared.policy.min_samples
    return Expected(
        per_hour=per_hour, false_alarms=_false_alarms(rng, declared, traffic),
        median_h=delays[len(delays) // 2], late_h=delays[int(len(delays) * 0.9)],
        critical_median_h=pages[len(pages) // 2], critical_late_h=pages[int(len(pages) * 0.9)],
        insufficient=_poisson_below(needed, per_hour * declared.reach_ns / HOUR_NS),
        first_h=needed / per_hour,
    )  # fmt: skip


def proposed_rate(declared: Declaration, traffic: PlannedTraffic, *, within_h: float) -> float | None:
    """The fewest verdicts an hour with which half of such drops are noticed in time; None if even all are too few."""
    for part in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0):
        rate = traffic.per_hour * part
        # An alarm needs several failures: what is too little for those need not be simulated.
        if rate * within_h * (1 - traffic.bad) < 2:
            continue
        if expected(declared, replace(traffic, per_hour=rate), runs=60).median_h <= within_h:
            return rate
    return None


class _Noticed(NamedTuple):
    """Hours from a drop until a status is at *warning* or worse, and at *critical*; infinite where it never is."""

    warning_h: float = math.inf
    critical_h: float = math.inf


def _followed(rng: random.Random, declared: Declaration, traffic: PlannedTraffic) -> _Noticed:
    """One drop in mode ``adaptive``, noticed at the look that follows."""
    warning, critical, series = declared.policy.thresholds.warning, declared.policy.thresholds.critical, traffic.series
    chart = _chart(declared, traffic)
    suspecting = declared.collapse_chart("", traffic.per_hour * declared.window_ns / HOUR_NS, series)
    sequence = declared.sequence_at((warning, critical))
    cusum, collapse, drop = Cusum(), Cusum(), declared.new_drop_level("")
    look_h, at_h, noticed = declared.look_ns / HOUR_NS, -_BEFORE / traffic.per_hour, _Noticed()
    begin_ns = int(at_h * HOUR_NS)
    left = _MOST
    while left:
        left -= 1
        at_h += rng.expovariate(traffic.per_hour)
        passed, at_ns = rng.random() < (traffic.good if at_h < 0 else traffic.bad), int(at_h * HOUR_NS) - begin_ns
        drop.add(passed=passed, weight=1.0)
        for one, of in ((cusum, chart), (collapse, suspecting)):
            one.add(of, passed=passed, weight=1.0, at_ns=at_ns)
        drop.noticed(alarmed=cusum.alarmed or collapse.alarmed)
        sequence.add(passed=passed, weight=1.0, at_ns=at_ns)
        since = cusum.pass_ratio if cusum.alarmed else None
        if at_h <= 0:
            continue
        seen_h, low = (math.floor(at_h / look_h) + 1) * look_h, drop.pass_ratio
        if (drop.below and low is not None and low < critical) or sequence.evidence(critical) >= series:
            return _Noticed(min(noticed.warning_h, seen_h), seen_h)
        fell = (since is not None and since < warning) or sequence.evidence(warning) >= series
        if fell and math.isinf(noticed.warning_h):
            noticed = _Noticed(seen_h)
            left = _MOST_AFTER if traffic.bad < critical else 0
    return noticed


def _chart(declared: Declaration, traffic: PlannedTraffic) -> Chart:
    """The chart of a service that is known to pass at the good ratio."""
    known = traffic.good - math.sqrt(traffic.good * (1 - traffic.good) / (2 * MEMORY))
    return declared.chart("", traffic.per_hour * declared.window_ns / HOUR_NS, traffic.series, known)


def _looked(rng: random.Random, declared: Declaration, traffic: PlannedTraffic) -> _Noticed:
    """One drop in mode ``bound`` or ``point``."""
    begin_h, noticed = 2 * declared.window_ns / HOUR_NS, _Noticed()
    for now_h, status in _statuses(rng, declared, traffic, from_h=begin_h, looks=_LOOKS):
        if now_h <= begin_h:
            continue
        if status is Status.CRITICAL:
            return _Noticed(min(noticed.warning_h, now_h - begin_h), now_h - begin_h)
        if status is Status.WARNING and math.isinf(noticed.warning_h):
            noticed = _Noticed(now_h - begin_h)
            if traffic.bad >= declared.policy.thresholds.critical:
                break
    return noticed


def _statuses(
    rng: random.Random, declared: Declaration, traffic: PlannedTraffic, *, from_h: float, looks: int
) -> Iterator[tuple[float, Status]]:
    """(hours, status in force) look by look; the drop is at ``from_h``."""
    policy, rule = declared.policy, declared.rule
    raised, window_h = policy.raised(rule.recovery_margin), declared.window_ns / HOUR_NS
    held: deque[tuple[float, bool]] = deque()
    state: HysteresisState | None = None
    next_h, failures = rng.expovariate(traffic.per_hour), 0
    for number in range(1, looks + 1):
        now_h = number * declared.look_ns / HOUR_NS
        while next_h <= now_h:
            held.append((next_h, rng.random() < (traffic.good if next_h < from_h else traffic.bad)))
            failures += not held[-1][1]
            next_h += rng.expovariate(traffic.per_hour)
        while held and held[0][0] <= now_h - window_h:
            failures -= not held.popleft()[1]
        n = len(held)
        found = from_sums(n=n, failures=failures, weight=n, failed_weight=failures, squared_weight=n)
        look = Look(status=appraise(found, policy).status, with_margin=appraise(found, raised).status, empty=n == 0)
        state = step(state, look, int(now_h * HOUR_NS), rule)
        yield now_h, state.status


def _false_alarms(rng: random.Random, declared: Declaration, traffic: PlannedTraffic) -> float:
    if declared.policy.mode == "adaptive":
        month_h, chart = MONTH_NS / HOUR_NS, _chart(declared, traffic)
        of_sequence = 0.1 * declared.false_alarms / traffic.series
        return month_h * traffic.per_hour / average_run_length(chart, traffic.good) + of_sequence
    found, before = 0, False
    looks = int(MONTH_NS / declared.look_ns)
    healthy = replace(traffic, bad=traffic.good * (1 - 1e-12))
    for _, status in _statuses(rng, declared, healthy, from_h=math.inf, looks=looks):
        bad = status in (Status.WARNING, Status.CRITICAL)
        found += bad and not before
        before = bad
    return float(found)


def _poisson_below(needed: float, mean: float) -> float:
    """The chance of fewer than so many arrivals."""
    logs = (k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(math.ceil(needed)))
    return min(1.0, math.fsum(map(math.exp, logs)))


_OFTEN = 0.2
"""Least share of time without an answer that gives a warning."""
_SHOWN = 3


def thin_traffic(config: Config) -> Iterator[tuple[str, str]]:
    """(cause, remedy): too little for the windows, by the configuration or by the last day of the store."""
    declared = declaration(config)
    needed = declared.policy.min_samples / (declared.reach_ns / HOUR_NS)
    key = "alerts.longest_window" if declared.policy.mode == "adaptive" else "alerts.window"
    sampling = config.sampling
    if sampling.rate is None and not sampling.rules and sampling.traces_per_hour < needed:
        cause = (
            f"sampling.traces_per_hour: {sampling.traces_per_hour} verdicts an hour never make alerts.min_samples "
            f"({declared.policy.min_samples:g}) within {key} ({Duration(declared.reach_ns)}): "
            "every status is insufficient_data"
        )
        yield cause, _remedy(declared, float(sampling.traces_per_hour))
    thin = sorted(_thin(config, needed))
    for per_hour, name in thin[:_SHOWN]:
        more = f", and {len(thin) - _SHOWN} more" if len(thin) > _SHOWN and name == thin[_SHOWN - 1][1] else ""
        cause = (
            f"alerts: {name} had {per_hour:.3g} verdicts an hour in the last day; mode {declared.policy.mode} needs "
            f"{needed:.3g} an hour, so the status is mostly insufficient_data{more}"
        )
        yield cause, _remedy(declared, per_hour)


def _thin(config: Config, needed: float) -> Iterator[tuple[float, str]]:
    if not config.store.path.is_file():
        return
    now_ns = time.time_ns()
    try:
        sums, _ = read_courses(config.store.path, now_ns - DAY_NS, now_ns)
        first_ns = read_first(config.store.path, now_ns - DAY_NS)
    except StoreError:
        return  # the check of the store names what is wrong with it
    # A store that is younger than a day is divided by its age: a minute's traffic is not that of a day.
    hours = min(24.0, max(now_ns - (first_ns or now_ns), MINUTE_NS) / HOUR_NS)
    for each in sums:
        per_hour = (each.passed + each.failed) / hours
        if 0 < per_hour < needed * (1 + _OFTEN):
            yield per_hour, f"{each.service or UNKNOWN_SERVICE} under {each.rubric}"


def _remedy(declared: Declaration, per_hour: float) -> str:
    setting = "raise alerts.longest_window" if declared.policy.mode == "adaptive" else "set alerts.mode: adaptive"
    return f"{setting}, or sample more; 'sidejudge plan --rate {per_hour:.3g}/h' shows what to expect"

"""The budget, in properties and in simulated days: it is spent, not exceeded, and the estimates stay unbiased."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.evaluate.judge.budget import DAY_S, HOUR_S, PRIORITIES, JudgeBudget, SpendingRate

CALL_S = 3.0
MEAN_USD = 0.002


@dataclass
class Played:
    """What came of a simulation. ``weights`` are 1/q of the judged cases; ``variance`` is of their sum."""

    spent: dict[int, float] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PRIORITIES, 0))
    judged: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PRIORITIES, 0))
    shares: list[tuple[float, str, float]] = field(default_factory=list)
    failures: float = 0.0
    weighted_failures: float = 0.0
    failures_judged: int = 0
    failure_variance: float = 0.0
    refused: int = 0

    def hour(self, number: int) -> float:
        return self.spent.get(number * HOUR_S, 0.0)


def play(
    hours: float,
    per_s: Callable[[float], float],
    *,
    budget: JudgeBudget,
    seed: int,
    usd: Callable[[float, random.Random], float] = lambda _, rng: MEAN_USD * rng.lognormvariate(-0.125, 0.5),
    priority: Callable[[random.Random], str] = lambda _: "normal",
    fails: Callable[[float], float] = lambda _: 0.1,
    start: float = 0.0,
) -> Played:
    """Poisson arrivals, calls of three seconds, log-normal prices; a case fails with a chance that may change."""
    rng, now, played, number = random.Random(seed), start, Played(), itertools.count()
    end = start + hours * HOUR_S
    peak = max(per_s(start + 10.0 * n) for n in range(int(hours * 360)))
    running: list = []
    while (now := now + rng.expovariate(peak)) < end:
        while running and running[0][0] <= now:
            at, _, reservation, cost, who = heapq.heappop(running)
            budget.settle(reservation, cost, at)
            budget.judged(who, cost)
            hour = int(at // HOUR_S) * HOUR_S
            played.spent[hour] = played.spent.get(hour, 0.0) + cost
        if rng.random() * peak >= per_s(now):
            continue
        who = priority(rng)
        share = budget.arrive(who, now)
        played.arrived[who] += 1
        played.shares.append((now, who, share))
        failed = rng.random() < fails(now)
        if share > 0.0:
            played.failures += failed
            played.failure_variance += failed * (1 - share) / share
        if rng.random() < share:
            cost = usd(now, rng)
            reservation = budget.reserve(budget._mean_usd(who) or MEAN_USD, now)
            if reservation is None:
                played.refused += 1
                continue
            played.judged[who] += 1
            played.weighted_failures += failed / share
            played.failures_judged += failed
            heapq.heappush(running, (now + CALL_S, next(number), reservation, cost, who))
    return played


@pytest.mark.parametrize("seed", range(3))
def test_a_tenfold_spike_for_hours_spends_the_budget_and_no_more(seed):
    calm = 0.2  # 1.44 $ an hour of 2
    played = play(
        6, lambda t: calm * (10 if 1.5 <= t / HOUR_S < 4.5 else 1), budget=JudgeBudget(per_hour=2.0), seed=seed
    )
    for hour in (2, 3):
        assert 0.95 * 2.0 <= played.hour(hour) <= 2.0 * 1.005
    assert all(usd <= 2.0 * 1.005 for usd in played.spent.values())
    assert played.refused <= 3


def test_judging_grows_thin_smoothly_and_does_not_stop():
    played = play(3, lambda _: 3.0, budget=JudgeBudget(per_hour=2.0), seed=5)
    silent = [share for _, _, share in played.shares if share == 0.0]
    assert len(silent) <= 0.01 * len(played.shares)
    settled = [share for now, _, share in played.shares if HOUR_S * 1.1 < now < HOUR_S * 1.9]
    assert max(settled) / min(settled) < 4


@pytest.mark.parametrize("seed", range(2))
def test_a_price_that_triples_is_felt_in_time(seed):
    def usd(now, rng):
        return MEAN_USD * rng.lognormvariate(-0.125, 0.5) * (3 if now > 1.9 * HOUR_S else 1)

    played = play(4, lambda _: 1.0, budget=JudgeBudget(per_hour=2.0), usd=usd, seed=seed)
    for hour in range(4):
        assert 0.95 * 2.0 <= played.hour(hour) <= 2.0 * 1.005


def test_what_silence_left_over_may_be_spent_later_in_the_hour():
    played = play(2, lambda t: 0.01 if t % HOUR_S < 2400 else 5.0, budget=JudgeBudget(per_hour=2.0), seed=1)
    for hour in range(2):
        assert 0.95 * 2.0 <= played.hour(hour) <= 2.0 * 1.005


def test_traffic_in_bursts_spends_the_budget_too():
    played = play(3, lambda t: 10.0 if t % 300 < 60 else 0.1, budget=JudgeBudget(per_hour=2.0), seed=1)
    for hour in range(3):
        assert 0.95 * 2.0 <= played.hour(hour) <= 2.0 * 1.005


def test_under_the_budget_everything_is_judged():
    played = play(2, lambda _: 0.1, budget=JudgeBudget(per_hour=2.0), seed=1)
    assert played.judged == played.arrived
    assert all(share == 1.0 for _, _, share in played.shares)


def test_the_day_is_kept_as_well_as_the_hour_and_spread_over_it():
    played = play(24, lambda _: 0.5, budget=JudgeBudget(per_hour=2.0, per_day=12.0), seed=1)
    assert 0.95 * 12.0 <= sum(played.spent.values()) <= 12.0 * 1.005
    assert all(usd <= 2.0 * 1.005 for usd in played.spent.values())
    assert min(played.hour(hour) for hour in range(1, 24)) >= 0.3


def test_a_restart_goes_on_with_what_was_spent():
    before = play(0.5, lambda _: 3.0, budget=JudgeBudget(per_hour=2.0), seed=1)
    again = JudgeBudget(per_hour=2.0, spent=before.spent)
    after = play(0.49, lambda _: 3.0, budget=again, seed=2, start=0.5 * HOUR_S)
    assert 0.95 * 2.0 <= before.hour(0) + after.hour(0) <= 2.0 * 1.005


def test_low_priorities_are_thinned_first_and_none_falls_silent():
    played = play(
        2, lambda _: 3.0, budget=JudgeBudget(per_hour=6.0), seed=1,
        priority=lambda rng: rng.choices(PRIORITIES, [1, 3, 6])[0],
    )  # fmt: skip
    rates = {who: played.judged[who] / played.arrived[who] for who in PRIORITIES}
    assert rates["high"] > 0.95
    assert rates["high"] > rates["normal"] > rates["low"] > 0.0


def test_the_weighted_estimate_is_unbiased_though_quality_falls_when_traffic_rises():
    """Failures estimated by weights, over many runs, lie around the truth by no more than chance allows (4 sigma)."""
    errors, variances, reported, judged = [], [], [], 0
    for seed in range(6):
        played = play(
            1.5, lambda t: 4.0 if t > 1200 else 0.2, budget=JudgeBudget(per_hour=1.0), seed=seed,
            fails=lambda t: 0.3 if t > 1200 else 0.05,
        )  # fmt: skip
        errors.append(played.weighted_failures - played.failures)
        variances.append(played.failure_variance)
        reported.append((played.failures, sum(played.arrived.values()), played.failures_judged))
        judged += sum(played.judged.values())
    assert abs(sum(errors)) <= 4 * math.sqrt(sum(variances))
    # Without weights the quiet time counts too much, and the rate is off by more than chance allows.
    truth = sum(failures for failures, *_ in reported) / sum(arrived for _, arrived, _ in reported)
    naive = sum(found for *_, found in reported) / judged
    assert abs(naive - truth) > 4 * math.sqrt(truth * (1 - truth) / judged)


def test_the_hard_stop_holds_whatever_calls_cost():
    budget = JudgeBudget(per_hour=1.0)
    first = budget.reserve(0.6, 0.0)
    assert budget.reserve(0.6, 0.0) is None
    budget.settle(first, 0.95, 1.0)
    assert budget.reserve(0.1, 2.0) is None
    assert budget.q("high", 2.0) > 0.0  # what a case costs is not known yet; a call that fits may go
    assert budget.reserve(0.04, 2.0) is not None
    assert budget.reserve(0.9, float(HOUR_S)) is not None  # another hour


@given(
    st.lists(st.tuples(st.sampled_from(PRIORITIES), st.floats(0, 1), st.floats(0, 600)), min_size=1, max_size=60),
    st.floats(0.01, 10),
)
def test_shares_are_shares_and_fall_with_the_priority(events, per_hour):
    budget, now = JudgeBudget(per_hour=per_hour, per_day=per_hour * 5), 0.0
    for who, cost, later in events:
        now += later
        share = budget.arrive(who, now)
        assert 0.0 <= share <= 1.0
        reservation = budget.reserve(cost, now)
        if reservation is not None:
            budget.settle(reservation, cost, now)
            budget.judged(who, cost)
        assert budget.spent(HOUR_S, now) <= per_hour + 1e-9
        assert budget.spent(DAY_S, now) <= 5 * per_hour + 1e-9
        granted = sum(budget.q(each, now) * budget.forecast(each, now) for each in PRIORITIES)
        assert granted <= budget.allowance(now) * (1 + 1e-9)


def test_without_a_limit_everything_is_judged():
    budget = JudgeBudget()
    assert not budget.limited
    assert budget.arrive("low", 0.0) == 1.0
    assert budget.reserve(1e9, 0.0) is not None


@given(st.floats(0.05, 5), st.integers(0, 5))
def test_the_rate_of_regular_events_is_found(per_s, seed):
    rate, now = SpendingRate(600.0), 0.0
    for _ in range(int(per_s * 6000) + 1):
        now += 1 / per_s
        rate.add(now)
    assert rate.per_s(now) == pytest.approx(per_s, rel=0.02)


def test_what_rounding_left_below_nothing_counts_as_nothing():
    set_aside, cost = 0.0001344, 0.0000432
    residue = -set_aside + cost + (set_aside - cost) - 1e-18
    assert residue < 0.0
    budget = JudgeBudget(per_day=1.0, spent={0: residue})
    assert [budget.spent(length, 10.0) for length in (HOUR_S, DAY_S)] == [0.0, 0.0]
    assert budget.spent_in(0) == 0.0


def test_after_a_clock_was_set_back_the_rate_is_that_of_the_traffic():
    rate = SpendingRate(600.0)
    for second in range(7200):
        rate.add(1e9 + second)
    before = rate.per_s(1e9 + 7200)
    for second in range(7200):
        rate.add(1e9 - 10_000 + second)
    assert rate.per_s(1e9 - 2800) == pytest.approx(before, rel=0.01) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("ahead_s", [3 * HOUR_S, 30 * DAY_S], ids=["hours", "weeks"])
def test_what_was_spent_today_counts_when_a_clock_that_was_ahead_is_set_back(ahead_s):
    morning = 20_000 * DAY_S + 9.0 * HOUR_S
    ahead = range(int(morning) + 60 * DAY_S, int(morning) + 70 * DAY_S, HOUR_S)  # of a run before
    budget = JudgeBudget(per_day=2.0, spent=dict.fromkeys(ahead, 1.0))
    for now in (morning, morning + ahead_s):
        reserved = budget.reserve(1.0, now)
        assert reserved is not None
        budget.settle(reserved, 1.0, now)
    assert budget.spent(DAY_S, morning) == (2.0 if ahead_s < DAY_S else 1.0)
    assert (budget.reserve(1.0, morning) is None) is (ahead_s < DAY_S)

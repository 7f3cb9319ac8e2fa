"""What statuses promise, held against simulated services. ``tables.py`` beside this runs longer and writes the page."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.cusum import Cusum, average_run_length
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.status.status import Policy, Status, appraise

_SPEC = importlib.util.spec_from_file_location("simulated", Path(__file__).with_name("simulated.py"))
simulated = sys.modules["simulated"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(simulated)

BOUND, PLAIN = simulated.BOUND, simulated.PLAIN
HOUR_NS = simulated.HOUR_NS
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "status.md"
DAYS = 24.0


def alarms(declared: Declaration, *, ratio: float, per_hour: float, hours: float, seed: int) -> int:
    verdicts = simulated.service(np.random.default_rng(seed), per_hour=per_hour, stretches=[(hours, ratio)])
    return len(simulated.entries(simulated.statuses(declared, verdicts, hours=hours)))


def delay_minutes(declared: Declaration, *, ratio: float, per_hour: float, seed: int, level=simulated.ALARMS) -> float:
    rng = np.random.default_rng(seed)
    verdicts = simulated.service(rng, per_hour=per_hour, stretches=[(4, 0.95), (20, ratio)])
    reported = simulated.entered(simulated.statuses(declared, verdicts, hours=24), level)
    after = next((at for at in reported if at > 4 * HOUR_NS), None)
    return float("inf") if after is None else (after / HOUR_NS - 4) * 60


@pytest.mark.parametrize("per_hour", [30, 120, 1200])
def test_a_healthy_service_is_left_alone_by_a_bound_and_not_by_a_plain_average(per_hour):
    hours = (2 if per_hour == 1200 else 7) * DAYS
    assert alarms(BOUND, ratio=0.95, per_hour=per_hour, hours=hours, seed=1) == 0
    if per_hour == 30:
        assert alarms(PLAIN, ratio=0.95, per_hour=per_hour, hours=hours, seed=1) > 0


def test_near_the_threshold_a_plain_average_cries_every_day_and_a_bound_a_few_times_a_month():
    plain = alarms(PLAIN, ratio=0.90, per_hour=30, hours=30 * DAYS, seed=2)
    bound = alarms(BOUND, ratio=0.90, per_hour=30, hours=30 * DAYS, seed=2)
    assert plain > 30
    assert bound <= 5


@pytest.mark.parametrize(("per_hour", "within"), [(30, 240), (120, 90), (1200, 60)])
def test_a_collapse_is_critical_in_time(per_hour, within):
    delays = [
        delay_minutes(BOUND, ratio=0.4, per_hour=per_hour, seed=seed, level=(Status.CRITICAL,)) for seed in range(5)
    ]
    assert np.median(delays) <= within


def reached(rng: np.random.Generator, *, ratio: float, n: int) -> bool:
    """Whether the evidence against a true 0.85 ever convinces, looked at after each verdict, within one period."""
    sequence = ConfidenceSequence((0.85,), error=0.2, period_ns=n)
    for at in range(n):
        sequence.add(passed=bool(rng.random() < ratio), weight=20.0, at_ns=at)
        if sequence.below(0.85):
            return True
    return False


def test_a_sequence_keeps_its_promise_under_continuous_looking_at_the_very_threshold():
    rng = np.random.default_rng(3)
    wrong = sum(reached(rng, ratio=0.85, n=3000) for _ in range(80))
    # 20 % are promised; 4 standard deviations of chance above it would disprove the promise.
    assert wrong <= 80 * 0.2 + 4 * np.sqrt(80 * 0.2 * 0.8)
    assert wrong > 0, "a promise that is never used up would be a waste"


def test_a_bound_looked_at_after_each_verdict_does_not_keep_the_same_promise():
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(100):
        passed = np.cumsum(rng.random(3000) < 0.85)
        n = np.arange(1, 3001)
        _, upper = proportion_confint(passed, n, alpha=0.4, method="wilson")  # one-sided 20 %
        wrong += bool(np.any((upper < 0.85)[30:]))
    assert wrong > 50


def test_a_sequence_keeps_its_promise_where_failures_are_forced_into_the_sample():
    """Six of ten verdicts that are seen fail, of a service that passes at the threshold."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(40):
        sequence = ConfidenceSequence((0.85,), error=0.2, period_ns=20_000)
        for at in range(20_000):
            passed = rng.random() < 0.85
            forced = not passed and rng.random() < 0.5
            if forced or rng.random() < 0.05:
                sequence.add(passed=bool(passed), weight=1.0 if forced else 20.0, at_ns=at)
                if sequence.below(0.85):
                    wrong += 1
                    break
    assert wrong <= 40 * 0.2 + 4 * np.sqrt(40 * 0.2 * 0.8)


@pytest.mark.parametrize(("n", "ratio"), [(50, 0.9), (70, 0.7), (100, 0.7), (200, 0.9)])
def test_one_look_of_a_bound_alarms_as_often_as_the_binomial_says(n, ratio):
    """Every count of failures with its exact chance, against scipy's interval and binomial tail."""
    policy, alarming = Policy(mode="bound", min_samples=1, min_failures=1), []
    for failures in range(n + 1):
        reported = simulated.from_sums(n=n, failures=failures, weight=n, failed_weight=failures, squared_weight=n)
        upper = binomtest(n - failures, n).proportion_ci(method="wilsoncc" if failures else "wilson").high
        assert reported.upper == pytest.approx(upper, abs=1e-12)
        alarming.append(appraise(reported, policy).status is not Status.HEALTHY)
    first = alarming.index(True)
    assert all(alarming[first:])
    chance = sum(binom.pmf(k, n, 1 - ratio) for k in range(first, n + 1))
    assert chance == pytest.approx(binom.sf(first - 1, n, 1 - ratio))
    assert chance < 0.05 if ratio > 0.85 else chance > 0.8


def test_the_computed_run_length_of_the_early_warning_is_the_simulated_one():
    chart = replace(BOUND, change=replace(BOUND.change, false_alarm_every_ns=HOUR_NS)).chart("qa", 500)
    rng, runs = np.random.default_rng(6), []
    for _ in range(200):
        cusum, n = Cusum(), 0
        while not cusum.alarmed:
            n += 1
            cusum.add(chart, passed=bool(rng.random() < chart.good), weight=1.0, at_ns=n)
        runs.append(n)
    computed = average_run_length(chart, chart.good)
    assert computed >= chart.run_length
    assert abs(np.mean(runs) - computed) < 4 * np.std(runs) / np.sqrt(len(runs))


def test_the_early_warning_is_earlier_and_dates_the_change():
    gains, errors = [], []
    for seed in range(6):
        verdicts = simulated.service(np.random.default_rng(seed), per_hour=120, stretches=[(8, 0.95), (8, 0.7)])
        warned = [
            (at, since) for at, since in simulated.early_warnings(BOUND, verdicts, per_hour=120) if at > 8 * HOUR_NS
        ]
        status = [at for at in simulated.entries(simulated.statuses(BOUND, verdicts, hours=16)) if at > 8 * HOUR_NS]
        gains.append(status[0] - warned[0][0])
        errors.append(abs(warned[0][1] / HOUR_NS - 8) * 60)
    assert np.median(gains) > 0
    assert np.median(errors) <= 15


def test_forced_samples_change_what_is_seen_and_not_what_is_said():
    verdicts = simulated.service(np.random.default_rng(8), per_hour=120, stretches=[(48, 0.93)], forced=True)
    assert np.mean(verdicts.passed) < 0.85, "the plain share of what was seen is far below the truth"
    unweighted = replace(verdicts, weight=np.ones(len(verdicts)))
    assert simulated.entries(simulated.statuses(PLAIN, unweighted, hours=48))
    assert not simulated.entries(simulated.statuses(BOUND, verdicts, hours=48))


def test_the_page_of_long_runs_was_made_with_the_defaults_in_force():
    """When a default changes: ``python tests/simulation/tables.py``."""
    page = PAGE.read_text("utf-8")
    assert simulated.described(BOUND) in page

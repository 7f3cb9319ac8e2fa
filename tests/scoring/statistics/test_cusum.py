"""The change detector: its run length against a Markov chain and against simulation, its estimate of when it began."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.scoring.statistics.cusum import Chart, Cusum, average_run_length, design


def of_markov_chain(pass_ratio: float, jump: int, limit_steps: int) -> float:
    """The run length by the textbook: the fundamental matrix of the chain (Brook and Evans 1972)."""
    moves = np.zeros((limit_steps, limit_steps))
    for state in range(limit_steps):
        moves[state, max(0, state - 1)] += pass_ratio
        if state + jump < limit_steps:
            moves[state, state + jump] += 1 - pass_ratio
    return float(np.linalg.solve(np.eye(limit_steps) - moves, np.ones(limit_steps))[0])


@given(st.floats(0.0, 0.99), st.integers(1, 40), st.integers(1, 60))
@settings(deadline=None, max_examples=60)
def test_the_run_length_is_that_of_the_markov_chain(pass_ratio, jump, steps):
    chain = of_markov_chain(pass_ratio, jump, steps)
    if 0 < chain < 1e9:  # beyond it the matrix, not the sweep, runs out of digits
        chart = replace(design(0.9, 0.75, 500.0), jump=jump, limit_steps=steps)
        assert average_run_length(chart, pass_ratio) == pytest.approx(chain, rel=1e-5)


def run_lengths(chart: Chart, pass_ratio: float, runs: int, seed: int) -> np.ndarray:
    rng, found = np.random.default_rng(seed), []
    for _ in range(runs):
        cusum, n = Cusum(), 0
        while not cusum.alarmed:
            n += 1
            cusum.add(chart, passed=bool(rng.random() < pass_ratio), weight=100.0, at_ns=n)
        found.append(n)
    return np.array(found)


@pytest.mark.parametrize("ratio", [0.9, 0.85, 0.75])
def test_the_running_chart_has_the_run_length_that_was_computed(ratio):
    chart = design(0.9, 0.75, 500.0)
    lengths = run_lengths(chart, ratio, 300, seed=7)
    computed = average_run_length(chart, ratio)
    assert abs(lengths.mean() - computed) < 4 * lengths.std() / math.sqrt(len(lengths))


@pytest.mark.parametrize(
    ("good", "bad"), [(0.9, 0.775), (0.95, 0.85), (0.99, 0.97), (0.999, 0.998), (0.6, 0.5), (0.7, 0.2)]
)
@pytest.mark.parametrize("wanted", [50.0, 32_768.0, 1e7])
def test_a_design_keeps_its_promise_and_wastes_little(good, bad, wanted):
    chart = design(good, bad, wanted)
    mean = average_run_length(chart, good)
    assert mean >= wanted
    if chart.limit_steps > 1:
        assert average_run_length(replace(chart, limit_steps=chart.limit_steps - 1), good) < wanted
    assert chart.limit <= chart.limit_any
    assert 0 < chart.bad < good


def test_a_failure_climbs_exactly_the_jump_of_a_pass():
    chart = design(0.9, 0.775, 1e4)
    up, down = math.log1p(chart.bet * chart.good), -math.log1p(-chart.bet * (1 - chart.good))
    assert up / down == pytest.approx(chart.jump, rel=1e-9)
    assert up == pytest.approx(math.log((1 - chart.bad) / (1 - chart.good)))


@pytest.mark.parametrize(("good", "bad", "length"), [(0.5, 0.5, 10), (1.0, 0.5, 10), (0.5, 0.0, 10), (0.9, 0.5, 1)])
def test_what_is_no_chart_is_refused(good, bad, length):
    with pytest.raises(ValueError, match="a chart needs"):
        design(good, bad, length)


def test_below_the_least_good_ratio_the_bound_for_any_weights_holds():
    chart = design(0.5, 0.3, 1000.0)
    assert chart.jump == 0
    assert chart.limit == chart.limit_any == math.log(1000.0)
    lengths = run_lengths(chart, 0.5, 30, seed=3)
    assert lengths.mean() > 1000


def test_unequal_weights_alarm_no_earlier_than_promised():
    # Half of the failures are kept for certain, the rest drawn at a twentieth: seen failures outnumber passes.
    rng, promised, found = np.random.default_rng(11), 100.0, []
    chart = design(0.9, 0.7, promised)
    for _ in range(40):
        cusum, n = Cusum(), 0
        while not cusum.alarmed and n < 2_000:
            passed = bool(rng.random() < 0.9)
            forced = not passed and rng.random() < 0.5
            if forced or rng.random() < 0.05:
                n += 1
                cusum.add(chart, passed=passed, weight=1.0 if forced else 20.0, at_ns=n)
        found.append(n)
    assert np.mean(found) > promised


def test_the_change_is_dated_by_the_last_time_nothing_spoke_for_one():
    chart, errors = design(0.9, 0.7, 1e5), []
    for seed in range(40):
        rng, cusum, n = np.random.default_rng(seed), Cusum(), 0
        while not cusum.alarmed:
            n += 1
            cusum.add(chart, passed=bool(rng.random() < (0.95 if n <= 500 else 0.6)), weight=1.0, at_ns=n)
        assert cusum.since_ns is not None
        errors.append(cusum.since_ns - 500)
    assert abs(np.median(errors)) <= 15


def test_an_alarm_lasts_until_nothing_speaks_for_it_and_then_can_come_again():
    chart, cusum = design(0.9, 0.775, 1e4), Cusum()
    for n in range(200):
        cusum.add(chart, passed=False, weight=1.0, at_ns=n)
    assert cusum.alarmed
    needed = 0
    while cusum.alarmed:
        needed += 1
        cusum.add(chart, passed=True, weight=1.0, at_ns=200 + needed)
    assert needed <= chart.limit_steps + chart.jump + 1, "what was bad for long is not held against it for longer"
    assert cusum.since_ns is None


def test_a_weight_of_more_than_twice_the_largest_begins_anew():
    chart, cusum = design(0.9, 0.775, 1e4), Cusum()
    for n in range(50):
        cusum.add(chart, passed=False, weight=1.0, at_ns=n)
    cusum.add(chart, passed=False, weight=2.5, at_ns=50)
    assert not cusum.alarmed
    assert cusum.since_ns == 50


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([1.0, 1.5, 20.0])), max_size=60), st.integers(0, 60))
@settings(deadline=None, max_examples=50)
def test_a_restart_changes_nothing(seen, at):
    chart = design(0.9, 0.775, 1000.0)
    whole, first = Cusum(), Cusum()
    for n, (passed, weight) in enumerate(seen):
        whole.add(chart, passed=passed, weight=weight, at_ns=n)
    for n, (passed, weight) in enumerate(seen[:at]):
        first.add(chart, passed=passed, weight=weight, at_ns=n)
    second = Cusum()
    second.restore(json.loads(json.dumps(first.to_json())))
    for n, (passed, weight) in enumerate(seen[at:], start=min(at, len(seen))):
        second.add(chart, passed=passed, weight=weight, at_ns=n)
    assert second.to_json() == whole.to_json()

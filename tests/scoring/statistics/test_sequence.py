"""The confidence sequence: its bets are fair, its restarts survive, and its wealth is what the formula says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.scoring.statistics.sequence import BETS, GRID, ConfidenceSequence

DAY_NS = 86_400 * 10**9


def new(*levels: float, error: float = 0.05) -> ConfidenceSequence:
    return ConfidenceSequence(levels or (0.7, 0.85), error=error, period_ns=30 * DAY_NS)


@given(st.floats(0.05, 0.95), st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=6))
def test_the_expected_factor_is_one_at_the_level_whatever_the_weights(level, kinds):
    """Kinds of traffic with a weight each; their failures are made such that the weighted pass ratio is the level."""
    total = sum(weight for weight, _ in kinds)
    ratios = [ratio for _, ratio in kinds]
    now = sum(weight * ratio for (weight, _), ratio in zip(kinds, ratios, strict=True)) / total
    if now < level:  # move all towards 1, or towards 0, until the weighted ratio is the level
        ratios = [ratio + (1 - ratio) * (level - now) / (1 - now) for ratio in ratios]
    elif now > 0:
        ratios = [ratio * level / now for ratio in ratios]
    for bet in BETS:
        mean = 0.0
        for (weight, _), ratio in zip(kinds, ratios, strict=True):
            passed, failed = 1 - bet * weight, 1 + bet * weight * level / (1 - level)
            mean += (ratio * passed + (1 - ratio) * failed) / len(kinds)
        assert mean == pytest.approx(1.0, abs=1e-9)


def test_the_wealth_is_the_sum_over_all_beginnings():
    at = [0, 3, 4, 9, 15, 16, 30]
    seen = [True, False, False, True, False, False, False]
    sequence = ConfidenceSequence((0.8,), error=0.1, period_ns=100)
    for when, passed in zip(at, seen, strict=True):
        sequence.add(passed=passed, weight=7.0, at_ns=when)
    whole = 0.0
    for bet in BETS:
        for begin in range(1, len(at)):  # the income of each gap, multiplied by every factor after it
            product = (at[begin] - at[begin - 1]) / 100
            for passed in seen[begin + 1 :]:
                product *= 1 - bet if passed else 1 + bet * 0.8 / 0.2
            whole += product / len(BETS)
    assert sequence.evidence(0.8) == pytest.approx(whole * 0.1)


def test_failures_convince_first_of_the_higher_level_and_passes_take_it_back():
    sequence, reported = new(), []
    for n in range(400):
        sequence.add(passed=n % 2 == 0, weight=100.0, at_ns=n * 10**9)
        reported.append((sequence.below(0.85), sequence.below(0.7)))
    assert reported[-1] == (True, True)
    assert reported.index((True, False)) < reported.index((True, True))
    assert (False, True) not in reported
    for n in range(400, 600):
        sequence.add(passed=True, weight=100.0, at_ns=n * 10**9)
    assert not sequence.below(0.85)


def test_the_upper_bound_comes_down_in_steps_and_is_one_before_anything():
    sequence = ConfidenceSequence(GRID, error=0.05, period_ns=DAY_NS)
    assert sequence.upper == 1.0
    for n in range(2000):
        sequence.add(passed=n % 5 != 0 and n % 2 == 0, weight=1.0, at_ns=n * 10**9)
    assert 0.40 <= sequence.upper <= 0.60, "40 % pass"
    assert all(sequence.below(level) == (level >= sequence.upper) for level in GRID)


def test_a_level_of_one_and_of_nought_can_be_asked():
    sequence = new(0.0, 1.0)
    for n in range(50):
        sequence.add(passed=False, weight=1.0, at_ns=n * 10**9)
    assert sequence.below(1.0)


def test_a_much_heavier_weight_begins_anew():
    sequence = new()
    for n in range(300):
        sequence.add(passed=False, weight=1.0, at_ns=n * 10**9)
    assert sequence.below(0.7)
    sequence.add(passed=False, weight=3.0, at_ns=300 * 10**9)
    assert sequence.evidence(0.7) == 0.0


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([1.0, 1.9, 30.0]), st.integers(0, 10**12)), max_size=50),
    st.integers(0, 50),
)
@settings(deadline=None, max_examples=40)
def test_a_restart_changes_nothing_and_wealth_is_never_negative(seen, at):
    whole, first, second = new(), new(), new()
    for passed, weight, when in seen:
        whole.add(passed=passed, weight=weight, at_ns=when)
        assert whole.evidence(0.7) >= 0
        assert whole.evidence(0.85) >= whole.evidence(0.7)
    for passed, weight, when in seen[:at]:
        first.add(passed=passed, weight=weight, at_ns=when)
    second.restore(json.loads(json.dumps(first.to_json())))
    for passed, weight, when in seen[at:]:
        second.add(passed=passed, weight=weight, at_ns=when)
    assert second.to_json() == whole.to_json()


def test_after_a_change_of_thresholds_known_levels_go_on_and_new_ones_begin():
    before = new(0.7, 0.85)
    for n in range(200):
        before.add(passed=False, weight=1.0, at_ns=n * 10**9)
    after = new(0.7, 0.9)
    after.restore(json.loads(json.dumps(before.to_json())))
    assert after.below(0.7)
    assert not after.below(0.9)


@pytest.mark.parametrize(("error", "period"), [(0.0, 1), (1.0, 1), (0.5, 0)])
def test_what_promises_nothing_is_refused(error, period):
    with pytest.raises(ValueError, match="an error lies in"):
        ConfidenceSequence((0.5,), error=error, period_ns=period)

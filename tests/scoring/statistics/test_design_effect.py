"""The design effect against the cluster-robust variance, what one verdict is worth, and what that does to detectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sidejudge.scoring.statistics.cusum import Cusum, design
from sidejudge.scoring.statistics.design_effect import LARGEST, DesignEffect
from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.trace.time_units import DAY_NS


def fed(rng, *, clusters: int, size: int, agree: float, ratio: float = 0.9, weight: float = 1.0) -> DesignEffect:
    """Clusters of a size; of each this share is all alike, the others are as if there were none."""
    effect = DesignEffect()
    for number in range(clusters):
        alike, first = rng.random() < agree, bool(rng.random() < ratio)
        for _ in range(size):
            effect.add(str(number), passed=first if alike else bool(rng.random() < ratio), weight=weight)
    return effect


@pytest.mark.parametrize(("agree", "expected"), [(0.0, 1.0), (0.5, 3.0), (1.0, 5.0)])
@pytest.mark.parametrize("weight", [1.0, 100.0])
def test_it_is_one_where_verdicts_are_independent_and_the_size_of_a_cluster_where_they_agree(agree, expected, weight):
    effect = fed(np.random.default_rng(1), clusters=2500, size=5, agree=agree, weight=weight)
    assert effect.value == pytest.approx(expected, rel=0.15)


def test_it_is_the_variance_of_many_windows_over_that_of_independent_verdicts():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(600):
        sizes = rng.geometric(0.3, 60)
        passed = np.repeat(rng.random(60) < 0.8, sizes)
        ratios.append((passed.mean(), sizes.sum()))
    found = np.var([p for p, _ in ratios]) / (0.16 / np.mean([n for _, n in ratios]))
    effect = DesignEffect()
    for number in range(3000):
        passed = bool(rng.random() < 0.8)
        for _ in range(rng.geometric(0.3)):
            effect.add(str(number), passed=passed, weight=1.0)
    assert effect.value == pytest.approx(found, rel=0.15)


def test_without_clusters_it_is_exactly_one_and_every_verdict_counts_whole():
    effect = DesignEffect()
    assert {effect.add(None if i % 2 else str(i), passed=i % 3 > 0, weight=float(1 + i % 2)) for i in range(99)} == {
        1.0
    }
    assert effect.value == 1.0


def test_until_failing_clusters_were_seen_the_worst_case_holds():
    assert fed(np.random.default_rng(3), clusters=50, size=5, agree=1.0, ratio=1.0).value == pytest.approx(5)
    assert fed(np.random.default_rng(3), clusters=4, size=5, agree=0.0, ratio=0.9).value > 1.5


def test_a_cluster_that_goes_on_counts_for_three_typical_ones_at_most():
    effect = fed(np.random.default_rng(4), clusters=500, size=2, agree=1.0)
    worth = sum(effect.add("long", passed=False, weight=1.0) for _ in range(LARGEST))
    assert worth == pytest.approx(3, rel=0.5)


def test_an_id_that_all_traffic_shares_is_soon_found_to_say_nothing():
    effect, rng = DesignEffect(), np.random.default_rng(8)
    worths = [effect.add("default", passed=bool(rng.random() < 0.9), weight=1.0) for _ in range(1000)]
    assert effect.value < 1.5
    assert sum(worths[:100]) > 15


def test_what_a_verdict_is_worth_does_not_depend_on_how_it_comes_out():
    worths = set()
    for passed in (True, False):
        effect = fed(np.random.default_rng(5), clusters=100, size=3, agree=0.5)
        worths.add(effect.add("new", passed=passed, weight=1.0))
    assert len(worths) == 1


def test_it_survives_a_restart():
    effect, other = fed(np.random.default_rng(6), clusters=100, size=3, agree=0.5), DesignEffect()
    other.restore(effect.to_json())
    assert other.value == effect.value


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("earlier", [False, True])
def test_what_was_drawn_sparsely_before_does_not_hide_for_good_that_sessions_agree(earlier, together):
    """One trace in a hundred, each of a session of its own; then all, in sessions of five that agree."""
    effect, rng, now_ns = DesignEffect(), np.random.default_rng(9), 0

    def add(session: str, weight: float) -> None:
        passed = bool(rng.random() < 0.9)
        for _ in range(5 if weight == 1 else 1):
            if together:
                effect.add_together([Together(passed, weight, 1, 1, session)], at_ns=now_ns)
            else:
                effect.add(session, passed=passed, weight=weight, at_ns=now_ns)

    for number in range(500):
        add(f"before {number}", 100.0)
    assert effect.value == 1.0
    kept = effect.to_json()
    effect.restore({name: kept[name] for name in kept.keys() - {"largest", "even", "term"}} if earlier else kept)
    for number in range(600):
        now_ns += DAY_NS // 40
        add(f"since {number}", 1.0)
    assert effect.value == pytest.approx(5, rel=0.05)


def test_clusters_that_fail_together_do_not_multiply_false_alarms():
    """Sessions of five that agree, at the very ratio that is good: alarms of all, and of what they are worth."""
    rng, chart, every = np.random.default_rng(7), design(0.9, 0.75, 2000.0), 40_000
    plain, worth, alarms = Cusum(), Cusum(), [0, 0]
    effect = DesignEffect()
    sequence, convinced = ConfidenceSequence((0.9,), error=0.2, period_ns=every), False
    for number in range(every // 5):
        passed = bool(rng.random() < 0.9)
        for turn in range(5):
            share = effect.add(str(number), passed=passed, weight=1.0)
            at_ns = number * 5 + turn
            for place, (cusum, counted) in enumerate(((plain, 1.0), (worth, share))):
                before = cusum.alarmed
                cusum.add(chart, passed=passed, weight=1.0, at_ns=at_ns, worth=counted)
                alarms[place] += cusum.alarmed and not before
            sequence.add(passed=passed, weight=1.0, at_ns=at_ns, worth=share)
            convinced |= sequence.below(0.9)
    assert alarms[0] > 150
    assert alarms[1] <= every / 2000 + 4 * math.sqrt(every / 2000)
    assert not convinced

"""Verdicts that come together: what follows verdicts one by one takes them as one move that no order changes."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from sidejudge.scoring.statistics.baseline import Baseline
from sidejudge.scoring.statistics.cusum import Cusum, design
from sidejudge.scoring.statistics.design_effect import LARGEST, DesignEffect
from sidejudge.scoring.statistics.drop_level import DropLevel
from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.sequence import ConfidenceSequence

DAY_NS = 86_400 * 10**9


def new_sequence():
    return ConfidenceSequence((0.7, 0.85), error=0.05, period_ns=30 * DAY_NS)


def test_the_score_of_verdicts_that_come_together_is_never_above_that_of_one_by_one():
    rng, chart = random.Random(4), design(0.9, 0.775, 2000.0)
    alone, together = Cusum(), Cusum()
    for minute in range(400):
        group = Counter((rng.random() < (0.92 if minute < 200 else 0.7), 1.0) for _ in range(rng.randrange(9)))
        for passed, weight in rng.sample(list(group.elements()), group.total()):
            alone.add(chart, passed=passed, weight=weight, at_ns=minute)
        together.add_together(chart, [Together(*each, n, n) for each, n in group.items()], at_ns=minute)
        # After an alarm both are held near the limit, each at its own moment.
        assert alone.alarmed or together.score <= alone.score + 1e-9
        assert alone.alarmed or not together.alarmed
    assert together.alarmed
    assert (together.n, together.limit(chart)) == (alone.n, alone.limit(chart))


def test_a_verdict_that_comes_alone_moves_as_ever():
    rng, chart = random.Random(5), design(0.9, 0.775, 500.0)
    one, other, first, second = Cusum(), Cusum(), new_sequence(), new_sequence()
    for at_ns in range(0, 3 * DAY_NS, DAY_NS // 100):
        passed, weight, worth = rng.random() < 0.8, rng.choice([1.0, 1.5, 4.0]), rng.random()
        group = [Together(passed, weight, 1, worth)]
        one.add(chart, passed=passed, weight=weight, at_ns=at_ns, worth=worth)
        other.add_together(chart, group, at_ns=at_ns)
        assert other.to_json() == one.to_json()
        first.add(passed=passed, weight=weight, at_ns=at_ns, worth=worth)
        second.add_together(group, at_ns=at_ns)
        assert second.evidence(0.85) == pytest.approx(first.evidence(0.85), rel=1e-9)
    assert second.n == first.n


def test_the_sequence_of_verdicts_that_come_together_keeps_its_promise():
    """Wealth less what came in is a supermartingale: its mean stays below 0 at the threshold."""
    rng, gained = random.Random(6), []
    for _ in range(300):
        sequence, income = new_sequence(), 0.0
        for minute in range(60):
            group = Counter(rng.random() < 0.85 for _ in range(10))
            sequence.add_together([Together(each, 1.0, n, n) for each, n in group.items()], at_ns=minute * DAY_NS // 2)
            income += (1 / 60) * (minute > 0)
        gained.append(sequence.evidence(0.85) * 20 - income)
    mean = sum(gained) / len(gained)
    error = (sum((each - mean) ** 2 for each in gained) / len(gained) ** 2) ** 0.5
    assert mean < 3 * error


def test_the_usual_pass_ratio_of_verdicts_that_come_together_is_that_of_one_by_one():
    rng = random.Random(8)
    alone, together = Baseline(0.9), Baseline(0.9)
    for _ in range(200):
        group = Counter(rng.random() < 0.95 for _ in range(6))
        for passed in group.elements():
            alone.add(passed=passed, weight=3.0)
        together.add_together([Together(passed, 3.0, n, n) for passed, n in group.items()])
    assert together.lower == pytest.approx(alone.lower, abs=0.01)
    together.add_together([])
    before = together.lower
    together.add_together([Together(False, 9.0, 1, 1.0)])  # beyond twice the largest: it begins anew
    assert together.lower < before


def test_a_weight_beyond_twice_the_largest_begins_anew():
    sequence, cusum, chart = new_sequence(), Cusum(), design(0.9, 0.775, 500.0)
    for at_ns, weights in enumerate(([1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 5.0])):
        group = [Together(False, weight, 3, 3.0) for weight in weights]
        before = sequence.evidence(0.85)
        sequence.add_together(group, at_ns=at_ns * DAY_NS)
        cusum.add_together(chart, group, at_ns=1)
    assert before > 0
    assert sequence.evidence(0.85) == 0
    assert cusum.pass_ratio == 0.0
    cusum.add_together(chart, [], at_ns=2)
    sequence.add_together([], at_ns=2)


def test_the_design_effect_of_sessions_that_come_together_is_that_of_one_by_one():
    rng = random.Random(7)
    alone, together = DesignEffect(), DesignEffect()
    for minute in range(300):
        group: Counter[tuple[str | None, bool, float]] = Counter()
        for session in range(3):
            failing = rng.random() < 0.15
            group[f"{minute}/{session}", not failing, 2.0] += rng.randrange(1, 6)
        group[None, True, 2.0] += 2
        for cluster, passed, weight in sorted(group.elements(), key=str):
            alone.add(cluster, passed=passed, weight=weight)
        found = together.add_together(Together(passed, weight, n, n, c) for (c, passed, weight), n in group.items())
        assert sum(each.n for each in found) == group.total()
        assert all(0 <= each.worth <= each.n for each in found)
    assert together.value == pytest.approx(alone.value, rel=1e-9)
    assert together.value > 1.5


def test_a_session_of_all_traffic_counts_as_many_of_twenty():
    effect = DesignEffect()
    for _ in range(20):
        effect.add_together([Together(True, 1.0, 60, 60, "all"), Together(False, 1.0, 20, 20, "all")])
    assert effect._worst == pytest.approx(LARGEST)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_what_of_a_group_came_after_its_alarm_counts_no_more_than_in_any_order(share):
    rng, chart, compared, convinced = random.Random(9), design(0.9, 0.775, 2000.0), 0, 0
    for _ in range(100):
        passed = [rng.random() < share for _ in range(60)]
        group = [Together(side, 1.0, n, n) for side in (True, False) if (n := passed.count(side))]
        detector, together = Cusum(), DropLevel(0.7, 1e-30)  # so much that no wealth is given away
        spent = detector.add_together(chart, group, at_ns=0)
        assert (spent < 1) == detector.alarmed
        if not detector.alarmed:
            continue
        together.add_together(group)  # before it is noticed: the scale of weights alone
        together.noticed(alarmed=True)
        together.add_together(group, spent=spent)
        alone, level = Cusum(), DropLevel(0.7, 1e-30)
        for each in passed:
            level.add(passed=each, weight=1.0)
            alone.add(chart, passed=each, weight=1.0, at_ns=0)
            level.noticed(alarmed=alone.alarmed)
        if alone.alarmed:  # it was since: an alarm may be over at the end of the group
            compared += 1
            found, most = together.to_json()["wealth"], level.to_json()["wealth"]
            assert all(less <= more * (1 + 1e-9) for less, more in zip(found, most, strict=True))
            convinced += sum(found) / len(found) >= 1 / 0.08
    assert compared >= 50
    assert (convinced > 30) == (share < 0.5)

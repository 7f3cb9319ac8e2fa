"""Drop level: what was chosen because it looks bad does not count, and the promise holds for what comes after."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.drop_level import BETS, DropLevel
from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.sequence import ConfidenceSequence

LEVEL, ERROR = 0.7, 0.08


def noticed(weight: float = 1.0, *, level: float = LEVEL) -> DropLevel:
    """A drop that was noticed where weights so large were seen before."""
    found = DropLevel(level, ERROR)
    found.add(passed=True, weight=weight)
    found.noticed(alarmed=True)
    return found


def after(passed: int, failed: int) -> DropLevel:
    found = noticed()
    found.add_together([Together(side, 1.0, n, n) for side, n in ((True, passed), (False, failed)) if n])
    return found


def chance_of_ever(ratio: float, within: int) -> np.ndarray:
    """The chance that so many verdicts or fewer convince, for each number of them, by enumeration of all histories."""
    undecided, failures, ever = np.array([1.0]), 0, [0.0]  # undecided: the chance of each number of failures
    for n in range(1, within + 1):
        undecided = np.append(undecided * ratio, 0.0) + np.append(0.0, undecided * (1 - ratio))
        while failures <= n and not after(n - failures, failures).below:
            failures += 1
        ever.append(ever[-1] + undecided[failures:].sum())
        undecided[failures:] = 0.0
    return np.array(ever)


def test_at_the_level_itself_it_is_wrong_as_rarely_as_promised_however_often_one_looks():
    assert ERROR / 2 < chance_of_ever(LEVEL, 1_000)[-1] <= ERROR


def test_an_outage_needs_five_verdicts_and_ten_points_some_hundred():
    assert np.argmax(chance_of_ever(0.0, 20) > 0) == 5
    assert 100 <= np.argmax(chance_of_ever(0.60, 300) >= 0.5) <= 130


@given(passed=st.integers(0, 60), failed=st.integers(0, 40))
def test_it_convinces_once_the_mean_of_three_bets_has_grown_by_one_over_the_error(passed, failed):
    odds = Fraction(7, 3)
    wealth = [(1 - bet) ** passed * (1 + bet * odds) ** failed for bet in (Fraction(1, n) for n in (7, 3, 2))]
    found = after(passed, failed)
    assert found.below is (sum(wealth) / 3 >= 1 / Fraction("0.08"))
    assert found.to_json()["wealth"] == pytest.approx([min(float(each), 1_250) for each in wealth])


@pytest.mark.parametrize("spent", [0.0, 0.25, 1.0])
def test_failures_that_made_the_detector_alarm_count_as_if_they_had_not_been(spent):
    found = noticed()
    found.add_together([Together(True, 1.0, 3, 3), Together(False, 1.0, 8, 8)], spent=spent)
    expected = [(1 - 1 / n) ** 3 * (1 + LEVEL / (1 - LEVEL) / n) ** (8 * (1 - spent)) for n in (7, 3, 2)]
    assert found.to_json()["wealth"] == pytest.approx(expected)


@given(level=st.floats(0.01, 0.99))
def test_whatever_the_level_no_bet_pays_on_average_at_it(level):
    wealth = []
    for passed in (True, False):
        found = noticed(level=level)
        found.add(passed=passed, weight=1.0)
        wealth.append(np.array(found.to_json()["wealth"]))
    assert level * wealth[0] + (1 - level) * wealth[1] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("largest", [2.0, 4.0])
def test_whatever_the_weights_no_bet_pays_on_average_at_the_level(largest):
    """Half of all traffic is kept and passes at 0.6, a fourth of the rest, which passes at 0.8: the level is 0.7."""
    expected = np.zeros(3)
    for kept, ratio in ((1 / 2, 0.6), (1 / 4, 0.8)):
        for passed in (True, False):
            found = noticed(largest)
            found.add(passed=passed, weight=1 / kept)
            chance = 0.5 * kept * (ratio if passed else 1 - ratio)
            expected += chance * np.array(found.to_json()["wealth"])
    unseen = 1 - 0.5 * (1 / 2 + 1 / 4)
    assert expected + unseen == pytest.approx([1.0] * 3)


@pytest.mark.parametrize(
    ("group", "spent", "ratio"),
    [
        ([(True, 1.0, 3), (False, 1.0, 1)], 0.0, 3 / 4),
        ([(True, 1.0, 3), (False, 1.0, 2)], 0.5, 3 / 4),  # half of the failures made the detector alarm
        ([(True, 2.0, 3), (False, 1.0, 2)], 0.0, 6 / 8),  # weights count
        ([(False, 1.0, 2)], 1.0, None),
        ([(True, 5.0, 3), (False, 1.0, 1)], 0.0, None),  # a larger weight than any bet was made for: anew
    ],
)
def test_the_pass_ratio_is_that_of_the_traffic_since(group, spent, ratio):
    found = noticed()
    found.add_together([Together(passed, weight, n, 0.5 * n) for passed, weight, n in group], spent=spent)
    assert found.pass_ratio == (None if ratio is None else pytest.approx(ratio))


def test_a_weight_beyond_all_bets_begins_anew_and_goes_on_watching():
    found = after(0, 40)
    assert found.below
    found.add(passed=False, weight=3.0)
    assert (found.below, found.watches, found.pass_ratio) == (False, True, None)
    assert found.to_json()["wealth"] == [1.0] * 3


def test_an_alarm_that_goes_on_begins_nothing_anew():
    found = after(1, 3)
    before = found.to_json()
    found.noticed(alarmed=True)
    found.add_together([])
    assert found.to_json() == before


def test_a_million_failures_are_as_good_as_a_hundred():
    assert after(0, 10**6).to_json()["wealth"] == after(0, 100).to_json()["wealth"] == [1_250.0] * 3


def test_what_came_before_it_was_noticed_does_not_count():
    found = DropLevel(0.7, 0.08)
    for _ in range(100):
        found.add(passed=False, weight=1.0)
    found.noticed(alarmed=True)
    assert not found.below
    assert found.pass_ratio is None
    found.add(passed=True, weight=1.0)
    assert found.pass_ratio == 1


def test_it_lasts_until_the_evidence_is_gone_or_the_drop_is_over():
    found = DropLevel(0.7, 0.08)
    found.noticed(alarmed=True)
    for _ in range(40):
        found.add(passed=False, weight=1.0)
    count = 0
    while found.below:
        found.add(passed=True, weight=1.0)
        count += 1
    left = [sum(1_250 * (1 - 1 / n) ** passes for n in (7, 3, 2)) / 3 for passes in range(60)]
    assert count == sum(each > 1 for each in left)
    for _ in range(10):
        found.add(passed=False, weight=1.0)
    assert found.below
    found.noticed(alarmed=False)
    assert not found.below
    found.noticed(alarmed=True)
    found.add(passed=True, weight=1.0)
    assert (found.pass_ratio, found.to_json()["wealth"]) == (1.0, pytest.approx([6 / 7, 2 / 3, 1 / 2])), "anew"


def test_a_group_is_the_product_of_its_verdicts_and_a_restart_goes_on():
    alone, together = DropLevel(0.7, 0.08), DropLevel(0.7, 0.08)
    for each in (alone, together):
        each.add(passed=True, weight=20.0)
        each.noticed(alarmed=True)
    for passed, weight in ((True, 20.0), (False, 1.0), (False, 20.0)):
        alone.add(passed=passed, weight=weight, worth=0.5)
    together.add_together(
        [Together(passed, weight, 1, 0.5) for passed, weight in ((False, 20.0), (True, 20.0), (False, 1.0))]
    )
    assert together.to_json()["wealth"] == pytest.approx(alone.to_json()["wealth"])
    again = DropLevel(0.7, 0.08)
    again.restore(together.to_json())
    assert again.to_json() == together.to_json()


@pytest.mark.parametrize("wealth", [None, [2.0], [2.0] * 4])
def test_a_restart_with_no_drop_or_other_bets_knows_the_weights_alone(wealth):
    before = after(3, 1).to_json()
    again = DropLevel(LEVEL, ERROR)
    again.restore(before | {"wealth": wealth, "below": True, "largest": 8.0})
    assert again.to_json() == DropLevel(LEVEL, ERROR).to_json() | {"largest": 8.0}


def test_a_weight_of_exactly_twice_the_largest_so_far_is_a_bet_of_everything_and_no_error():
    """A sampling rate that is halved makes every weight twice as large."""
    found, sequence = DropLevel(0.7, 0.08), ConfidenceSequence((0.85,), error=0.1, period_ns=100)
    found.noticed(alarmed=True)
    for weight in (1.0, 1.0, 2.0):
        group = [Together(True, weight, 3, 3.0), Together(False, weight, 3, 3.0)]
        found.add_together(group)
        sequence.add_together(group, at_ns=int(weight))
    assert 0 <= sequence.evidence(0.85) < 1


@pytest.mark.parametrize(
    ("level", "error"),
    [(0.0, 0.1), (-0.1, 0.1), (1.0, 0.1), (1.1, 0.1), (0.7, 0.0), (0.7, -0.1), (0.7, 1.0), (0.7, 1.1)],
)
def test_what_cannot_be_a_level_or_a_chance_is_refused(level, error):
    with pytest.raises(ValueError, match="lie in"):
        DropLevel(level, error)


def test_a_graded_value_at_the_level_proves_nothing_and_others_lie_between_a_failure_and_a_pass():
    def wealth(passed: float) -> list[float]:
        found = DropLevel(0.7, 0.08, (0.01, *BETS))
        found.add(passed=True, weight=1.0)
        found.noticed(alarmed=True)
        found.add(passed=passed, weight=1.0)
        assert found.pass_ratio == pytest.approx(passed)
        return found.to_json()["wealth"]

    assert wealth(0.7) == pytest.approx([1.0] * 4)
    assert all(map(float.__gt__, wealth(0.0), wealth(0.5)))
    assert all(map(float.__gt__, wealth(0.5), wealth(0.7)))
    assert all(map(float.__gt__, wealth(0.7), wealth(1.0)))

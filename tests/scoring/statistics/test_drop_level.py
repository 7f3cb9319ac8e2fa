"""Drop level: what was chosen because it looks bad does not count, and the promise holds for what comes after."""

from __future__ import annotations

import numpy as np
import pytest

from sidejudge.scoring.statistics.drop_level import DropLevel
from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.sequence import ConfidenceSequence


def convinced(rng: np.random.Generator, ratio: float, *, n: int = 1_500) -> int | None:
    """After how many verdicts since it was noticed, if ever."""
    found = DropLevel(0.7, 0.08)
    found.noticed(alarmed=True)
    for number in range(n):
        found.add(passed=bool(rng.random() < ratio), weight=1.0)
        if found.below:
            return number + 1
    return None


def test_at_the_level_itself_it_is_wrong_as_rarely_as_promised_however_often_one_looks():
    rng = np.random.default_rng(1)
    wrong = sum(convinced(rng, 0.70) is not None for _ in range(100))
    assert 0 < wrong <= 100 * 0.08 + 4 * (100 * 0.08 * 0.92) ** 0.5


def test_an_outage_needs_six_verdicts_and_ten_points_some_hundred():
    rng = np.random.default_rng(2)
    assert convinced(rng, 0.0) == 6
    ten_points = [convinced(rng, 0.60) or 9_999 for _ in range(60)]
    assert 60 <= np.median(ten_points) <= 250


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
    assert 15 <= count <= 60
    for _ in range(10):
        found.add(passed=False, weight=1.0)
    assert found.below
    found.noticed(alarmed=False)
    assert not found.below


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


def test_a_weight_of_exactly_twice_the_largest_so_far_is_a_bet_of_everything_and_no_error():
    """A sampling rate that is halved makes every weight twice as large."""
    found, sequence = DropLevel(0.7, 0.08), ConfidenceSequence((0.85,), error=0.1, period_ns=100)
    found.noticed(alarmed=True)
    for weight in (1.0, 1.0, 2.0):
        group = [Together(True, weight, 3, 3.0), Together(False, weight, 3, 3.0)]
        found.add_together(group)
        sequence.add_together(group, at_ns=int(weight))
    assert 0 <= sequence.evidence(0.85) < 1


@pytest.mark.parametrize(("level", "error"), [(0.0, 0.1), (1.0, 0.1), (0.7, 0.0), (0.7, 1.0)])
def test_what_cannot_be_a_level_or_a_chance_is_refused(level, error):
    with pytest.raises(ValueError, match="lie in"):
        DropLevel(level, error)

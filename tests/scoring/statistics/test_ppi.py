"""Prediction-powered inference, against another implementation, a regression, its own algebra, and simulated judges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, wilson
from sidejudge.scoring.statistics.ppi import LabelSums, label_sums, offset, prediction_powered, rectified

COUNTS = st.tuples(*[st.integers(1, 400)] * 4).filter(lambda each: sum(each) >= 40)


def sums(both: int, people_only: int, judge_only: int, neither: int, weight: float = 1.0) -> LabelSums:
    cells = ((True, True, both), (True, False, people_only), (False, True, judge_only), (False, False, neither))
    return label_sums((people, judge, weight) for people, judge, n in cells for _ in range(n))


def arrays(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    people = np.repeat([1.0, 1.0, 0.0, 0.0], counts)
    return people, np.repeat([1.0, 0.0, 1.0, 0.0], counts)


@pytest.mark.parametrize(
    ("counts", "n", "passed", "rate", "lower", "upper"),
    [  # ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3, which brings a package called tests of its own
        ((160, 10, 12, 18), 90, 75, 0.845494, 0.798204, 0.892784),
        ((160, 10, 12, 18), 4000, 3320, 0.835937, 0.794172, 0.877703),
        ((60, 30, 40, 70), 90, 42, 0.446906, 0.378941, 0.514871),
        ((60, 30, 40, 70), 4000, 1880, 0.441403, 0.375508, 0.507298),
        ((300, 4, 30, 16), 90, 82, 0.864418, 0.829597, 0.899238),
        ((300, 4, 30, 16), 4000, 3651, 0.854950, 0.823167, 0.886734),
    ],
)  # fmt: skip
def test_it_is_what_ppi_python_finds(counts, n, passed, rate, lower, upper):
    found = prediction_powered(passed / n, n, sums(*counts))
    assert found.rate == pytest.approx(rate, abs=1e-3)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=6e-3)  # theirs adds nothing to the cells


@given(COUNTS)
def test_of_very_many_verdicts_it_is_a_regression(counts):
    people, judge = arrays(counts)
    rate = float(judge.mean())
    found = prediction_powered(rate, 1e9, sums(*counts))
    slope, level = np.polyfit(judge, people, 1)
    if isinstance(found, Unavailable):
        assert "other traffic" in found.reason
    elif 0 <= slope <= 1:
        assert found.rate == pytest.approx(level + slope * rate, abs=1e-6)
        assert prediction_powered(rate + 1e-6, 1e9, sums(*counts)).rate - found.rate == pytest.approx(
            1e-6 * slope, rel=0.01, abs=1e-9
        )


def test_a_judge_that_guesses_changes_nothing():
    found = prediction_powered(0.55, 1_000, sums(50, 50, 50, 50))
    assert found.rate == pytest.approx(0.5)
    assert found.upper - found.lower == pytest.approx(2 * Z_95_TWO_SIDED * (0.25 / 200) ** 0.5, rel=0.01)


def test_verdicts_narrow_what_labels_alone_say():
    labels = sums(160, 10, 12, 18)
    alone = wilson(170, 200, Z_95_TWO_SIDED)
    found = prediction_powered(0.86, 5_000, labels)
    assert found.upper - found.lower < 0.9 * (alone.upper - alone.lower)


def test_what_cannot_be_known_is_not_estimated():
    assert "count as 20, and 30 are needed" in prediction_powered(0.9, 100, sums(10, 4, 4, 2)).reason
    assert "no verdicts" in prediction_powered(0.0, 0, sums(30, 4, 4, 2)).reason
    assert "of other traffic" in prediction_powered(0.4, 1_000, sums(90, 4, 4, 2)).reason
    assert isinstance(offset(sums(10, 4, 4, 2)), Unavailable)
    with pytest.raises(ValueError, match="no rate"):
        prediction_powered(1.2, 10, sums(30, 4, 4, 2))


def test_the_scale_of_weights_does_not_matter_and_uneven_ones_count_less():
    even = sums(100, 10, 10, 20)
    heavy = sums(100, 10, 10, 20, weight=20.0)
    assert prediction_powered(0.8, 300, heavy).lower == pytest.approx(prediction_powered(0.8, 300, even).lower)
    mixed = label_sums([*[(True, True, 20.0)] * 5, *[(True, True, 1.0)] * 95, *[(False, False, 1.0)] * 20])
    assert mixed.size < 30
    assert "count as" in prediction_powered(0.9, 300, mixed).reason


def test_an_hour_is_not_drawn_to_the_month_of_its_labels():
    month = sums(900, 20, 30, 50)
    tuned, hour = prediction_powered(0.80, 40, month), rectified(0.80, 40, month)
    assert tuned.rate > 0.9
    assert hour.rate == pytest.approx(0.80 - 0.01)
    assert hour.lower < 0.70
    assert hour.upper > 0.85


@pytest.mark.parametrize(("pass_rate", "weights"), [(0.85, (1.0,)), (0.7, (1.0, 4.0))])
def test_the_bounds_hold_the_rate_as_often_as_they_promise(pass_rate, weights):
    rng, held, runs = np.random.default_rng(9), np.zeros(2), 1_000
    passes = pass_rate * 0.95 + (1 - pass_rate) * 0.2
    for _ in range(runs):
        people = rng.random(150) < pass_rate
        judge = np.where(people, rng.random(150) < 0.95, rng.random(150) < 0.2)
        labels = label_sums(zip(people.tolist(), judge.tolist(), rng.choice(weights, 150).tolist(), strict=True))
        rate = float(rng.binomial(120, passes)) / 120
        for place, found in enumerate((prediction_powered(rate, 120, labels), rectified(rate, 120, labels))):
            held[place] += isinstance(found, Unavailable) or found.lower <= pass_rate <= found.upper
    assert (held / runs > 0.93).all()

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.interval import missing_band

WEIGHTS = st.floats(0.0, 1e6)


@given(WEIGHTS, st.floats(0.0, 1.0), WEIGHTS)
def test_the_band_holds_every_way_in_which_the_missing_could_have_ended(weight, failing, missing):
    band = missing_band(weight=weight, failed_weight=weight * failing, missing_weight=missing)
    if weight + missing == 0:
        assert band is None
        return
    worst, between, best = (
        (weight * (1 - failing) + missing * passing) / (weight + missing) for passing in (0.0, 0.3, 1.0)
    )
    assert (band.worst, band.best) == (pytest.approx(worst), pytest.approx(best))
    assert band.worst - 1e-9 <= between <= band.best + 1e-9
    assert 0 <= band.worst <= band.best <= 1


def test_where_nothing_is_missing_it_is_the_estimate_and_where_all_is_it_is_everything():
    band = missing_band(weight=10.0, failed_weight=2.0, missing_weight=0.0)
    assert band.worst == band.best == pytest.approx(0.8)
    nothing = missing_band(weight=0.0, failed_weight=0.0, missing_weight=5.0)
    assert (nothing.worst, nothing.best) == (0.0, 1.0)


def test_sums_that_round_to_more_failed_than_there_is_leave_nothing_passed():
    band = missing_band(weight=0.3, failed_weight=0.1 + 0.2, missing_weight=0.3)
    assert (band.worst, band.best) == (0.0, 0.5)

"""Thresholds on people's pass rate as thresholds on the judge's, labels' doubt in the service's favour."""

from __future__ import annotations

import numpy as np
import pytest

from sidejudge.scoring.alerts.declaration import Declaration, judge_scale
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.ppi import LabelSums, rectified, rogan_gladen
from sidejudge.scoring.status.status import Thresholds

BOUNDS = Thresholds(warning=0.85, critical=0.70)


def labels(n: float, pass_rate: float = 0.8, positive: float = 0.95, negative: float = 0.8) -> LabelSums:
    good, bad = n * pass_rate, n * (1 - pass_rate)
    return LabelSums(
        both=good * positive, people_only=good * (1 - positive), judge_only=bad * (1 - negative),
        neither=bad * negative, squared=n, n=round(n),
    )  # fmt: skip


@pytest.mark.parametrize("correction", ["rogan_gladen", "ppi"])
def test_of_very_many_labels_it_is_where_the_corrected_rate_meets_the_threshold(correction):
    found = judge_scale(BOUNDS, labels(1e8), correction)
    for level, on_judge in ((0.85, found.warning), (0.70, found.critical)):
        if correction == "ppi":
            there = rectified(on_judge, 1e9, labels(1e8)).rate
        else:
            there = rogan_gladen(on_judge, 1e9, labels(1e8).true_positive, labels(1e8).true_negative).rate
        assert level - 0.015 < there <= level + 1e-3


def test_few_labels_move_it_down_and_none_leave_it():
    many, few = (judge_scale(BOUNDS, labels(n), "rogan_gladen") for n in (1_000, 60))
    assert few.warning < many.warning
    assert judge_scale(BOUNDS, None, "none") is BOUNDS
    for unknown in (None, labels(10), labels(40, pass_rate=1.0)):
        assert isinstance(judge_scale(BOUNDS, unknown, "rogan_gladen"), Unavailable)
    assert isinstance(judge_scale(BOUNDS, labels(100, positive=0.5, negative=0.4), "rogan_gladen"), Unavailable)


@pytest.mark.parametrize("correction", ["rogan_gladen", "ppi"])
def test_a_service_at_the_threshold_is_rarely_below_it_whatever_people_labelled(correction):
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(1_000):
        people = rng.random(150) < 0.85
        judge = np.where(people, rng.random(150) < 0.95, rng.random(150) < 0.2)
        cells = [people & judge, people & ~judge, ~people & judge, ~people & ~judge]
        both, people_only, judge_only, neither = (float(cell.sum()) for cell in cells)
        drawn = LabelSums(
            both=both, people_only=people_only, judge_only=judge_only, neither=neither, squared=150.0, n=150
        )
        found = judge_scale(BOUNDS, drawn, correction)
        wrong += found.warning > 0.85 * 0.95 + 0.15 * 0.2
    assert wrong <= 70


def test_a_declaration_follows_labels_of_the_rubrics_that_have_them():
    plain = Declaration(corrected="rogan_gladen")
    moved = plain.on_labels({"qa": labels(500), "entity": labels(5)})
    assert moved.policy_of("qa").thresholds.warning < 0.85
    assert moved.policy_of("entity").thresholds == moved.policy_of("other").thresholds == BOUNDS
    assert Declaration().on_labels({"qa": labels(500)}) == Declaration()

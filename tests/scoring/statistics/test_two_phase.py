"""Two-phase sampling: the strong judge's pass ratio, held against a simulation that knows it."""

from __future__ import annotations

import numpy as np
import pytest

from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.statistics.two_phase import DrawnSums, corrected


def sampled(rng, *, traces, rate, passes, kept, wrong, doubt=0.1):
    """One sample of a traffic: (passed by the strong judge, by the small one, in doubt, drawn, weight) a verdict.

    ``wrong`` is the chance that the small judge passes what the strong one fails where it is sure; it fails a third as
    often what the strong one passes. In doubt it guesses.
    """
    strong = rng.random(traces) < passes
    unsure = rng.random(traces) < doubt
    flip = rng.random(traces) < np.where(unsure, 0.5, np.where(strong, wrong / 3, wrong))
    probability = np.where(rng.random(traces) < 0.5, kept, 1.0)  # two kinds of traffic, unevenly sampled
    seen = rng.random(traces) < probability
    drawn = rng.random(traces) < rate
    return strong[seen], (strong ^ flip)[seen], unsure[seen], drawn[seen], 1 / probability[seen]


def estimated(strong, small, unsure, drawn, weight, rate):
    final = np.where(unsure | drawn, strong, small)
    found = estimate(zip(final.tolist(), weight.tolist(), strict=True))
    sure, chosen = ~unsure, ~unsure & drawn
    v = weight[chosen] / rate
    lost, won = small[chosen] & ~strong[chosen], ~small[chosen] & strong[chosen]
    sums = DrawnSums(
        sure_weight=weight[sure].sum(), drawn=int(chosen.sum()), drawn_base_weight=weight[chosen].sum(),
        drawn_weight=v.sum(), squared_weight=(v * v).sum(),
        failed_since=(v[lost].sum(), (v[lost] ** 2).sum()), passed_since=(v[won].sum(), (v[won] ** 2).sum()),
        replaced=weight[chosen][lost].sum() - weight[chosen][won].sum(),
    )  # fmt: skip
    return found, corrected(found, sums)


@pytest.mark.parametrize(
    ("passes", "wrong", "rate"), [(0.85, 0.30, 0.10), (0.60, 0.05, 0.05), (0.97, 0.50, 0.10), (0.90, 0.0, 0.05)]
)
def test_the_correction_is_unbiased_and_its_bounds_hold_as_often_as_they_promise(passes, wrong, rate):
    rng, runs = np.random.default_rng(7), 600
    plain, mended, below, above = [], [], 0, 0
    for _ in range(runs):
        data = sampled(rng, traces=1500, rate=rate, passes=passes, kept=0.3, wrong=wrong)
        found, true = estimated(*data, rate)
        plain.append(found.pass_ratio)
        mended.append(true.pass_ratio)
        below += true.upper < passes
        above += true.lower > passes
    error = np.std(mended) / np.sqrt(runs)
    assert abs(np.mean(mended) - passes) < max(4 * error, 0.002)
    if wrong >= 0.3:
        assert abs(np.mean(plain) - passes) > 10 * error, "uncorrected it is biased, so that the test can fail"
    # Each bound promises 95 %; the normal approximation may miss by a little.
    assert below / runs < 0.075
    assert above / runs < 0.075


def test_without_a_drawn_verdict_nothing_is_corrected():
    found = estimate([(True, 1.0)] * 9 + [(False, 1.0)])
    nothing = dict.fromkeys(("drawn_base_weight", "drawn_weight", "squared_weight", "replaced"), 0.0)
    nothing |= dict.fromkeys(("failed_since", "passed_since"), (0.0, 0.0))
    assert corrected(found, DrawnSums(sure_weight=10.0, drawn=0, **nothing)) is None


def test_a_few_drawn_verdicts_without_a_change_are_no_certainty():
    found = estimate([(True, 1.0)] * 90 + [(False, 1.0)] * 10)
    drawn = {"failed_since": (0.0, 0.0), "passed_since": (0.0, 0.0), "replaced": 0.0}
    few = DrawnSums(sure_weight=100, drawn=3, drawn_base_weight=3, drawn_weight=60, squared_weight=1200, **drawn)
    all_of_them = DrawnSums(
        sure_weight=100, drawn=100, drawn_base_weight=100, drawn_weight=100, squared_weight=100, **drawn
    )
    assert corrected(found, few).pass_ratio == pytest.approx(0.9)
    assert corrected(found, few).upper - corrected(found, few).lower > 2 * (found.upper - found.lower)
    assert corrected(found, all_of_them).upper == pytest.approx(found.upper)

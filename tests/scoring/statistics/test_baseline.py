"""What is usual at a service: near its pass ratio, slow to follow a fall, and the same after a restart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.baseline import MEMORY, Baseline


def after(ratio: float, n: int, *, size: int = 1, begin: Baseline | None = None, seed: int = 3) -> Baseline:
    """A baseline after n verdicts, in clusters of a size that agree and whose verdicts are worth as much as one."""
    rng, baseline = np.random.default_rng(seed), begin or Baseline(0.9)
    for _ in range(n // size):
        passed = bool(rng.random() < ratio)
        for _ in range(size):
            baseline.add(passed=passed, weight=4.0, worth=1 / size)
    return baseline


@pytest.mark.parametrize("ratio", [0.8, 0.87, 0.9, 0.96])
def test_it_learns_what_is_usual_and_stays_below(ratio):
    found = [after(ratio, 4_000, seed=seed).lower for seed in range(20)]
    error = (ratio * (1 - ratio) / (2 * MEMORY)) ** 0.5  # fading weights: Kish's size is twice the memory
    assert np.mean(found) == pytest.approx(ratio - error, abs=0.8 * error)
    assert np.mean([each < ratio for each in found]) >= 0.65


def test_a_short_fall_hardly_moves_it():
    before = after(0.96, 4_000)
    usual = before.lower
    assert usual - after(0.75, 40, begin=before).lower < 0.03


def test_verdicts_of_a_cluster_count_once():
    assert after(0.8, 1_000, size=5).lower == pytest.approx(after(0.8, 200).lower)


def test_it_goes_on_after_a_restart():
    first, second = after(0.8, 700), Baseline(0.9)
    second.restore(json.loads(json.dumps(first.to_json())))
    for each in (first, second):
        after(0.95, 300, begin=each)
    assert second.lower == first.lower


def test_a_detector_measures_from_what_is_usual_within_bounds():
    declared = Declaration()
    assert [declared.usual("qa", seen) for seen in (0.5, 0.86, 0.874, 0.9, 0.99)] == [0.85, 0.86, 0.87, 0.9, 0.93]
    assert declared.chart("qa", 50, 1, 0.87).good == 0.87
    assert declared.chart("qa", 50).good == pytest.approx(0.9)

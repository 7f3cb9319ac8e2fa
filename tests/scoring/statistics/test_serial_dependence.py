"""Serial dependence: clusters that nobody named are found; chance, days and one outage are none."""

from __future__ import annotations

import numpy as np
import pytest

from sidejudge.scoring.statistics.serial_dependence import MOST, SerialDependence


def after(failed: np.ndarray) -> SerialDependence:
    found = SerialDependence()
    for each in failed:
        found.add(bool(each))
    return found


def drawn(seed: int, n: int, *, ratio: float = 0.9, size: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.repeat(rng.random(n // size) >= ratio, size)


@pytest.mark.parametrize("size", [3, 5, 8])
def test_failures_that_come_in_runs_say_as_little_as_so_many_clusters(size):
    found = [after(drawn(seed, 8_000, size=size)).value for seed in range(8)]
    assert size * 0.7 <= float(np.median(found)) <= size * 1.3


@pytest.mark.parametrize("ratio", [0.99, 0.9, 0.6])
def test_verdicts_that_are_independent_count_whole(ratio):
    found = [after(drawn(seed, 6_000, ratio=ratio)).value for seed in range(40)]
    assert sum(each > 1 for each in found) <= 2


def test_a_pass_ratio_that_changes_by_day_and_night_is_no_clustering():
    rng = np.random.default_rng(3)
    ratio = 0.9 + 0.08 * np.sin(np.arange(12_000) / 1_200 * 2 * np.pi)
    assert after(rng.random(12_000) >= ratio).value == 1


def test_one_outage_is_no_clustering():
    failed = drawn(4, 3_000, ratio=0.98)
    failed[1_000:1_045] = True
    assert after(failed).value == 1


def test_no_value_is_beyond_its_range():
    assert SerialDependence().value == 1
    assert after(np.ones(500, bool)).value == 1
    assert after(np.zeros(500, bool)).value == 1
    assert after(drawn(5, 40_000, ratio=0.5, size=40)).value == MOST


def test_groups_without_an_order_find_the_same():
    failed, together = drawn(6, 20_000, size=5), SerialDependence()
    for begin in range(0, len(failed), 50):
        together.add(float(failed[begin : begin + 50].sum()), 50)
    assert together.value == pytest.approx(after(failed).value, rel=0.35)


def test_what_is_skipped_is_compared_with_nothing_and_a_restart_goes_on():
    failed, found = drawn(7, 4_000, size=5), SerialDependence()
    other = SerialDependence()
    for number, each in enumerate(failed):
        found.add(bool(each))
        other.add(bool(each))
        if number % 777 == 0:
            again = SerialDependence()
            again.restore(other.to_json())
            other = again
    assert other.to_json() == found.to_json()
    found.skip()
    before = found.value
    for _ in range(29):
        found.add(1.0)
    found.skip()
    assert found.value == before

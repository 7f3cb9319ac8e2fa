"""The difference of two sides, against statsmodels' cluster-robust errors and against looking at it all the time."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Compared, Difference, anytime_half_width, difference


def drawn(rng, n: int, ratio: float, *, after: bool, size: int = 1, stratum: str = "") -> list[Compared]:
    """Values whose clusters of ``size`` pass or fail together."""
    rows = []
    for number in range(math.ceil(n / size)):
        passed = float(rng.random() < ratio)
        cluster = f"{after}{number}{stratum}" if size > 1 else None
        rows += [Compared(after=after, value=passed, cluster=cluster, stratum=stratum)] * size
    return rows[:n]


@pytest.mark.parametrize("pass_rates", [True, False])
def test_the_error_of_one_look_is_the_cluster_robust_one_of_a_weighted_regression(pass_rates):
    wls = pytest.importorskip("statsmodels.api").WLS
    rng = np.random.default_rng(1)
    after, cluster = rng.random(400) < 0.5, rng.integers(0, 60, 400)
    values = (rng.random(400) < 0.7).astype(float) if pass_rates else rng.normal(size=400) + cluster / 20
    weights = rng.choice([1.0, 20.0], 400)
    rows = [
        Compared(bool(a), float(y), float(w), str(c))
        for a, y, w, c in zip(after, values, weights, cluster, strict=True)
    ]
    found = difference(rows, pass_rates=pass_rates)
    assert isinstance(found, Difference)
    exog = np.column_stack([np.ones(400), after])
    fitted = wls(values, exog, weights=weights).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    assert found.difference == pytest.approx(fitted.params[1])
    sizes = [sum(w := weights[after == side]) / max(w) for side in (False, True)]
    prior = (
        0.25
        if pass_rates
        else np.mean([np.cov(values[after == s], aweights=weights[after == s], ddof=0) for s in (0, 1)])
    )
    parts = weights * (values - np.where(after, fitted.params.sum(), fitted.params[0]))
    of = [
        [np.flatnonzero((cluster == c) & (after == side)) for c in np.unique(cluster[after == side])] for side in (0, 1)
    ]
    kish = [sum(sum(weights[at]) ** 2 for at in held) / sum(sum(weights[at] ** 2) for at in held) for held in of]
    pairs = [at for held in of for at in held if len(at) > 1]
    one_more = prior * np.mean(weights**2) * max(kish) * (max(kish) - 1)
    agree = (one_more + sum(sum(parts[at]) ** 2 - sum(parts[at] ** 2) for at in pairs)) / (
        one_more + sum((sum(weights[at]) ** 2 / sum(weights[at] ** 2) - 1) * sum(parts[at] ** 2) for at in pairs)
    )
    sizes = [size / (1 + max(0.0, agree) * (each - 1)) for size, each in zip(sizes, kish, strict=True)]
    added = sum(4 * prior / (size * (size + 4)) for size in sizes)
    assert found.standard_error**2 == pytest.approx(fitted.bse[1] ** 2 * 60 / 59 + added)


def test_a_small_side_is_not_worse_because_no_pass_was_drawn_where_failures_are_all_kept():
    drawn = [*[(False, 0.0, 1.0)] * 200, *[(False, 1.0, 100.0)] * 18, *[(True, 0.0, 1.0)] * 20]
    found = difference([Compared(after, value, weight) for after, value, weight in drawn])
    assert isinstance(found, Difference)
    assert found.difference == pytest.approx(-0.9)
    assert not found.is_worse()
    # 500 without a heavy one are no chance: from now on all are kept.
    drawn += [*[(True, 0.0, 1.0)] * 280, *[(True, 1.0, 1.0)] * 200]
    found = difference([Compared(after, value, weight) for after, value, weight in drawn])
    assert isinstance(found, Difference)
    assert found.is_worse()


def test_ten_sessions_that_all_passed_prove_no_more_for_their_many_turns():
    rows = [Compared(after, float(n > failed), 1.0, f"{after}{n}") for after, m, failed in SIDES for n in range(m)]
    few, many = difference(rows), difference([row for row in rows for _ in range(60)])
    assert isinstance(few, Difference)
    assert isinstance(many, Difference)
    assert not few.is_worse()
    assert not many.is_worse()
    assert many.upper == pytest.approx(few.upper, abs=0.03)


def test_a_few_sessions_whose_turns_agree_in_part_make_no_side_worse():
    rng, worse = random.Random(7), 0
    for _ in range(100):
        rows = [Compared(True, float(rng.random() < 0.9)) for _ in range(600)]
        for session in range(10):
            passes = rng.betavariate(0.9, 0.1)  # a correlation of 0.5
            rows += [Compared(False, float(rng.random() < passes), 1.0, str(session)) for _ in range(60)]
        found = difference(rows)
        assert isinstance(found, Difference)
        worse += found.is_worse()
    assert worse <= 5


@pytest.mark.parametrize(("unit", "why"), [(1e300, "and more cannot be compared"), (1e-300, "are all equal")])
def test_values_whose_variance_no_number_holds_cannot_be_compared(unit, why):
    found = difference([Compared(n % 2 > 0, n * unit) for n in range(20)], pass_rates=False)
    assert isinstance(found, Unavailable)
    assert why in found.reason


@pytest.mark.parametrize("long", [False, True])
def test_a_side_is_as_many_draws_as_it_has_itself_whatever_sessions_the_other_has(long):
    def of(values: Sequence[float], turns: int, *, after: bool) -> list[Compared]:
        return [Compared(after, each, 1.0, f"{after}{n}") for n, each in enumerate(values) for _ in range(turns)]

    apart = difference([*of([1.0, 0.0] * 50, 60, after=long), *of([0.0] * 100, 1, after=not long)])
    assert isinstance(apart, Difference)
    assert not apart.lower <= 0 <= apart.upper
    alike = difference([*of([1.0] * 8, 60, after=long), *of([1.0] * 950 + [0.0] * 50, 1, after=not long)])
    assert isinstance(alike, Difference)
    assert alike.lower <= 0 <= alike.upper


SIDES = ((False, 10, -1), (True, 100, 11))
"""Sessions of each side, and the last of them that failed."""


def test_sessions_of_many_turns_are_no_more_draws_than_there_are_sessions():
    sessions = [*[(False, 0.0, 1.0)] * 100, *[(False, 1.0, 100.0)] * 9, *[(True, 0.0, 1.0)] * 10]
    turns = [
        Compared(after, value, weight, cluster=str(session))
        for session, (after, value, weight) in enumerate(sessions) for _ in range(30)
    ]  # fmt: skip
    found = difference(turns)
    assert isinstance(found, Difference)
    assert not found.is_worse()


@pytest.mark.parametrize(("ratio", "size"), [(0.99, 1), (0.9, 1), (0.9, 5)])
def test_an_interval_that_is_looked_at_all_the_time_is_hardly_ever_wrong_where_one_of_a_fixed_look_often_is(
    ratio, size
):
    rng, wrong, fixed = np.random.default_rng(2), 0, 0
    for _ in range(30):
        rows, mistaken, naive = drawn(rng, 200, ratio, after=False, size=size), False, False
        for look in range(8):
            rows += [
                row._replace(cluster=row.cluster and f"{row.cluster}/{look}")
                for row in drawn(rng, 50, ratio, after=True, size=size)
            ]
            found = difference(rows)
            assert isinstance(found, Difference)
            mistaken |= not found.lower <= 0 <= found.upper
            naive |= abs(found.difference) > 1.28 * found.standard_error
        wrong, fixed = wrong + mistaken, fixed + naive
    assert wrong <= 30 * 0.05 + 4 * math.sqrt(30 * 0.05 * 0.95)
    assert fixed > wrong


def test_values_of_one_cluster_prove_less_than_as_many_of_their_own():
    rng = np.random.default_rng(3)
    rows = drawn(rng, 300, 0.8, after=False, size=5) + drawn(rng, 300, 0.8, after=True, size=5)
    together, apart = difference(rows), difference([row._replace(cluster=None) for row in rows])
    assert isinstance(together, Difference) and isinstance(apart, Difference)  # noqa: PT018  # types
    assert together.difference == apart.difference
    assert 1.5 < together.standard_error / apart.standard_error < 3
    assert (together.before.n, together.before.clusters) == (300, 60)


def test_a_mix_that_changed_is_no_difference_within_strata():
    """Hard questions grew from a tenth of the traffic to a half; each kind passes as before."""
    rows = [
        Compared(after=after, value=float(i % 10 < passes), stratum=kind)
        for after, kind, n, passes in [
            (False, "easy", 450, 9), (False, "hard", 50, 5), (True, "easy", 250, 9), (True, "hard", 250, 5)
        ]
        for i in range(n)
    ]  # fmt: skip
    plain, alike = difference([row._replace(stratum="") for row in rows]), difference(rows)
    assert isinstance(plain, Difference) and isinstance(alike, Difference)  # noqa: PT018  # types
    assert plain.difference == pytest.approx(-0.16)
    assert plain.upper < 0
    assert alike.difference == pytest.approx(0)
    assert alike.strata == 2
    assert alike.before.raw_mean == pytest.approx(0.86)
    assert alike.before.mean == pytest.approx(0.78)


def test_a_stratum_of_one_side_is_left_out_and_the_share_that_was_compared_is_reported():
    rows = [Compared(after=i % 2 == 0, value=float(i % 3 > 0)) for i in range(100)]
    found = difference([*rows, *(Compared(after=True, value=0.0, stratum="new") for _ in range(50))])
    assert isinstance(found, Difference)
    assert found.compared == pytest.approx(0.75)
    assert found.after.n == 100
    assert found.after.mean > found.after.raw_mean


def test_one_user_on_both_sides_is_one_cluster_and_narrows_the_interval():
    rng = np.random.default_rng(4)
    rows = []
    for user in range(100):
        value = float(rng.random() < 0.7)
        rows += [Compared(False, value, cluster=str(user)), Compared(True, value, cluster=str(user))]
    paired, apart = difference(rows), difference([row._replace(cluster=None) for row in rows])
    assert isinstance(paired, Difference) and isinstance(apart, Difference)  # noqa: PT018  # types
    assert paired.upper - paired.lower < apart.upper - apart.lower


def test_that_nothing_fails_on_either_side_proves_little():
    found = difference([Compared(after=i % 2 == 0, value=1.0) for i in range(40)])
    assert isinstance(found, Difference)
    assert found.lower < -0.2
    assert found.upper > 0.2


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "nothing on the side before"),
        ([Compared(False, 1.0)] * 10, "nothing on the side after"),
        ([Compared(after, 1.0, stratum=str(after)) for after in (False, True)] * 10, "no stratum in common"),
        ([Compared(False, 1.0)] * 10 + [Compared(True, 1.0)] * 4, "10 before and 4 after"),
        ([Compared(after, 1.0, cluster="one") for after in (False, True)] * 10, "1 before and 1 after"),
    ],
)
def test_what_cannot_be_compared_is_unavailable_with_the_reason(rows, why):
    found = difference(rows)
    assert isinstance(found, Unavailable)
    assert why in found.reason


def test_metrics_that_never_vary_have_no_interval():
    found = difference([Compared(after=i % 2 == 0, value=7.0) for i in range(40)], pass_rates=False)
    assert isinstance(found, Unavailable)


def test_gates_ask_for_what_is_convincing():
    counts = Counter()
    for fails in (1, 5):
        rows = [Compared(False, float(i % 10 >= 1)) for i in range(900)]
        found = difference([*rows, *(Compared(True, float(i % 10 >= fails)) for i in range(900))])
        assert isinstance(found, Difference)
        assert (found.lower > -0.1, found.upper > -0.5) == (fails == 1, True)
        counts[fails] = found.is_worse()
    assert counts == {1: 0, 5: 1}


def test_the_interval_is_tightest_where_what_matters_is_found():
    """Relative to a fixed look, and 1.6 times as wide there."""

    def ratio(variance: float) -> float:
        return anytime_half_width(variance, error=0.05, aim=0.05) / (1.96 * math.sqrt(variance))

    at = (0.05 / 1.96) ** 2
    best = min((at * 2 ** (k / 8) for k in range(-40, 41)), key=ratio)
    assert best == pytest.approx(at, rel=0.2)
    assert 1.5 < ratio(at) < 1.65


@pytest.mark.parametrize("bad", [{"error": 0.0}, {"error": 1.0}, {"matters": 0.0}])
def test_settings_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match="an error lies"):
        difference([Compared(False, 1.0)], **bad)
    with pytest.raises(ValueError, match="finite"):
        difference([Compared(False, math.nan)])

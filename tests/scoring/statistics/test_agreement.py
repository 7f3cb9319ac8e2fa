"""Agreement of two raters, against scikit-learn, statsmodels and published tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.agreement import Confusion, Kappa, cohen_kappa, gwet_ac1, ordinal_weights

tables = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 60), min_size=k, max_size=k), min_size=k, max_size=k)
)
SCHEMES = {None: None, "linear": 1, "quadratic": 2}


def confusion(rows) -> Confusion:
    return Confusion(tuple(map(tuple, rows)))


def kappa(table: Confusion, scheme: str | None) -> Kappa | Unavailable:
    power = SCHEMES[scheme]
    return cohen_kappa(table, None if power is None else ordinal_weights(range(len(table.counts)), power))


def varies(rows) -> bool:
    """Both raters use two categories at least, and something agrees or not by more than chance can tell."""
    counts = np.array(rows)
    return bool((counts.sum(0) > 0).sum() > 1 and (counts.sum(1) > 0).sum() > 1)


@given(tables, st.sampled_from(list(SCHEMES)))
def test_the_value_equals_scikit_learn(rows, scheme):
    assume(varies(rows))
    pairs = [(i, j) for i, row in enumerate(rows) for j, count in enumerate(row) for _ in range(count)]
    people, ours = zip(*pairs, strict=True)
    expected = cohen_kappa_score(people, ours, labels=list(range(len(rows))), weights=scheme)
    assert kappa(confusion(rows), scheme).value == pytest.approx(expected, abs=1e-9)


@given(tables, st.sampled_from(list(SCHEMES)))
def test_error_and_interval_equal_statsmodels(rows, scheme):
    assume(varies(rows))
    found = kappa(confusion(rows), scheme)
    assume(found.standard_error is not None)
    theirs = cohens_kappa(np.array(rows), wt=scheme)
    # Both take the root of a difference: what is left of it is compared as a variance.
    assert found.standard_error**2 == pytest.approx(theirs.var_kappa, rel=1e-6, abs=1e-12)
    assert found.lower == pytest.approx(max(-1, theirs.kappa_low), abs=1e-5)
    assert found.upper == pytest.approx(min(1, theirs.kappa_upp), abs=1e-5)


@given(tables)
def test_raters_may_change_places(rows):
    there, back = confusion(rows), confusion(zip(*rows, strict=True))
    for figure in (cohen_kappa, gwet_ac1):
        one, other = figure(there), figure(back)
        if isinstance(one, Kappa):
            assert (one.value, one.upper) == pytest.approx((other.value, other.upper), abs=1e-6)
        elif isinstance(one, float):
            assert one == pytest.approx(other)
        else:
            assert one == other


@given(tables)
def test_an_interval_holds_the_value_and_is_never_a_point(rows):
    found = cohen_kappa(confusion(rows))
    if isinstance(found, Kappa):
        assert -1 <= found.lower <= found.value <= found.upper <= 1
        assert found.lower < found.upper


@given(tables)
def test_ac1_is_its_definition(rows):
    counts = np.array(rows, dtype=float)
    assume(counts.sum() > 0)
    shares = counts / counts.sum()
    q = (shares.sum(0) + shares.sum(1)) / 2
    chance = (q * (1 - q)).sum() / (len(q) - 1)
    found = gwet_ac1(confusion(rows))
    assert found == pytest.approx((np.trace(shares) - chance) / (1 - chance), abs=1e-9)
    assert -1 - 1e-9 <= found <= 1 + 1e-9


def test_gwets_paradox_is_told_apart():
    # 125 subjects, of whom the raters agree on 118: Gwet's example of high agreement and a kappa below 0.
    table = Confusion(((118, 5), (2, 0)))
    assert cohen_kappa(table).value == pytest.approx(-0.0234, abs=1e-4)
    assert gwet_ac1(table) == pytest.approx(0.9408, abs=1e-4)


def test_the_textbook_table_of_fifty_grants_has_kappa_four_tenths():
    assert cohen_kappa(Confusion(((20, 5), (10, 15)))).value == pytest.approx(0.4)


def test_agreement_without_exception_claims_no_certainty():
    few, many = cohen_kappa(Confusion(((2, 0), (0, 2)))), cohen_kappa(Confusion(((200, 0), (0, 200))))
    assert (few.value, few.standard_error, many.value) == (1.0, None, 1.0)
    assert few.lower < 0.3
    assert 0.9 < many.lower < 1.0


def test_steps_of_an_uneven_scale_weigh_by_their_distance():
    assert ordinal_weights([0.0, 1.0, 4.0], 1) == [[1, 0.75, 0], [0.75, 1, 0.25], [0, 0.25, 1]]
    with pytest.raises(ValueError, match="two values"):
        ordinal_weights([1.0, 1.0], 1)


@pytest.mark.parametrize("counts", [((0, 0), (0, 0)), ((7, 0), (0, 0)), ((5,),), ()])
def test_without_variation_kappa_is_unavailable(counts):
    assert isinstance(cohen_kappa(Confusion(counts)), Unavailable)


def test_without_pairs_or_categories_ac1_is_unavailable():
    assert gwet_ac1(Confusion(((0, 0), (0, 0)))) == Unavailable("there are no pairs")
    assert gwet_ac1(Confusion(((4,),))) == Unavailable("there is only one category")


@pytest.mark.parametrize("counts", [((1, 2),), ((1, -1), (0, 0))])
def test_what_is_no_table_of_counts_is_refused(counts):
    with pytest.raises(ValueError, match="square"):
        Confusion(counts)

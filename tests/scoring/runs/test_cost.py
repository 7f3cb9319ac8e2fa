"""Cost-adjusted rank: final score over normalised cost, descending."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.runs.final import rank_by_cost

names = st.sampled_from("abcdefgh")
finals = st.dictionaries(names, st.none() | st.floats(0, 1), min_size=1)
costs = st.dictionaries(names, st.none() | st.floats(1e-6, 1e6))


def test_cost_is_measured_in_the_cheapest_models() -> None:
    found = rank_by_cost({"dear": 0.9, "cheap": 0.8}, {"dear": 3.0, "cheap": 1.5})
    assert (found["dear"].efficiency, found["dear"].rank) == (0.45, 2)
    assert (found["cheap"].efficiency, found["cheap"].rank) == (0.8, 1)


def test_equal_efficiencies_share_a_rank_and_the_next_is_left_out() -> None:
    found = rank_by_cost({"a": 0.8, "b": 0.4, "c": 0.1}, {"a": 2.0, "b": 1.0, "c": 1.0})
    assert [found[name].rank for name in "abc"] == [1, 1, 3]


def test_without_a_cost_or_a_score_there_is_no_rank_but_a_reason() -> None:
    found = rank_by_cost({"a": 0.8, "b": 0.9, "c": None, "free": 0.5}, {"a": 1.0, "c": 1.0, "free": 0.0})
    assert found["a"].rank == 1
    assert [(found[name].rank, found[name].reason) for name in ("b", "c", "free")] == [
        (None, "the cost is unknown"),
        (None, "there is no final score"),
        (None, "a cost of 0 cannot be compared"),
    ]


def test_the_cheapest_counts_even_where_it_has_no_score() -> None:
    assert rank_by_cost({"a": 0.8, "b": None}, {"a": 2.0, "b": 1.0})["a"].efficiency == 0.4


@given(finals, costs)
def test_ranks_follow_efficiencies_whatever_the_order_of_the_models(scores, prices) -> None:
    found = rank_by_cost(scores, prices)
    turned = rank_by_cost(dict(reversed(scores.items())), dict(reversed(prices.items())))
    assert found == turned
    ranked = [place for place in found.values() if place.rank is not None]
    for place in ranked:
        assert place.efficiency is not None
        assert 0 <= place.efficiency <= 1
        assert place.rank == 1 + sum(other.efficiency > place.efficiency for other in ranked)
    assert all(place.reason for place in found.values() if place.rank is None)


@given(st.floats(0.01, 1), st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_currency_does_not_matter(score, cost, rate) -> None:
    one = rank_by_cost({"a": score, "b": 0.5}, {"a": cost, "b": 1.0})
    other = rank_by_cost({"a": score, "b": 0.5}, {"a": cost * rate, "b": rate})
    for name in "ab":
        assert abs(one[name].efficiency - other[name].efficiency) < 1e-8

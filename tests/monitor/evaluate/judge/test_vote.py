"""Panels: one answer of several, whole, or none; and they say when they differ."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.evaluate.judge.vote import SplitError, agree, disagrees


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.sampled_from(["majority", "median"]))
def test_a_yes_or_no_is_decided_by_majority_and_a_tie_by_nobody(votes, rule):
    if votes.count(True) * 2 == len(votes):
        with pytest.raises(SplitError):
            agree(votes, rule)
    else:
        value, spokesman = agree(votes, rule)
        assert value is (votes.count(True) * 2 > len(votes))
        assert votes[spokesman] is value


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_numbers_come_to_their_median(numbers):
    value, spokesman = agree(numbers, "majority")
    assert (value, spokesman) == agree(numbers, "median")
    if max(numbers.count(each) for each in numbers) * 2 <= len(numbers):
        assert value == statistics.median(numbers)
    assert spokesman is None or numbers[spokesman] == value
    assert min(numbers) <= value <= max(numbers)


def test_levels_that_all_differ_have_no_majority():
    assert agree([{"level": "good"}, {"level": "poor"}, {"level": "good"}], "majority") == ({"level": "good"}, 0)
    with pytest.raises(SplitError, match="half of 3"):
        agree([{"level": "good"}, {"level": "poor"}, {"level": "failed"}], "majority")


def grade(accuracy, faithfulness, rationale):
    return {"accuracy_score": accuracy, "faithfulness_score": faithfulness, "rationale": rationale}


def test_an_answer_of_several_parts_is_one_members_answer_as_a_whole():
    said = [grade(2, 1, "it is well"), grade(2, 0, "not quite so"), grade(1, 1, "so and so")]
    assert agree(said, "median") == (said[0], 0)
    with pytest.raises(SplitError):
        agree(said, "majority")
    with pytest.raises(SplitError, match="none in the middle"):
        agree(said[1:], "median")


def test_other_words_are_no_disagreement_other_scores_are():
    assert not disagrees([grade(2, 2, "all is well"), grade(2, 2, "it holds")])
    assert disagrees([grade(2, 2, "all is well"), grade(2, 1, "all is well")])
    assert not disagrees([("One fact here.", "Two."), ("Another fact there.",)])
    assert disagrees([True, False])
    assert not disagrees([1])


def test_lists_of_findings_are_compared_by_what_they_find():
    def claims(*accurate):
        return {
            "claims": [{"claim": f"claim {n}", "importance": "major", "accurate": a} for n, a in enumerate(accurate)]
        }

    said = [claims(True, True), claims(True, False), claims(False, False, False)]
    assert agree(said, "median") == (said[1], 1)
    assert agree([said[0], claims(True, True, True), said[2]], "majority") == (said[0], 0)


json = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | st.sampled_from(["good", "poor", "a text of words", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(json, min_size=1, max_size=5), st.sampled_from(["majority", "median"]))
def test_whatever_is_answered_the_panel_answers_or_is_split(values, rule):
    try:
        value, spokesman = agree(values, rule)
    except SplitError:
        assert disagrees(values)
        return
    assert spokesman is None or values[spokesman] is value or values[spokesman] == value

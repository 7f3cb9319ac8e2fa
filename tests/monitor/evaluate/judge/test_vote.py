"""Votes: each field by itself, texts from the side that was chosen, and the dissent beside it."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.evaluate.judge.panel import SplitError, vote


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.sampled_from(["majority", "median"]))
def test_a_yes_or_no_is_decided_by_majority_and_a_tie_by_nobody(ballots, rule):
    if ballots.count(True) * 2 == len(ballots):
        with pytest.raises(SplitError):
            vote(ballots, rule)
    else:
        found = vote(ballots, rule)
        assert found.value is (ballots.count(True) * 2 > len(ballots))
        assert ballots[found.side] is found.value
        assert found.dissent == pytest.approx(ballots.count(not found.value) / len(ballots))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.sampled_from(["majority", "median"]))
def test_fractions_come_to_their_median(numbers, rule):
    assert vote(numbers, rule).value == statistics.median(numbers)


def grade(accuracy, faithfulness, rationale="as it says"):
    return {"accuracy_score": accuracy, "faithfulness_score": faithfulness, "rationale": rationale}


def test_a_majority_in_each_field_decides_though_no_two_answers_are_alike():
    stated = [grade(2, 2, "first one"), grade(1, 2, "second one"), grade(1, 0, "third one")]
    for rule in ("majority", "median"):
        found = vote(stated, rule)
        assert (found.value, found.side) == (stated[1], 1)
        assert found.dissent == pytest.approx(2 / 6)


def test_three_scores_between_0_and_1_come_to_the_median_of_each():
    names = ("answer_quality", "factual_correctness", "completeness")
    stated = [dict(zip(names, each, strict=True)) for each in ((0.9, 0.9, 0.8), (0.9, 0.8, 0.9), (0.8, 0.9, 0.9))]
    for rule in ("majority", "median"):
        assert vote(stated, rule).value == dict.fromkeys(names, 0.9)


def agent(score, code, turns, reason):
    return {"score": score, "failure_code": code, "turns": turns, "reason": reason}


def test_codes_turns_and_reasons_are_no_votes_and_come_from_the_chosen_side():
    stated = [
        agent(4, None, [], "Fine, it did."),
        agent(2, "wrong_tool", [1], "It called another."),
        agent(2, "tool_wrong", [1, 2], "Not the tool."),
    ]
    assert vote(stated, "majority").value == stated[1]
    alike = [agent(2, code, [at], f"reason {at}") for at, code in enumerate(("a", "b", "c"))]
    found = vote(alike, "majority")
    assert (found.value, found.dissent) == (alike[0], 0.0)


def test_what_is_unanimous_stands_beside_a_field_that_is_split():
    with pytest.raises(SplitError) as split:
        vote([grade(2, 1), grade(1, 1), grade(0, 1)], "majority")
    assert split.value.split == ("accuracy_score",)
    assert split.value.decided.value == {"accuracy_score": None, "faithfulness_score": 1, "rationale": "as it says"}
    assert split.value.decided.dissent == pytest.approx(0.5)
    with pytest.raises(SplitError) as split:
        vote([True, False], "majority")
    assert split.value.decided is None


def test_levels_that_all_differ_have_no_majority():
    good, poor, failed = ({"level": level} for level in ("good", "poor", "failed"))
    assert vote([good, poor, good], "majority").value == good
    for rule in ("majority", "median"):
        with pytest.raises(SplitError, match="half of 3"):
            vote([good, poor, failed], rule)


def test_a_category_of_several_words_is_a_vote_as_any_other():
    found = vote(["very good", "partly good", "partly good"], "majority")
    assert (found.value, found.side, found.dissent) == ("partly good", 1, pytest.approx(1 / 3))
    for rule in ("majority", "median"):
        with pytest.raises(SplitError, match="half of 3"):
            vote(["very good", "partly good", "poor"], rule)


def test_who_cannot_tell_does_not_vote():
    assert vote(["cannot tell", 0.5, 0.9], "majority").value == 0.7
    assert vote(["cannot tell", "very good", "very good"], "majority").value == "very good"
    assert vote(["cannot tell", "cannot tell", "very good"], "majority").value == "cannot tell"


def test_whole_numbers_that_all_differ_are_split_or_the_one_in_the_middle():
    stated = [grade(2, 1), grade(1, 1), grade(0, 1)]
    assert vote(stated, "median").value == stated[1]
    with pytest.raises(SplitError):
        vote(stated, "majority")


def test_pieces_are_decided_one_by_one():
    assert vote([(True, False, True), (True, True, False), (False, True, True)], "majority").value == (True,) * 3


def claims(*accurate):
    return {"claims": [{"claim": f"claim {n}", "importance": "major", "accurate": a} for n, a in enumerate(accurate)]}


def test_a_list_of_findings_is_that_of_the_member_in_the_middle():
    stated = [claims(True, True), claims(True, False), claims(False, False, False)]
    assert vote(stated, "median").value == stated[1]
    assert vote([stated[0], claims(True, True, True), stated[2]], "majority").value == stated[0]
    with pytest.raises(SplitError, match="none in the middle"):
        vote([stated[0], stated[2]], "majority")


def reasoning(score, *, expected):
    return {"steps": [{"step": "so it follows", "score": score}], "expected": expected}


def test_a_list_beside_another_field_is_that_of_the_member_in_the_middle_whoever_agrees_with_the_most():
    stated = [reasoning(0.0, expected=True), reasoning(0.5, expected=False), reasoning(1.0, expected=True)]
    assert vote(stated, "majority").value == reasoning(0.5, expected=True)


def test_other_words_are_no_dissent():
    assert vote([grade(2, 2, "all is well"), grade(2, 2, "it holds")], "majority").dissent == 0.0
    assert vote([("One fact here.", "Two."), ("Another fact there.",)], "majority").dissent == 0.0


json = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | st.sampled_from(["good", "poor", "a text of words", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(json, min_size=1, max_size=5), st.sampled_from(["majority", "median"]))
def test_whatever_is_answered_the_panel_answers_or_is_split(values, rule):
    try:
        found = vote(values, rule)
    except SplitError:
        assert len(values) > 1
        return
    assert 0.0 <= found.dissent <= 1.0
    assert type(found.value) is type(values[found.side]) or isinstance(found.value, int | float)

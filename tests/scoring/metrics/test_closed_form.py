"""Closed-form fields: what they are, how their items find each other, and what both sides are counted by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.metrics.closed_form import compare, is_closed

SCALARS = st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "B", "refund approved", "x y z"])
ROWS = st.dictionaries(st.integers(0, 9).map(str), st.tuples(SCALARS, SCALARS), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "value", [5, 0.5, True, None, "PASS_FAIL", "Priya Sharma", "negative.", "退款吧", "Dr. Rao", "3 days"]
)
def test_labels_scores_ids_and_short_texts_are_of_closed_form(value):
    assert is_closed(value)


@pytest.mark.parametrize(
    "value", ["It was paid.", "a refund of $49", "", " ", "x" * 300, float("nan"), [], {}, "客户要求退款"]
)
def test_prose_and_what_is_no_value_is_not(value):
    assert not is_closed(value)


@pytest.mark.parametrize(
    ("found", "expected", "matched", "places"),
    [
        ({"a": 1}, {"a": 1.0}, 1, 1),
        ({"a": True}, {"a": 1}, 0, 1),
        ({"a": "5"}, {"a": 5}, 0, 1),
        ({"a": None}, {"a": None}, 1, 1),
        ({}, {"a": None}, 0, 1),
        ({"a": " ＮＥＧＡＴＩＶＥ "}, {"a": "negative"}, 1, 1),
        ({"a": "₹४९"}, {"a": "₹49"}, 1, 1),
        ({"a": "x", "b": "y"}, {"a": "x"}, 1, 2),
        ({"a": "x"}, {"a": "x", "b": "y"}, 1, 2),
        (["b", "a"], ["a", "b"], 2, 2),
        (["a", "a"], ["a", "b"], 1, 2),
        (["a", "b", "c"], ["a"], 1, 3),
        ([], ["a"], 0, 1),
        ("text", {"a": 1}, 0, 2),
        ({"a": {"b": 1}}, {"a": 1}, 0, 2),
        ({"a": [1]}, {"a": {"b": 1}}, 0, 2),
        ([{"x": 1}, {"x": 1}], [{"x": 1}, {"x": 1}], 2, 2),
        ([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 1}], 1, 3),
        ([[1, 2]], [[1.0, 2.0]], 2, 2),
        ([[True], ["5"]], [[1], [5]], 0, 4),
        ([{"x": " A", "y": 2.0}] * 2, [{"x": "a", "y": 2}] * 2, 4, 4),
    ],
)
def test_fields_are_counted_on_both_sides(found, expected, matched, places):
    reported = compare(found, expected)
    assert (reported.matched, reported.places) == (matched, places)


def test_items_are_matched_by_id_never_by_position_and_strange_ones_are_told():
    expected = [{"id": 1, "label": "a"}, {"id": 2, "label": "b"}]
    found = [{"id": 2, "label": "b"}, {"id": 1, "label": "c"}, {"id": 9, "label": "a"}, {"id": 2, "label": "a"}]
    reported = compare({"rows": found}, {"rows": expected})
    assert (reported.matched, reported.places, reported.ids) == (3, 4, 2)
    assert (reported.wrong, reported.strange) == (["rows.1.label"], [9, 2])


def test_a_missing_item_counts_with_all_its_fields():
    reported = compare([{"id": 1, "label": "a"}], [{"id": 1, "label": "a"}, {"id": 2, "label": "b"}])
    assert (reported.matched, reported.places) == (2, 4)


def test_where_there_is_no_id_the_first_telling_field_is_one():
    expected = [{"kind": "x", "term": "KYC", "as": "KYC"}, {"kind": "x", "term": "EMI", "as": "EMI"}]
    reported = compare(list(reversed(expected)), expected)
    assert (reported.matched, reported.places) == (6, 6)


def test_the_reference_decides_what_is_prose():
    reported = compare(
        {"reason": "Short", "label": "It was a long one."}, {"reason": "It was paid late.", "label": "bad"}
    )
    assert (reported.stated, reported.wanted, reported.expected) == (["Short"], ["It was paid late."], 1)


def test_one_item_of_prose_makes_a_list_prose():
    reported = compare(["Refund"], ["Refund", "The agent was kind to Priya."])
    assert (reported.places, reported.stated, reported.wanted) == (
        0,
        ["Refund"],
        ["Refund", "The agent was kind to Priya."],
    )


def test_echoes_are_not_kept_as_prose():
    reported = compare({"t": {"x": "It was a long one."}}, {"t": {"x": "It was another one."}}, echoes=frozenset(["t"]))
    assert (reported.stated, reported.wanted) == ([], [])


@given(ROWS, st.randoms(use_true_random=False))
def test_order_is_irrelevant_and_a_mended_field_never_lowers_the_match(rows, chance):
    expected = [{"id": name, "value": pair[0]} for name, pair in rows.items()]
    found = [{"id": name, "value": pair[1]} for name, pair in rows.items()]
    reported = compare(found, expected)
    assert 0 <= reported.matched <= reported.places
    shuffled = found.copy()
    chance.shuffle(shuffled)
    assert compare(shuffled, expected).matched == reported.matched
    mended = [expected[0], *found[1:]]
    assert compare(mended, expected).matched >= reported.matched
    perfect = compare(expected, expected)
    assert perfect.matched == perfect.places


def test_a_depth_of_thousands_costs_no_recursion():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    assert compare({"a": 1, "b": deep}, {"a": 1, "b": "x"}).matched == 1

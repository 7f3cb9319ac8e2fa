"""What an output states: sentences, filled fields, and what is none of either."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.metrics.stated import leaves, sentences, stated


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It was paid. It was late!", ["It was paid.", "It was late!"]),
        ("Mr. Rao called.", ["Mr. Rao called."]),
        ("1. Refund of $49\n2. Done now", ["1. Refund of $49", "2. Done now"]),
        ("It cost 4.50 in total.", ["It cost 4.50 in total."]),
        ("रिफंड हो गया। ग्राहक खुश है।", ["रिफंड हो गया।", "ग्राहक खुश है।"]),
        ("--- !!! ...", []),
        ("Paid", ["Paid"]),
        ("", []),
    ],
)
def test_sentences_end_where_they_end_in_any_script(text, found):
    assert list(sentences(text)) == found


@given(st.text(alphabet=st.sampled_from("ab1 .!?\n।。-é")))
def test_no_letter_of_a_text_is_lost_and_none_is_said_twice(text):
    assert all(one in text for one in sentences(text))
    assert [c for one in sentences(text) for c in one if c.isalnum()] == [c for c in text if c.isalnum()]


def test_a_million_marks_take_no_time_worth_speaking_of():
    assert len(list(sentences("ab cd. " * 100_000))) == 100_000
    assert list(sentences("!\n" * 500_000)) == []


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        ({"amount": 49, "paid": True, "by": None}, ["amount: 49"]),
        ({"by": "N/A", "to": "unknown", "at": " "}, []),
        ({"label": "bad", "type": "SCORE", "score": 1, "max_score": 5, "emotion": {"joy": 10}}, []),
        ({"question_id": "Q1", "id": 7, "source_text": "It rang twice."}, []),
        (["refund", "It was paid late."], ["refund", "It was paid late."]),
        ("Was it paid? It was.", ["It was."]),
        ({"summary": "It was paid late. It was lost."}, ["It was paid late.", "It was lost."]),
        (
            {
                "summary": {"call_purpose": "A. B c d e.", "highlights": ["x"], "call_extracted_info": {"n": 1}},
                "by": "Bo",
            },
            ["A. B c d e.", "x", "n: 1", "by: Bo"],
        ),
        (7, ["7"]),
        (None, []),
        (float("nan"), []),
    ],
)
def test_filled_fields_and_sentences_are_stated_and_judgements_ids_and_echoes_are_not(value, facts):
    assert [str(fact) for fact in stated(value)] == facts


def test_leaves_come_in_order_however_deep():
    deep: object = "x"
    for _ in range(5000):
        deep = {"a": [deep]}
    assert list(leaves({"b": deep, "c": 1})) == [("", "x"), ("c", 1)]

"""A reason for those who may not see contents holds sentences of ours alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.verdict.open_reason import GAP, open_reason


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("", ""),
        ("2 of 5 questions", "2 of 5 questions"),
        ("2 of 5 questions; wrong: Q1 (5, expected 0), Q2 (5, expected 0)", "2 of 5 questions; wrong: …"),
        ("no output: model_output is null", "no output: model_output is null"),
        ("tone: it promised a refund; 3 of 4 sentences", "tone: …; 3 of 4 sentences"),
        ("other: it promised a refund", "…"),
        ("he said: her card is 4111 1111; and: more; and more", "…"),
        ("4111111111111111 of 5 questions", "…"),
    ],
)
def test_of_a_reason_only_sentences_of_ours_are_left(reason, shown):
    assert open_reason(reason, {"tone"}) == shown


@given(st.text(max_size=300), st.text(alphabet="; :#@…abc12", max_size=80))
def test_nothing_else_is_left_of_any_text(text, other):
    for reason in (text, other, f"2 of 5 questions; {other}"):
        assert "abc" not in open_reason(reason.replace("of", "abc of"))
        assert len(open_reason(reason)) <= len(reason) + len(GAP)


def test_the_time_is_bounded_whatever_stops_a_reason_has():
    assert len(open_reason("; : " * 100_000)) <= 2000

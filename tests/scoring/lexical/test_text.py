"""One comparable form of texts, and their words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.text import WordIndex, fold_digits, normalise, pieces, same, tokens


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("₹४९", "₹49"),
        ("Ｒｅｆｕｎｄ", "refund"),
        ("STRASSE", "straße"),
        ("  a \t\n b ", "a b"),
        ("٤٢", "42"),
        ("é", "e\u0301"),
        ("ﬁne", "fine"),
    ],
)
def test_texts_that_differ_only_in_form_are_the_same(left, right):
    assert same(left, right)


@pytest.mark.parametrize(("left", "right"), [("refund", "refunds"), ("e", "é"), ("a_b", "a b"), ("49", "₹49")])
def test_nothing_else_is_folded(left, right):
    assert not same(left, right)


def test_vowel_signs_stay_with_their_letters():
    assert tokens("एजेंट ने नंबर पूछा।") == ["एजेंट", "ने", "नंबर", "पूछा"]


def test_scripts_without_spaces_are_compared_by_pairs_of_characters():
    assert list(pieces(tokens("请退款给我"))) == ["请退", "退款", "款给", "给我"]
    assert WordIndex("请退款给我").has_word("退款")
    assert WordIndex("请退款给我").has_phrase("退款给")


def test_a_phrase_is_found_whatever_stands_between_its_words():
    index = WordIndex("Agent: Good morning, how can I help?")
    assert index.has_phrase("“Good morning — how can”")
    assert not index.has_phrase("Good how")
    assert not index.has_phrase("ood morning")
    assert not index.has_phrase("…")


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(alphabet=st.characters(categories=["Nd"]), min_size=1, max_size=10))
def test_every_digit_becomes_its_ascii_value(digits):
    assert fold_digits(digits) == "".join(str(unicodedata.decimal(digit)) for digit in digits)


def test_a_million_combining_marks_do_not_stop_the_clock():
    assert len(normalise("a" + "\u0316\u0301" * 500_000)) < 100

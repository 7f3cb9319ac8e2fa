from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.prometheus.labels import OTHER, LabelCap
from sidejudge.scoring.lexical.shown_text import MAX_LENGTH, clean


@given(st.text(alphabet=st.characters(), max_size=300))
def test_a_cleaned_value_is_short_printable_and_encodes(value):
    text = clean(value)
    assert len(text) <= MAX_LENGTH
    assert text == text.strip()
    assert not any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in text)
    text.encode()


@given(st.text(alphabet=st.characters(), max_size=300))
def test_cleaning_twice_changes_nothing(value):
    assert clean(clean(value)) == clean(value)


def test_ordinary_names_of_any_script_stay_as_they_are():
    for name in ("checkout-agent", "सेवा", "サービス", "a b", "é", "👍"):
        assert clean(name) == name


def test_values_within_the_cap_are_kept_whatever_comes_later():
    cap = LabelCap("service", 2)
    assert [cap.bound(v, "unknown") for v in ("a", "b", "c", "a", "b", "d")] == ["a", "b", OTHER, "a", "b", OTHER]


def test_absent_and_empty_values_are_unknown():
    cap = LabelCap("service", 5)
    assert {cap.bound(v, "unknown") for v in (None, "", " \n", "\x00")} == {"unknown"}


def test_values_that_look_alike_once_cleaned_share_a_place():
    cap = LabelCap("service", 1)
    assert cap.bound("a\n", "unknown") == cap.bound("a", "unknown") == cap.bound("a\x00", "unknown") == "a"


def test_a_name_too_long_to_remember_is_still_bounded():
    cap = LabelCap("service", 1)
    long = "x" * 10_000
    assert cap.bound(long, "unknown") == cap.bound(long, "unknown")
    assert cap.bound("y" * 10_000, "unknown") == OTHER


def test_a_cap_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        LabelCap("service", 0)

"""Patterns that cannot hang match what Python's own would."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.scenario.pattern import MAX_TEXT, PatternError, compile_pattern

SUPPORTED = [
    "a", "abc", "a|b", "(a|bc)*d", "^a+$", "a?b", "[a-c]{2,3}x", "[^ab]", r"\d+", r"\bfoo\b", r"\w\s\W", ".", "^$", "",
    "(?:ab)+?c", "a{2}", "a{0,2}b", "(?i)SQL", r"\.", "x{,3", "(a*)*b", "(|a)+", "a{2,}", "[]a]", "[a\\]b]", r"[\d-]",
    "é|ß", r"[\[]", r"\Ba",
]  # fmt: skip
TEXTS = ["", "a", "ab", "aab", "abc", "bcd", "foo bar", "x1 !", "sql", "aaab", "]", "[", "-", "é", "SS", "\n", "x{,3"]


@pytest.mark.parametrize("pattern", SUPPORTED)
@pytest.mark.parametrize("text", TEXTS)
def test_it_finds_what_python_finds(pattern, text):
    # A pattern's $ is the very end, as in JSON Schema, not before a last line break.
    assert compile_pattern(pattern).search(text) == bool(re.search(pattern.replace("$", r"\Z"), text))


@given(st.text(alphabet="ab|*+?()[]^.\\d", max_size=8), st.text(alphabet="ab1", max_size=8))
def test_it_agrees_with_python_on_whatever_both_accept(pattern, text):
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return
    try:
        expected = re.compile(pattern)
    except re.error:
        return
    except FutureWarning:
        return
    assert compiled.search(text) == bool(expected.search(text))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "a*a*a*a*a*a*b", "(a?){30}a{30}"])
def test_patterns_that_stop_python_for_minutes_are_answered(pattern):
    compile_pattern(pattern).search("a" * (MAX_TEXT - 1) + "!")


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[",
        "*",
        "a**",
        "a{3,2}",
        "(?=a)",
        "(?P<x>a)",
        r"\1",
        r"\p{L}",
        "\\",
        "(a{500}){500}",
        "[b-a]",
        "x{,3}",
        "^*",
        "x" * 2000,
        "(" * 60 + ")" * 60,
    ],
)
def test_what_is_malformed_or_not_supported_is_refused(pattern):
    with pytest.raises(PatternError):
        compile_pattern(pattern)


def test_a_text_beyond_the_bound_matches_nothing():
    assert compile_pattern("a").search("a" * MAX_TEXT)
    assert not compile_pattern("a").search("a" * (MAX_TEXT + 1))

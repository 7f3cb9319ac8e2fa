"""Patterns match what Python's own would on ASCII, and no pattern with any text takes long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.scenario.pattern import MAX_STEPS, MAX_TEXT, PatternError, compile_pattern

SUPPORTED = [
    "a", "abc", "a|b", "(a|bc)*d", "^a+$", "a?b", "[a-c]{2,3}x", "[^ab]", r"\d+", r"\bfoo\b", r"\w\s\W", ".", "^$", "",
    "(?:ab)+?c", "a{2}", "a{0,2}b", "(?i)SQL", r"\.", "(a*)*b", "(|a)+", "a{2,}", "[]a]", "[a\\]b]", r"[\d-]",
    "é|ß", r"[\[]", r"\Ba", "(?P<x>a)b", "(?s).a", "(?m)^b",
]  # fmt: skip
TEXTS = ["", "a", "ab", "aab", "abc", "bcd", "foo bar", "x1 !", "sql", "aaab", "]", "[", "-", "é", "SS", "\n", "x\nb"]
HEAVY = [
    ("(a?){195}b", "a"), ("(a+)+$", "a"), ("(a|aa)+$", "a"), ("(.*)*x", "a"), ("a*a*a*a*a*a*b", "a"),
    ("(a?){30}a{30}!", "a"), ("(x{0,30}){0,30}y", "x"), ("(x?){999}y", "x"), ("(.?){400}!", "😀"), ("(é?){900}!", "é"),
    ("(a|b)*a(a|b){900}c", "ab"), ("(.{0,30}){0,14}!", "漢"),
]  # fmt: skip


@pytest.mark.parametrize("pattern", SUPPORTED)
@pytest.mark.parametrize("text", TEXTS)
def test_it_finds_what_python_finds(pattern, text):
    # A pattern's $ is the very end, as in JSON Schema, not before a last line break.
    assert compile_pattern(pattern).search(text) == bool(re.search(pattern.replace("$", r"\Z"), text))


@given(st.text(alphabet="ab|*+?()[]^.\\d", max_size=8), st.text(alphabet="ab1", max_size=8))
def test_it_agrees_with_python_on_whatever_both_accept(pattern, text):
    try:
        compiled = compile_pattern(pattern)
        expected = re.compile(pattern)
    except (PatternError, re.error, FutureWarning):
        return
    assert compiled.search(text) == bool(expected.search(text))


def test_classes_are_ascii_and_letters_of_any_script_have_a_class_of_their_own():
    assert not compile_pattern(r"^\w+$").search("Grüße")
    assert compile_pattern(r"^\pL+$").search("Grüße")
    assert not compile_pattern(r"^\d$").search("٣")
    assert compile_pattern(r"^\pN$").search("٣")


@pytest.mark.parametrize(("pattern", "letters"), HEAVY)
def test_the_worst_patterns_stay_within_a_small_multiple_of_their_bound(pattern, letters):
    text = (letters * MAX_TEXT)[: MAX_TEXT - 1] + "?"
    compiled = compile_pattern(pattern)
    work = compiled.steps * len(text.encode())
    assert compiled.steps <= MAX_STEPS
    allowed = 20 * _seconds_of_a_step() * work + 0.02
    assert min(_cpu_seconds(lambda: compiled.search(text)) for _ in range(3)) < allowed


def _seconds_of_a_step() -> float:
    """What one plain step of this interpreter on this machine takes; RE2's are some 10 times cheaper."""
    return min(_cpu_seconds(lambda: sum(range(100_000))) for _ in range(3)) / 100_000


def _cpu_seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        ("(", "missing )"),
        (")", "unexpected )"),
        ("[", "missing ]"),
        ("*", "no argument for repetition"),
        ("a**", "bad repetition"),
        ("a{3,2}", "invalid repetition size"),
        ("(?=a)", "look-around is not supported"),
        ("(?<!a)b", "look-around is not supported"),
        (r"(a)\1", "back-references are not supported"),
        (r"a\Z", "write $"),
        (r"\C", "write ."),
        ("\\", "trailing"),
        ("(a{500}){500}", "invalid repetition size"),
        (r"\pL{50}", f"more than {MAX_STEPS} steps"),
        ("(x{50}){19}|(y{50}){19}|(z{50}){19}|(v{50}){19}|(w{50}){19}", f"more than {MAX_STEPS} steps"),
        ("[b-a]", "invalid character class range"),
        ("x{,3}", "write the lower bound"),
        (r"\bübung", "ASCII letters only"),
        ("x" * 2000, "longer than"),
        ("\ud800", "surrogate"),
    ],
)
def test_what_is_malformed_or_not_supported_is_refused_with_its_cause(pattern, cause):
    with pytest.raises(PatternError, match=re.escape(cause)):
        compile_pattern(pattern)


def test_a_text_beyond_the_bound_matches_nothing():
    assert compile_pattern("a").search("a" * MAX_TEXT)
    assert not compile_pattern("a").search("a" * (MAX_TEXT + 1))


def test_half_of_a_surrogate_pair_in_a_text_is_a_character_like_any_other():
    assert compile_pattern("^a.b$").search("a\ud800b")

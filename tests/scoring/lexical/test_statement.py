"""Statements: what says the same, what says more, what contradicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.statement import contradicts, covers, read_statement, states_the_same

SAYS_MORE = [
    ("Refund initiated for $49", "Refund of $49", True),
    ("Refund of $49 initiated by agent", "Refund initiated for $49", True),
    ("Refund initiated for $49", "Refund of 49 dollars initiated", True),
    ("Refund initiated for ₹४९", "refund of ₹49", True),
    ("Refund initiated for $49", "Refund of $99", False),
    ("Refund initiated for $49", "Refund initiated for €49", False),
    ("Refund of $49 declined", "Refund of $49", False),
    ("Refund will be issued", "Refund issued", False),
    ("Agent refused to waive the fee", "Waive the fee", False),
    ("Refund was not initiated", "Refund initiated", False),
    ("Transfer from savings to checking", "Transfer from checking to savings", False),
    ("Price moved from 20 to 30", "Price moved from 30 to 20", False),
    ("10% discount", "$10 discount", False),
    ("Plan A1 chosen", "Plan B2 chosen", False),
    ("Callback at 14:30", "Callback at 15:30", False),
    ("Customer charged twice", "Customer charged", False),
    ("Agent confirmed it", "Customer confirmed it", False),
    ("internal outage", "internet outage", False),
    ("Rückerstattung von 49 € veranlasst", "Rückerstattung veranlasst", True),
    ("anything", "", False),
    ("anything", "the of", False),
]
CONTRADICTIONS = [
    ("Refund initiated for $49", "Refund of $99", True),
    ("Refund initiated for $49", "Refund was not initiated", True),
    ("Refund was approved", "Refund was not approved", True),
    ("Credit in 3–5 business days", "Credit in 7 days", True),
    ("Credit in 3–5 business days", "Credit in 5 days", False),
    ("Refund initiated for $49", "Refund in 5 days", False),
    ("Fee of $5", "Late fee of $9", False),
    ("Online payment failed", "Online payment", False),
    ("Agent 7", "Agent 9", False),
    ("Refund approved", "Upgrade approved", False),
]


@pytest.mark.parametrize(("statement", "other", "expected"), SAYS_MORE)
def test_a_statement_covers_what_it_says_in_the_same_words_and_figures(statement, other, expected):
    assert covers(read_statement(statement), read_statement(other)) is expected


@pytest.mark.parametrize(("statement", "other", "expected"), CONTRADICTIONS)
def test_other_figures_and_denials_of_the_same_thing_contradict(statement, other, expected):
    assert contradicts(read_statement(statement), read_statement(other)) is expected


WORDS = ("refund", "of", "$49", "not", "agent", "approved", "7", "%", "will", "the", "14:30", "शुल्क")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@given(st.text() | TEXTS, st.text() | TEXTS)
def test_what_says_the_same_does_so_both_ways_and_never_contradicts(left, right):
    one, other = read_statement(left), read_statement(right)
    assert states_the_same(one, other) == states_the_same(other, one)
    assert not contradicts(one, one)
    if one.roots or one.figures:
        assert states_the_same(one, one)
    if states_the_same(one, other):
        assert not contradicts(one, other)

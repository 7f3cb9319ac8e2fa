"""Pieces of context by their words: what is traced, what is not, and at what cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.metrics.context_use import Pieces, TooMuchError

DOCUMENTS = ["Refunds take five days. Vouchers are worth $20.", "Cards are billed monthly.", "रिफंड पांच दिन में मिलता है।"]


@pytest.mark.parametrize(
    ("statement", "drawn"),
    [
        ("Refunds take days", [0]),
        ("The refund takes 5 days and a voucher of $20 is sent", [0]),
        ("Card billed monthly", [1]),
        ("रिफंड पांच दिन में", [2]),
        ("Monthly vouchers arrive by ordinary post every spring", None),
        ("Refunds", None),
    ],
)
def test_a_statement_draws_on_the_piece_that_has_half_of_its_words(statement, drawn):
    found = Pieces(DOCUMENTS).drawn_on([statement])
    assert (None if found is None else sorted(found)) == drawn


def test_words_far_apart_in_a_long_document_are_not_one_place():
    far = "Refunds are slow. " + "Nothing to see here at all. " * 20 + "Vouchers are quick."
    assert Pieces([far]).drawn_on(["Refunds and vouchers"]) is None


def test_tracing_is_bounded():
    pieces = Pieces(["charge refund order"] * 2000)
    with pytest.raises(TooMuchError):
        pieces.drawn_on(["charge refund order"] * 500)


@given(st.lists(st.sampled_from([*DOCUMENTS, "Refunds and cards", "monthly days five"]), max_size=6), st.randoms())
def test_the_order_of_statements_is_irrelevant(statements, chance):
    shuffled = statements.copy()
    chance.shuffle(shuffled)
    assert Pieces(DOCUMENTS).drawn_on(statements) == Pieces(DOCUMENTS).drawn_on(shuffled)


def test_a_piece_draws_on_itself():
    for at, text in enumerate(DOCUMENTS):
        assert at in Pieces(DOCUMENTS).drawn_on([text.split(". ")[0]])

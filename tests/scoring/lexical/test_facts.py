"""Numbers, amounts, time stamps, dates, quotations and names in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.claims import claims
from sidejudge.scoring.lexical.facts import MAX_TEXT, amounts, dates, names, numbers, quotes, same_date, timestamps
from tests.linear_time import assert_linear


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.50", {"1234.5"}),
        ("1.234,50", {"1234.5"}),
        ("12,34,567", {"1234567"}),
        ("1.234", {"1.234", "1234"}),
        ("0.50", {"0.5"}),
        ("0.500", {"0.5"}),
        ("1234.500", {"1234.5"}),
        ("007", {"7"}),
        ("४९.५०", {"49.5"}),
    ],
)
def test_a_number_is_read_in_every_way_it_may_be_meant(text, values):
    assert set(numbers(text)[0].values) == values


def test_numbers_agree_unless_their_currencies_differ():
    dollars, rupees, bare = (numbers(text)[0] for text in ("$49", "₹४९", "49.00"))
    assert dollars.agrees(bare)
    assert bare.agrees(rupees)
    assert not dollars.agrees(rupees)


@pytest.mark.parametrize(
    ("text", "currency"),
    [("$49", "USD"), ("49 Euro", "EUR"), ("Rs. 500", "INR"), ("₹४९", "INR"), ("49 ₫", "₫"), ("49 days", None)],
)
def test_the_currency_stands_before_or_after(text, currency):
    assert numbers(text)[0].currency == currency
    assert bool(amounts(text)) == (currency is not None)


@pytest.mark.parametrize("text", ["49€ 5 days", "5 $49 parts", "5 ₹49"])
def test_a_sign_that_adjoins_one_number_is_no_currency_of_the_next(text):
    assert {number.text: number.currency is not None for number in numbers(text)} == {"49": True, "5": False}
    assert [number.currency for number in numbers("49 € 5 €")] == ["EUR", "EUR"]


def test_time_stamps_and_codes_are_no_numbers():
    assert numbers("Q7 at 01:23") == []
    assert numbers("Q77 AB12345 x12,345.60") == []


@pytest.mark.parametrize(
    "text", ["Rs500", "INR500", "eur500", "价格500元", "ราคา500บาท", "रु५००", "(500)", "-500", "_500"]
)
def test_a_number_may_adjoin_a_currency_or_a_script_without_spaces(text):
    assert [number.values for number in numbers(text)] == [{"500"}]


def test_time_stamps_in_either_form_are_the_same_second():
    assert timestamps("at 1:23, 01:23 and 00:01:23; not 1:2, 12:99 or 1:23:45:10") == [83, 83, 83]


@pytest.mark.parametrize(
    "text", ["2026-03-12", "12.03.2026", "12 March 2026", "March 12th, 2026", "12. März 2026", "12 de marzo de 2026"]
)
def test_a_date_is_the_same_in_every_form(text):
    assert any(same_date(frozenset({"2026-03-12"}), found) for found in dates(text))


def test_of_two_dates_that_overlap_a_claim_makes_the_first_and_keeps_the_words_after_it():
    (claim,) = claims("The agent refunded on 5 May 10 customers")
    assert (claim.dates, [number.text for number in claim.numbers]) == ((frozenset({"05-05"}),), ["10"])
    (claim,) = claims("The agent opened on May 5 and 7 May 12 tickets")
    assert {"ticke"} <= claim.content


def test_a_date_without_a_year_fits_every_year_and_another_day_none():
    assert same_date(dates("12 March")[0], dates("2026-03-12")[0])
    assert not same_date(dates("13 March")[0], dates("2026-03-12")[0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("He said 'Don't worry, it's fine' twice", ["Don't worry, it's fine"]),
        ("the customer's and the agent's turn", []),
        ("„Guten Tag“ und «Hola» 「はい」 “yes”", ["Guten Tag", "Hola", "はい", "yes"]),
        ('an open " quote', []),
        ("say \"a 'b' c\"", ["a 'b' c"]),
        ("«\u00a0Bonjour\u00a0» et « Merci »", ["\u00a0Bonjour\u00a0", " Merci "]),
        ('say " hello there " twice', [" hello there "]),
        ("»Hallo« und »Tag«", ["Hallo", "Tag"]),
        ("' not ' apostrophes", []),
    ],
)
def test_quotations_are_told_from_apostrophes(text, found):
    assert [quote.text for quote in quotes(text)] == found


def test_names_are_capitalised_within_a_sentence():
    assert names("The caller Priya Sharma rang. Agents said Hello") == ["Priya", "Sharma", "Hello"]


@given(st.text(alphabet="'\"“”„«» ab1:/.,-\n", max_size=200))
def test_quotations_lie_in_the_text_in_order_and_apart(text):
    end = 0
    for quote in quotes(text):
        assert end <= quote.start < quote.end <= len(text)
        assert text[quote.start + 1 : quote.end - 1] == quote.text
        end = quote.end


def test_what_stands_beyond_the_bound_is_not_read():
    text = "a: " * (MAX_TEXT // 3 - 4) + "12 'a b'"
    assert numbers(text)[-1].text == "12"
    for read in (numbers, timestamps, dates, quotes, names):
        assert read(text + " " * MAX_TEXT + " 99 at 01:23 on 2026-03-12 “x y” to Priya") == read(text)


@pytest.mark.parametrize("piece", ["1:", "1,", "'a ", '" ', "1/", "may ", "Aa ", "„a", "12 ", "1.1.1."])
def test_long_hostile_texts_take_linear_time(piece):
    for read in (numbers, timestamps, dates, quotes, names):
        assert_linear(lambda length, read=read: read(piece * (length // len(piece))))

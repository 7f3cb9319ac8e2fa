"""Critical facts of sentences, and how they drift: numbers, units, dates, times, codes, any script's digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.critical_facts import CriticalFacts, drift, grouped_alike
from tests.linear_time import assert_linear


def texts(text):
    return [fact.text for fact in CriticalFacts(text).facts]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("₹४९ का रिफंड 3–5 कार्य दिवसों में, खाता ९९८७", ["49", "3–5", "9987"]),
        (
            "TXN-4471, AB12345 und 4471a am 12. März 2026 um 10:30",
            ["12. märz 2026", "10:30", "txn-4471", "ab12345", "4471a"],
        ),
        ("5 लाख रुपये, 10km, 5th, Rs.49, 5%", ["5", "10", "5", "49", "5"]),
        ("账号9987 在3天内", ["9987", "3"]),
        ("forty nine dollars", ["49"]),
        ("from 3 to 5 days, ₹49 and ₹49", ["3 to 5", "49"]),
        ("nothing to see", []),
    ],
)  # fmt: skip
def test_facts_are_read_each_once(text, found):
    assert texts(text) == found


@pytest.mark.parametrize(
    ("expected", "stated"),
    [
        ("₹४९", "49 रुपये"),
        ("₹5,00,000", "5 लाख रुपये"),
        ("1.234,50 €", "EUR 1,234.5"),
        ("3–5 कार्य दिवस", "3 से 5 दिन"),
        ("2 दिन", "दो दिन"),
        ("दो दिन", "2 दिन"),
        ("12 मार्च 2026", "12/03/2026"),
        ("12 March 2026", "March 12"),
        ("COVID-19", "Covid 19"),
        ("COVID 19", "COVID-19"),
        ("TXN-4471", "txn 4471"),
        ("10km", "10 km"),
        ("49", "49 euros"),
        ("1\u00a0000 EUR", "1,000 EUR"),
        ("12\u202f345,60 €", "€12,345.60"),
        ("1’000’000 CHF", "1'000'000 CHF"),
        ("10 000 km", "10,000 kilometers"),
        ("500g", "500 grams"),
        ("G20", "g-20"),
        ("555 123 4567", "(555) 123-4567"),
        ("+49 30 9018-2000", "+493090182000"),
        ("०१२३ ४५६ ७८९०", "01234567890"),
        ("0201/123 45 67", "0201 1234567"),
        ("4111 1111 1111 1111", "4111111111111111"),
        ("5551234567, or 555 123 4567", "555 123 4567"),
        ("1e3", "1,000"),
        ("2.5e-3 kg", "0.0025 kg"),
        ("1,5E6 Euro", "1.5 million euros"),
        (".5 mg", "0,5 mg"),
        ("2026/03/12", "12.03.2026"),
        ("2:30 pm", "14.30 Uhr"),
        ("2:30 p. m.", "14h30"),
        ("12:30 a.m.", "00:30"),
        ("12 pm", "12:00"),
        ("2:30", "2:30 pm"),
        ("14 Uhr 30", "14:30 h"),
        ("9 Uhr", "9:00 Uhr"),
        ("um 9 Uhr", "um neun"),
        ("5 h 30 min", "5 hours 30 minutes"),
        ("49€, 5 days", "49€ 5 days"),
    ],
)
def test_one_fact_written_two_ways_does_not_drift(expected, stated):
    found = drift(expected, stated)
    assert (found.omitted, found.added) == ((), ())


@pytest.mark.parametrize(
    ("expected", "stated"),
    [
        ("3–5 दिन", "7–10 दिन"),
        ("3–5 days", "3–7 days"),
        ("5 दिन", "5 घंटे"),
        ("5 lakh", "5 crore"),
        ("₹49", "$49"),
        ("5%", "5 years"),
        ("100 kg", "100 g"),
        ("5 mg", "5 ml"),
        ("1\u202f000 EUR", "1\u202f001 EUR"),
        ("10 000 km", "10 001 km"),
        ("G20", "G7"),
        ("12 March 2026", "12 March 2025"),
        ("12 March", "12 April"),
        ("10:30", "11:30"),
        ("TXN-4471", "TXN-4472"),
        ("AB12345", "AC12345"),
        ("खाता ९९८७", "खाता ९९८८"),
        ("forty nine dollars", "fifty nine dollars"),
        ("1e3", "1e-3"),
        ("1e3 km", "1e4 km"),
        ("1234.5678", "12345678"),
        ("1000-2000 €", "10002000 €"),
        (".5 mg", "5 mg"),
        ("0.500 mg", "500 mg"),
        ("2:30 pm", "2:30 am"),
        ("10:30 am", "22:30"),
        ("14.30 Uhr", "14.45 Uhr"),
        ("9 Uhr", "10 Uhr"),
    ],
)
def test_a_changed_fact_is_one_omission_and_no_addition_beyond_it(expected, stated):
    found = drift(expected, stated)
    assert (len(found.omitted), len(found.added), found.additions) == (1, 1, 0)


def test_another_telephone_number_in_other_groups_is_not_the_same():
    assert [fact.text for fact in drift("Call 5551234567", "Call 555 123-4568").omitted] == ["5551234567"]


@pytest.mark.parametrize(("text", "found"), [
    ("rooms 2 500 and 300", ["2", "500", "300"]),
    ("0800 123 456 EUR", ["0800", "123", "456"]),
    ("in 2026 100 km", ["2026", "100"]),
    ("12\u00a0March 3\u00a0days", ["12 march", "3"]),
])  # fmt: skip
def test_numbers_beside_each_other_are_not_one(text, found):
    assert texts(text) == found


def test_a_dropped_fact_is_omitted_and_an_invented_one_added():
    assert len(drift("₹49 in 3 days", "in 3 days").omitted) == 1
    assert drift("in 3 days", "₹49 in 3 days").additions == 1


def test_what_the_source_states_is_not_an_addition():
    assert drift("पचास हज़ार रुपये", "50,000 रुपये", source="rupees 50,000").additions == 0
    assert drift("पचास हज़ार रुपये", "70,000 रुपये", source="rupees 50,000").additions == 1


@given(st.text(alphabet="0123456789०९ .,:-–/₹$%kmAQtoन दिसे", max_size=60))
def test_a_sentence_never_drifts_from_itself(text):
    found = drift(text, text)
    assert (found.omitted, found.added) == ((), ())


@given(st.text(max_size=80), st.text(max_size=80))
def test_omissions_one_way_are_additions_the_other(left, right):
    there, back = drift(left, right), drift(right, left)
    assert (there.omitted, there.added) == (back.added, back.omitted) or "\ud800" <= max(left + right) <= "\udfff"


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1 ",
        "1-",
        "1.",
        "a1-",
        "12:30 ",
        "1/1/2026 ",
        "₹1 to ",
        "१",
        "a",
        "5 लाख ",
        "9" * 500 + " ",
        "1 000 ",
        "1\u202f000\u202f",
        "1'000'",
        "(1) ",
        "1 p",
        "1h",
        ".1",
        "1e3 ",
    ],
)
def test_long_texts_are_read_in_linear_time(unit):
    assert_linear(lambda length: CriticalFacts(unit * (length // len(unit))))
    assert_linear(lambda length: grouped_alike(unit * (length // len(unit)), unit.strip() * (length // len(unit))))

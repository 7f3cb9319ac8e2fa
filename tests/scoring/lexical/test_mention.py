"""Whether a term or name stands in a text, in languages that write words apart, inflect them, or run them together."""

from __future__ import annotations

import pytest

from sidejudge.scoring.lexical.mention import Mentions


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("KYC", "आपका kyc पूरा है।"),
        ("KYC", "KYCची माहिती"),
        ("KYC", "KYC-Prüfung"),
        ("प्रिया शर्मा", "मैं  प्रिया शर्मा बोल रही हूँ"),
        ("प्रिया", "प्रियाला सांगा"),
        ("Anna", "Annas Konto"),
        ("SIM", "zwei SIMs"),
        ("서울", "서울에서"),
        ("东京", "我在东京工作"),
        ("بريا", "لبريا"),
        ("Gold+", "Gold+ ist teurer"),
        ("₹49 Plan", "Der ₹४९ Plan"),
    ],
)
def test_it_stands_there(phrase, text):
    assert Mentions([text]).has(phrase)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("KYC", "ग्राहक सत्यापन"),
        ("SIM", "das ist simpel"),
        ("PIN", "shopping"),
        ("रिया", "प्रिया"),
        ("प्रिय", "प्रिया"),
        ("Priya", "Priyanka"),
        ("99", "9987"),
        ("प्रिया शर्मा", "प्रिया"),
        ("", "x"),
        ("  ", "x"),
    ],
)
def test_it_does_not(phrase, text):
    assert not Mentions([text]).has(phrase)


def test_a_phrase_does_not_run_from_one_text_into_the_next():
    assert not Mentions(["Priya", "Sharma"]).has("Priya Sharma")


def test_many_near_misses_take_linear_time():
    assert not Mentions(["x" * 300_000]).has("x" * 5)

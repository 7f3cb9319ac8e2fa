"""Redaction: what is personal is gone, and everything else stays letter by letter."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.checks import privacy
from sidejudge.scoring.checks.privacy import KINDS
from sidejudge.scoring.checks.redaction import Redaction, RedactionError

ALL = Redaction(tuple(KINDS))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("write to ann.b+c@mail.example.com now", "write to [email] now"),
        ("call +49 170 1234567 or (030) 123-4567.", "call [phone] or [phone]."),
        ("DE89 3704 0044 0532 0130 00 it is", "[iban] it is"),
        ("card 4111 1111 1111 1111, not 4111 1111 1111 1112", "card [card], not 4111 1111 1111 1112"),
        ("2 4111 1111 1111 1111, 4111 1111 1111 1111 123", "2 [card], [card] 123"),
        ("exp 1227 3782 822463 10005 9", "exp 1227 [card] 9"),
        ("order 1234 4111 1111 1111 1112 5", "order 1234 4111 1111 1111 1112 5"),
        ("4111111111111111 378282246310005", "[card] [card]"),
        ("to BE68 5390 0754 7034 EUR 500", "to [iban] EUR 500"),
        ("BE68 5390 0754 7034 DE89 3704 0044 0532 0130 00 PAID", "[iban] [iban] PAID"),
        ("NO9386011117947 or NO93 8601 1117 947", "[iban] or [iban]"),
        ("BE68 5390 0754 7035 EUR", "BE68 5390 0754 7035 EUR"),
        ("key sk-abcdefghijklmnop1234 leaked", "key [key] leaked"),
        ("order 4711, 2026-11-22, 19.99 EUR, 10:30", "order 4711, 2026-11-22, 19.99 EUR, 10:30"),
        ("", ""),
    ],
)
def test_what_is_personal_is_replaced_by_its_kind(text, redacted):
    assert ALL.apply(text)[0] == redacted


def test_what_resembles_an_iban_is_read_once_however_much_of_it_stands_there():
    groups = [f"DE{at % 90 + 10}" for at in range(10_000)]
    privacy._digits.cache_clear()

    for _ in KINDS["iban"](" ".join(groups)):
        pass

    assert privacy._digits.cache_info().misses < 2 * len(groups)


SAMPLES = (
    "ann@example.com", "+49 170 1234567", "(030) 123-4567", "030-123-4567", "DE89 3704 0044 0532 0130 00",
    "4111 1111 1111 1111", "sk-abcdefghijklmnop1234", "ghp_" + "a1" * 12, "-----BEGIN RSA PRIVATE KEY-----",
)  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_replaced_in_a_text_is_never_missed_in_the_bytes_around_it(kind, sample):
    one = Redaction((kind,))
    for before, after in itertools.product(("", " ", "é", "x", "+"), ("", " ", "é", "x", "-")):
        text = f"{before}{sample}{after}"
        if one.apply(text)[1]:
            for byte in (b"", b"A", b"7", b"+", b"-", b"@", b".", b"\x0a", b"\xff"):
                assert one.may_apply(byte + text.encode() + byte)


def test_bytes_without_anything_to_replace_are_known_unless_a_pattern_is_ones_own():
    plain = "order 4711 at 10:30: a risk-free task für Ann".encode()
    assert not ALL.may_apply(plain)
    assert not Redaction(()).may_apply(b"ann@example.com")
    assert Redaction((), ("x",)).may_apply(plain)


def test_own_patterns_are_replaced_too_and_counted():
    redaction = Redaction(("email",), (r"C-\d{4}",))
    assert redaction.apply("C-4711 and C-0815: a@b.io") == ("[redacted] and [redacted]: [email]", 3)


def test_of_two_that_overlap_one_name_stands_for_both():
    assert Redaction(("email",), (r"ann@\w+",)).apply("ann@example.com!")[0] == "[redacted]!"


@given(st.text())
def test_nothing_that_is_found_is_left_and_nothing_else_is_lost(text):
    redacted, count = ALL.apply(text)
    assert (redacted == text) == (count == 0)


@pytest.mark.parametrize(("kinds", "patterns"), [(("name",), ()), ((), ("(",)), ((), ("a" * 2000,))])
def test_what_cannot_be_used_is_refused(kinds, patterns):
    with pytest.raises(RedactionError):
        Redaction(kinds, patterns)


def test_a_hostile_pattern_cannot_hang():
    assert Redaction((), ("(a?){195}b",)).apply("a" * 100_000)[1] == 0


def test_half_a_surrogate_pair_stays_and_hides_nothing_from_own_patterns():
    assert Redaction((), ("secret",)).apply("\ud83d a secret \ud83d\ude00") == ("\ud83d a [redacted] \ud83d\ude00", 1)

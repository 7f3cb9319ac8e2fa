"""Check of personal data and keys. A reason gives the kind and number of findings and never repeats them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final, TypeAlias

from sidejudge.scoring.result.reason import Reason, own, together
from sidejudge.scoring.result.result import Scored, Unavailable
from sidejudge.scoring.trace.span import Json

from .check import Check, CheckError, Finding, TextTest, linear, texts

if TYPE_CHECKING:
    import re2

MAX_SCANNED: Final = 1_000_000
"""Most characters that are searched."""
_EMAIL: Final = r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
_NUMBER: Final = r"\+[1-9][\d ()./-]{7,20}\d|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}"
_PHONE: Final = rf"(?:^|[^\w.+-])({_NUMBER})(?:$|[^\w-])"
_IBAN: Final = r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_IBAN_AT: Final = re.compile(_IBAN, re.ASCII)
_IBAN_BEGINS: Final = re.compile(r"\b[A-Z]{2}\d{2}", re.ASCII)
_IBAN_CHARACTERS: Final = range(15, 35)
_VALUES: Final = {ord(letter): str(value) for value, letter in enumerate(ascii_uppercase, 10)}
_LONGEST_IBAN: Final = 34 + 9
"""Characters of the longest IBAN, with its blanks."""
_CARD: Final = r"\b\d(?:[ -]?\d){12,}\b"
_GROUP: Final = re.compile(r"\d+")
_GROUPS_OF_CARDS: Final = ((4, 4, 4, 4, 3), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4))
"""How cards print their numbers, by digits of a group."""
_CARD_DIGITS: Final = range(13, 20)
_KEY: Final = (
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|(?:gh[opusr]|github_pat)_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|"
    r"AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|glpat-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}|"
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"
)
_DIGITS: Final = range(8, 16)
"""Digits of a telephone number, by E.164 at most 15."""


def luhn(number: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B).

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    digits = [int(each) for each in reversed(number)]
    doubled = [sum(divmod(2 * each, 10)) for each in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def iban(text: str) -> int:
    """The end of the longest IBAN among the groups that a text begins with; 0 where no check digits fit.

    The check digits are those of ISO 13616 (ISO 7064 MOD 97-10).

    >>> iban("BE68 5390 0754 7034 EUR"), iban("BE68 5390 0754 7035 EUR")
    (19, 0)
    """
    moved, _ = _digits(text[:4])  # country and check digits count as the last
    at = characters = 4
    remainder = longest = 0
    for group in text[4:].split(" "):
        at, characters = at + len(group), characters + len(group)
        value, scale = _digits(group)
        remainder = (remainder * scale + value) % 97
        if characters in _IBAN_CHARACTERS and (remainder * 10**6 + moved) % 97 == 1:
            longest = at
        at += 1  # the blank
    return longest


@lru_cache(maxsize=64)
def _digits(group: str) -> tuple[int, int]:
    """A group as MOD 97-10 counts it: the value of its digits, and ten to the power of their number."""
    digits = group.translate(_VALUES)
    return int(digits or 0), 10 ** len(digits)


def _card(found: str) -> bool:
    digits = "".join(each for each in found if each.isdigit())
    return len(set(digits)) > 1 and luhn(digits)


def _places(pattern: str, holds: Callable[[str], bool]) -> Places:
    """The places of the pattern's last group where ``holds`` accepts the text."""
    return lambda text: (
        match.span(match.re.groups) for match in linear(pattern).finditer(text) if holds(match.group(match.re.groups))
    )


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    """The places of IBANs; a word in capitals after one, such as a currency, does not belong to it."""
    until = 0
    for match in _IBAN_BEGINS.finditer(text):
        begin = match.start()
        groups = _IBAN_AT.match(text[begin : begin + _LONGEST_IBAN + 1]) if begin >= until else None
        length = iban(groups.group()) if groups is not None else 0
        if length:
            until = begin + length
            yield begin, until


def _cards(text: str) -> Iterator[tuple[int, int]]:
    """The places of card numbers, also where another number stands beside one: a quantity, or the code of the card."""
    for match in linear(_CARD).finditer(text):
        start, run = match.start(), match.group()
        groups = [found.span() for found in _GROUP.finditer(run)]
        sizes = [end - begin for begin, end in groups]
        at = 0
        while at < len(groups):
            begin = groups[at][0]
            stop = next((stop for stop in _stops(sizes, at) if _card(run[begin : groups[stop - 1][1]])), None)
            if stop is not None:
                yield start + begin, start + groups[stop - 1][1]
            at = at + 1 if stop is None else stop


def _stops(sizes: Sequence[int], at: int) -> Iterator[int]:
    """The groups before which a card number that begins at one of these sizes may end."""
    if at == 0:
        longest = bisect_left(list(accumulate(sizes[: _CARD_DIGITS.stop])), _CARD_DIGITS.stop)
        if sum(sizes[:longest]) in _CARD_DIGITS:
            yield longest
    yield from (at + len(each) for each in _GROUPS_OF_CARDS if tuple(sizes[at : at + len(each)]) == each)
    if sizes[at] in _CARD_DIGITS:
        yield at + 1


Places: TypeAlias = Callable[[str], Iterator[tuple[int, int]]]
KINDS: Final[Mapping[str, Places]] = {
    "email": _places(_EMAIL, lambda _: True),
    "phone": _places(_PHONE, lambda found: sum(map(str.isdigit, found)) in _DIGITS),
    "iban": _ibans,
    "card": _cards,
    "key": _places(_KEY, lambda _: True),
}
"""The kinds of data, each with the function that finds their places in a text."""
_BARE: Final = {"email": _EMAIL, "phone": _NUMBER, "iban": _IBAN, "card": _CARD, "key": _KEY}


@cache
def coarse_pattern(kinds: tuple[str, ...]) -> re2._Regexp[bytes]:
    """A pattern that matches all bytes that hold, as UTF-8, a text with one of these kinds; it also matches others.

    It consists of the patterns without their conditions on surrounding characters. They match ASCII alone, so that the
    bytes of a whole request hold a match wherever one of its texts does.
    """
    import re2  # noqa: PLC0415  # 2.6 MB, for those who have patterns

    return re2.compile("|".join(f"(?:{_BARE[kind]})" for kind in kinds).replace(r"\b", "").encode())


def _pii(value: Json) -> TextTest:
    wanted = tuple(KINDS) if value is None or value is True else texts(value)
    for kind in wanted:
        if kind not in KINDS:
            raise CheckError(f"is not a kind: {kind!r}; valid here: {', '.join(KINDS)}")
    sought = [(kind, KINDS[kind]) for kind in wanted]

    def test(found: str) -> Finding:
        if len(found) > MAX_SCANNED:
            return Unavailable(Reason("longer than {most} characters", most=MAX_SCANNED))
        numbers = [(kind, sum(1 for _ in places(found))) for kind, places in sought]
        named = [Reason("{n} {kind}", n=number, kind=own(kind)) for kind, number in numbers if number]
        return Scored(value=1.0, reason=Reason("found: {kinds}", kinds=together(named, ", "))) if named else False

    return test


CHECKS: Final = (
    Check("pii", "Personal data or keys", "it holds an e-mail address, a telephone number, an IBAN or a card number "
          "(with valid check digits), or a key of a known form; mostly used as not-pii",
          "true, or kinds of email, phone, iban, card, key", _pii,
          undefined="its target is not known, or longer than 1,000,000 characters",
          source="ISO/IEC 7812-1 (Luhn), ISO 13616 (IBAN), E.164; published forms of keys"),
)  # fmt: skip
"""The check of personal data."""

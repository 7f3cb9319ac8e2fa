"""Facts in a text that can be checked literally: numbers, amounts, time stamps, dates, quotes, names.

Expressions here have no nested or overlapping repeats, so that none takes more than linear time on any input. Every
function reads only the first ``MAX_TEXT`` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .numerals import CURRENCIES, MONTHS, currency_of
from .text import fold_digits, is_unspaced, normalise

MAX_TEXT = 500_000
"""Most characters of a text that are read for facts: some eight hours of speech."""

_NUMBER = re.compile(r"(?<!\d)\d+(?:[.,]\d+)*")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+\Z")
_LONGEST_CURRENCY = max(map(len, CURRENCIES))
_STAMP = re.compile(r"(?<![\d:.])(\d{1,3}):([0-5]\d)(?::([0-5]\d))?(?![\d:])")
_MONTH = "|".join(sorted((re.escape(name) for name in MONTHS), key=len, reverse=True))
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})([-/])(\d{2})\2(\d{2})(?!\d)")
_PLAIN_DATE = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-])")
_DAY_MONTH = re.compile(rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|\.)? ?(?:of |de )?({_MONTH})\b(?:,? (?:de )?(\d{{4}}))?")
_MONTH_DAY = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (\d{{4}}))?")
_QUOTE_PAIRS = {
    "“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "「": "」", "『": "』", '"': '"', "‘": "’", "'": "'’",
}  # fmt: skip
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St)\. \Z")
_NAME = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class NumberInText:
    """A number as written, the values that it may mean (``1.234`` is two), and its currency where one is given."""

    text: str
    values: frozenset[str]
    currency: str | None = None

    def agrees(self, other: NumberInText) -> bool:
        """The same number, unless both name a currency and name different ones."""
        same_currency = self.currency is None or other.currency is None or self.currency == other.currency
        return same_currency and not self.values.isdisjoint(other.values)


@dataclass(frozen=True, slots=True)
class Quote:
    """The text between quotation marks, and its place in the whole text (with its marks)."""

    text: str
    start: int
    end: int


def numbers(text: str) -> list[NumberInText]:
    """Numbers in order, apart from those that are part of a time stamp or a code (``Q77``).

    >>> [sorted(n.values) for n in numbers("₹४९ and 1,234.50 at 01:23 for Q77")]
    [['49'], ['1234.5']]
    >>> numbers("$49")[0].currency
    'USD'
    """
    folded = _STAMP.sub(" ", fold_digits(text[:MAX_TEXT]))
    return [
        NumberInText(match.group(), _values(match.group()), currency_of(folded, match.start(), match.end()))
        for match in _NUMBER.finditer(folded)
        if not _ends_code(folded, match.start())
    ]


def _ends_code(text: str, start: int) -> bool:
    """Whether digits belong to the letters before them. Currencies, and scripts without spaces, adjoin numbers too."""
    before = text[max(0, start - 1) : start]
    if not before.isalnum() or is_unspaced(before):
        return False
    adjoining = _LETTERS_BEFORE.search(text[max(0, start - _LONGEST_CURRENCY - 1) : start])
    return adjoining is None or adjoining.group().casefold() not in CURRENCIES


def amounts(text: str) -> list[NumberInText]:
    """Numbers with a currency."""
    return [number for number in numbers(text) if number.currency is not None]


def timestamps(text: str) -> list[int]:
    """Time stamps in seconds: ``mm:ss`` or ``hh:mm:ss`` (a time of day ``14:02`` reads as 14 min 2 s, consistently).

    >>> timestamps("at 01:23 and [00:01:23]")
    [83, 83]
    """
    return [_seconds(match) for match in _STAMP.finditer(fold_digits(text[:MAX_TEXT]))]


def dates(text: str) -> list[frozenset[str]]:
    """Dates, each as the set of days (``yyyy-mm-dd``, or ``mm-dd`` without a year) that it may mean.

    >>> dates("on 12 March 2026")
    [frozenset({'2026-03-12'})]
    >>> sorted(dates("03/04/2026")[0])
    ['2026-03-04', '2026-04-03']
    """
    return [readings for readings, _, _ in found_dates(normalise(text[:MAX_TEXT]))]


def found_dates(normalised: str) -> Iterator[tuple[frozenset[str], int, int]]:
    """Dates of a normalised text with their place in it."""
    for match in _ISO_DATE.finditer(normalised):
        yield _dated(match, {(int(match[3]), int(match[4]))}, match[1])
    for match in _PLAIN_DATE.finditer(normalised):
        first, second = int(match[1]), int(match[3])
        yield _dated(match, {(first, second), (second, first)}, match[4] if len(match[4]) == 4 else "20" + match[4])
    for match in _DAY_MONTH.finditer(normalised):
        yield _dated(match, {(MONTHS[match[2]], int(match[1]))}, match[3])
    for match in _MONTH_DAY.finditer(normalised):
        yield _dated(match, {(MONTHS[match[1]], int(match[2]))}, match[3])


def disagree(left: Iterable[NumberInText], right: Iterable[NumberInText]) -> bool:
    """Whether both sides give figures and share none."""
    mine, theirs = list(left), list(right)
    return bool(mine) and bool(theirs) and not any(one.agrees(other) for one in mine for other in theirs)


def same_date(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two dates may mean the same day; a missing year fits every year."""
    return any(a[-5:] == b[-5:] and (a == b or len(a) == 5 or len(b) == 5) for a in left for b in right)


def quotes(text: str) -> list[Quote]:
    """Quotations, outermost only. An apostrophe within a word opens and closes nothing.

    Within other marks than apostrophes, spaces may stand beside the words (``« Bonjour »``); they are part of the text.

    >>> [q.text for q in quotes("said 'Don't worry' and “bye”")]
    ["Don't worry", 'bye']
    """
    text = text[:MAX_TEXT]
    found: list[Quote] = []
    closings = _closings(text)
    at = 0
    while at < len(text):
        closing = _QUOTE_PAIRS.get(text[at])
        end = None
        if closing is not None and _opens(text, at):
            end = next((end for mark in closing if (end := closings.after(mark, at)) is not None), None)
        if end is None:
            at += 1
        else:
            found.append(Quote(text[at + 1 : end], at, end + 1))
            at = end + 1
    return found


def names(text: str) -> list[str]:
    """Words with a capital that do not begin a sentence; scripts without capitals yield none.

    >>> names("The agent told Priya Sharma. She agreed.")
    ['Priya', 'Sharma']
    """
    text = text[:MAX_TEXT]
    found: list[str] = []
    for match in _NAME.finditer(text):
        before = text[max(0, match.start() - 3) : match.start()]
        begins = "\n" in before or not before.strip() or before.rstrip()[-1] in ".!?:;।。\"'“‘„«(["
        begins = begins and not _TITLE.search(text[max(0, match.start() - 6) : match.start()])
        of_code = text[match.end() : match.end() + 1].isdigit()
        if match.group()[0].isupper() and not begins and not of_code:
            found.append(match.group())
    return found


class _closings:  # noqa: N801  # private; reads as a function
    """Places of closing marks, so that each search for one is a step forward and never a scan from the start."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next: dict[str, int] = {}

    def after(self, mark: str, start: int) -> int | None:
        """The first place after ``start`` where ``mark`` closes."""
        at = self._next.get(mark, -1)
        if at == len(self._text):
            return None
        if at <= start:
            at = start
            while True:
                at = self._text.find(mark, at + 1)
                if at < 0:
                    at = len(self._text)
                if at == len(self._text) or self._closes(mark, at):
                    break
            self._next[mark] = at
        return at if at < len(self._text) else None

    def _closes(self, mark: str, at: int) -> bool:
        before, after = self._text[at - 1], self._text[at + 1 : at + 2]
        if mark in "'’":
            return not before.isspace() and not (before.isalnum() and after.isalnum())
        # A straight mark after a space closes only where no word begins: there it would open.
        return mark != '"' or not before.isspace() or not after.isalnum()


def _opens(text: str, at: int) -> bool:
    mark, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if mark in "'‘":
        return bool(after) and not after.isspace() and not before.isalnum()
    return bool(after) and (mark != '"' or not before.isalnum())


def _seconds(match: re.Match[str]) -> int:
    first, second, third = int(match[1]), int(match[2]), match[3]
    return first * 60 + second if third is None else first * 3600 + second * 60 + int(third)


def _dated(match: re.Match[str], days: set[tuple[int, int]], year: str | None) -> tuple[frozenset[str], int, int]:
    prefix = f"{year}-" if year else ""
    return (
        frozenset(f"{prefix}{month:02}-{day:02}" for month, day in days if 1 <= month <= 12 and 1 <= day <= 31),
        match.start(),
        match.end(),
    )


def _values(raw: str) -> frozenset[str]:
    """Possible values of a number: its last separator marks decimals, groups, or either (``1.234``, not ``0.234``)."""
    marks = [character for character in raw if character in ".,"]
    if not marks:
        return frozenset({_canonical(raw, "")})
    head, _, tail = raw.rpartition(marks[-1])
    grouped = _canonical(re.sub("[.,]", "", raw), "")
    decimal = _canonical(re.sub("[.,]", "", head), tail)
    if len(set(marks)) == 2:
        return frozenset({decimal} if marks.count(marks[-1]) == 1 else {grouped})
    if len(marks) > 1:
        groups = re.split("[.,]", raw)
        return frozenset({grouped} if all(2 <= len(group) <= 3 for group in groups[1:]) else {raw})
    may_be_grouped = len(tail) == 3 and len(head) <= 3 and not head.startswith("0")
    return frozenset({decimal, grouped} if may_be_grouped else {decimal})


def _canonical(whole: str, fraction: str) -> str:
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")

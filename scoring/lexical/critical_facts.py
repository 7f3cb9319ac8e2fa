"""Critical facts of a sentence: numbers with their unit or currency, dates, times, codes; and how they drifted.

Two sentences of one language are compared: a reference and a translation. Expressions here have no nested or
overlapping repeats, so that none takes more than linear time on any input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise

from .facts import found_dates, numbers, timestamps
from .numerals import CURRENCIES, NUMBER_WORDS, ORDINALS, RANGE_MARKS, SCALES, UNITS, currency_of, spoken_figures
from .text import fold_digits, normalise, tokens

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[\u00a0\u2007\u2009\u202f'’]\d{3})+(?!\d)")
"""A number whose thousands are set apart by spaces that do not break, or by apostrophes: 1\u202f000, 1’000."""
_SPACED = re.compile(
    r"(?<![\d.,:/+-])(?<!\d )\d{1,3}(?: \d{3})+(?=(?:[.,]\d{1,2})? ?(?:"
    + "|".join(sorted(map(re.escape, {*CURRENCIES, *UNITS}), key=len, reverse=True))
    + r")(?!\w))"
)
"""The same with spaces, where a currency or a unit follows: 10 000 km. Elsewhere they may be several numbers."""
_SCIENTIFIC = re.compile(r"(?<![\w.,/-])\d{1,9}(?:[.,]\d{1,9})?e[+-]?\d{1,2}(?![\w/-]|[.,]\d)")
"""A number with a power of ten: 1e3, 2.5e-3."""
_DIGITS = re.compile(r"\d+(?:(?:\) ?|[ \u00a0\u2009\u202f./-])\(?\d+)*")
"""Groups of digits that may be one number: 0800 123-4567, 4111 1111 1111 1111, (555) 123.4567."""
_LONG = 7
"""Fewest digits of a number (a telephone, an account) that may be grouped in any way."""
_POINT = re.compile(r"(?<![\w.,])\.(?=\d)")
"""The point of a number without a zero before it: .5."""
_TIME = re.compile(r"(?<![\d:.])\d{1,3}:[0-5]\d(?::[0-5]\d)?(?![\d:])")
_CLOCK = re.compile(
    r"(?<![\w:.,])(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d))?"
    r" ?(?:(?P<half>[ap])\.? ?m(?:\.|\b)|uhr\b(?: (?P<past>[0-5]\d)\b)?)"
    r"|(?<![\w:.,])(?P<h>\d{1,2})(?:[:.](?P<m>[0-5]\d) ?h\b| ?h ?(?P<n>[0-5]\d)\b(?! ?m))"
)
"""A time of day that says so: 2:30 pm, 14.30 Uhr, 14 Uhr 30, 14.30 h, 14h30."""
_TOKEN = re.compile(r"(?<![a-z0-9])[a-z0-9]+(?:[-_/][a-z0-9]+)*")
_MIXED = re.compile(r"[a-z]\d")
_HEAD = re.compile(r"([a-z]+)[-_/]?(?=\d)")
_TAIL = re.compile(r"\d([a-z]+)\Z")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SMALL = 13
_AHEAD = 40
_MAX_SCALED = 30


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number: the values that it may mean (``1.234`` is two), and its unit or currency where one is known."""

    values: frozenset[str]
    measure: str | None = None


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time as it is written, and in 24 hours where that is known, in minutes; time stamps alike, in seconds.

    ``2:30`` may be at night. ``hour``: only the hour is given, as in ``9 Uhr``.
    """

    written: int
    in_day: int | None = None
    hour: bool = field(default=False, compare=False)

    def agrees(self, other: TimeOfDay) -> bool:
        """Whether both are the same time. If only one gives the half of the day, that does not matter."""
        if self.in_day is None or other.in_day is None:
            return self.written == other.written
        return self.in_day == other.in_day


@dataclass(frozen=True, slots=True)
class CriticalFact:
    """One fact: a number, a range of numbers (``3–5 days``), a date, a time, or a code as it is written."""

    text: str = field(compare=False)
    quantities: tuple[Quantity, ...] = ()
    date: frozenset[str] = frozenset()
    time: TimeOfDay | None = None
    literal: str = ""


class CriticalFacts:
    """The facts of one text without repeats, and whether it states a given one."""

    def __init__(self, text: str) -> None:
        text = _SPACED.sub(_joined, normalise(_GROUPED.sub(_joined, text)))
        found, words = _read(_SCIENTIFIC.sub(_plain, _POINT.sub("0.", text)))
        self.facts: tuple[CriticalFact, ...] = tuple(dict.fromkeys(found))
        self._measures: dict[str, set[str | None]] = {}
        for quantity in (quantity for fact in self.facts for quantity in fact.quantities):
            for value in quantity.values:
                self._measures.setdefault(value, set()).add(quantity.measure)
        self._dates = {day for fact in self.facts for day in fact.date}
        self._days = {day[-5:] for day in self._dates}
        self._times = [fact.time for fact in self.facts if fact.time]
        self._literals = {fact.literal for fact in self.facts if fact.literal}
        # "COVID-19" and "COVID 19", "2 days" and "two days" are one fact, whichever way round.
        self._joined = {left + right for left, right in pairwise(words)}
        self._words = {str(NUMBER_WORDS[word]) for word in words if NUMBER_WORDS.get(word, _SMALL) < _SMALL}
        self._words.update(str(time.written // 60) for time in self._times if time.hour)
        self._words.update(digits for literal in self._literals for digits in re.findall(r"\d+", literal))

    def state(self, fact: CriticalFact) -> bool:
        """Whether the fact is here. A unit, currency or year that only one side gives contradicts nothing."""
        if fact.literal:
            return fact.literal in self._literals or fact.literal in self._joined
        if fact.time:
            return any(map(fact.time.agrees, self._times)) or (fact.time.hour and self._counts(fact.time.written // 60))
        if fact.date:
            return any(self._has_day(day) for day in fact.date)
        return all(self._has(quantity) for quantity in fact.quantities)

    def _counts(self, number: int) -> bool:
        return str(number) in self._measures or str(number) in self._words

    def _has_day(self, day: str) -> bool:
        return day in self._dates or day[-5:] in (self._days if len(day) == 5 else self._dates)

    def _has(self, quantity: Quantity) -> bool:
        for value in quantity.values:
            measures = self._measures.get(value, ())
            if measures and (quantity.measure is None or None in measures or quantity.measure in measures):
                return True
        return not quantity.values.isdisjoint(self._words)


@dataclass(frozen=True, slots=True)
class Drift:
    """The changes of a translated sentence to its reference's facts. A changed fact is an omission with an addition."""

    expected: tuple[CriticalFact, ...]
    omitted: tuple[CriticalFact, ...]
    added: tuple[CriticalFact, ...]

    @property
    def additions(self) -> int:
        """Additions beyond those that replace an omission: a changed fact counts once (the seed's example)."""
        return max(0, len(self.added) - len(self.omitted))


def drift(expected: str, given: str, source: str = "") -> Drift:
    """Compare a translated sentence with its reference; facts of the source sentence do not count as added.

    >>> found = drift("3–5 दिनों में ₹४९, खाता 9987", "7-10 दिनों में ₹49, खाता 9987")
    >>> [fact.text for fact in found.expected], [fact.text for fact in found.omitted], found.additions
    (['3–5', '49', '9987'], ['3–5'], 0)
    """
    expected, given = grouped_alike(expected, given)
    wanted, stated = CriticalFacts(expected), CriticalFacts(given)
    omitted = tuple(fact for fact in wanted.facts if not stated.state(fact))
    added = tuple(fact for fact in stated.facts if not wanted.state(fact))
    spoken = CriticalFacts(source) if added else stated
    return Drift(wanted.facts, omitted, tuple(fact for fact in added if not spoken.state(fact)))


def grouped_alike(one: str, other: str) -> tuple[str, str]:
    """Two texts in which a long number that both have, but group in different ways, is written without groups.

    >>> grouped_alike("Call 555 123 4567, in 5 days", "Call (555) 123-4567, in 5 days")
    ('Call 5551234567, in 5 days', 'Call (5551234567, in 5 days')
    """
    mine = _long_numbers(one)
    theirs = _long_numbers(other) if mine else {}
    unlike = {digits for digits in mine.keys() & theirs.keys() if len(mine[digits] | theirs[digits]) > 1}

    def join(found: re.Match[str]) -> str:
        digits = _joined(found)
        return digits if fold_digits(digits) in unlike and not _measured(found) else found[0]

    return (_DIGITS.sub(join, one), _DIGITS.sub(join, other)) if unlike else (one, other)


def _long_numbers(text: str) -> dict[str, set[str]]:
    """The ways in which each long number is written, by its digits."""
    found: dict[str, set[str]] = {}
    for each in _DIGITS.finditer(fold_digits(text)):
        if len(digits := _joined(each)) >= _LONG:
            found.setdefault(digits, set()).add(each.group())
    return found


def _measured(found: re.Match[str]) -> bool:
    """Whether digits may be one decimal, or a range or list of amounts."""
    following = normalise(found.string[found.end() : found.end() + _AHEAD])
    currency = currency_of(found.string, found.start(), found.end())
    return found[0].count(".") == 1 or currency is not None or _unit(following) is not None


def _plain(scientific: re.Match[str]) -> str:
    return format(Decimal(scientific.group().replace(",", ".")), "f")


def _joined(grouped: re.Match[str]) -> str:
    return re.sub(r"\D", "", grouped.group())


def _read(text: str) -> tuple[list[CriticalFact], list[str]]:
    """Facts of a normalised text, kind by kind, and its words."""
    words = tokens(text)
    found: list[CriticalFact] = []
    text = _take(text, found, _dates(text))
    text = _take(text, found, _clock_times(text))
    text = _take(text, found, ((_fact_of_time(m.group()), m.start(), m.end()) for m in _TIME.finditer(text)))
    text = _take(text, found, ((_fact_of_code(m.group()), m.start(), m.end()) for m in _codes(text)))
    found += _ranges(text)
    found += (CriticalFact(figure, (Quantity(frozenset({figure})),)) for figure in spoken_figures(tokens(text)))
    return found, words


def _take(text: str, found: list[CriticalFact], facts: Iterator[tuple[CriticalFact, int, int]]) -> str:
    """Note the facts and blank them out, so that no number is read twice."""
    kept: list[str] = []
    at = 0
    for fact, start, end in sorted(facts, key=lambda each: each[1]):
        if start >= at:
            found.append(fact)
            kept += (text[at:start], " ; ")
            at = end
    return "".join(kept) + text[at:]


def _dates(text: str) -> Iterator[tuple[CriticalFact, int, int]]:
    for readings, start, end in found_dates(text):
        if readings:
            yield CriticalFact(text[start:end], date=readings), start, end


def _clock_times(text: str) -> Iterator[tuple[CriticalFact, int, int]]:
    for match in _CLOCK.finditer(text):
        minute = match["minute"] or match["past"] or match["m"] or match["n"]
        hour, half = int(match["hour"] or match["h"]), match["half"]
        if hour <= (12 if half else 24):
            written = hour * 60 + int(minute or 0)
            in_day = _in_day(written) if half is None else written % 720 + 720 * (half == "p")
            yield (
                CriticalFact(match.group(), time=TimeOfDay(written, in_day, minute is None)),
                match.start(),
                match.end(),
            )


def _fact_of_time(written: str) -> CriticalFact:
    stamp = timestamps(written)[0]
    return CriticalFact(written, time=TimeOfDay(stamp, _in_day(stamp)))


def _in_day(written: int) -> int | None:
    """A time that is none of a clock of twelve hours."""
    return None if 60 <= written < 780 else written


def _fact_of_code(written: str) -> CriticalFact:
    return CriticalFact(written, literal=re.sub("[-_/]", "", written))


def _codes(text: str) -> Iterator[re.Match[str]]:
    """Tokens in which Latin letters and digits make one name: ``TXN-4471``, ``AB12345``, ``4471a``; not ``10km``."""
    for match in _TOKEN.finditer(text):
        written = match.group()
        head, tail = _HEAD.match(written), _TAIL.search(written)
        if head and (head[1] in CURRENCIES or (head[1] in UNITS and len(head[1]) > 1)):  # G20 is a name
            continue
        glued = tail is not None and len(tail[1]) <= 3 and not text[match.end() : match.end() + 1].isalpha()
        if head or _MIXED.search(written) or (tail and glued and not _is_measure(tail[1])):
            yield match


def _is_measure(word: str) -> bool:
    return word in ORDINALS or word in UNITS or word in CURRENCIES or word in SCALES


def _ranges(text: str) -> Iterator[CriticalFact]:
    """Numbers, with those of one range grouped, because they share a unit."""
    run: list[tuple[Quantity, int, int]] = []
    for match in _NUMBER.finditer(text):
        between = text[run[-1][2] : match.start()].strip() if run else ""
        if run and between not in RANGE_MARKS and between.strip(" -") not in RANGE_MARKS:
            yield _range(text, run)
            run = []
        run.append((_quantity(text, match), match.start(), match.end()))
    if run:
        yield _range(text, run)


def _range(text: str, run: list[tuple[Quantity, int, int]]) -> CriticalFact:
    shared = next((quantity.measure for quantity, _, _ in reversed(run) if quantity.measure), None)
    return CriticalFact(
        text[run[0][1] : run[-1][2]],
        tuple(replace(quantity, measure=quantity.measure or shared) for quantity, _, _ in run),
    )


def _quantity(text: str, match: re.Match[str]) -> Quantity:
    values, end = numbers(match.group())[0].values, match.end()
    following = re.match(r"[ -]?(\S+)", text[end : end + _AHEAD])
    scale = SCALES.get(following[1].rstrip(".,;:!?।")) if following else None
    if following and scale:
        values, end = frozenset(_scaled(value, scale) for value in values), end + following.end()
    return Quantity(values, currency_of(text, match.start(), end) or _unit(text[end : end + _AHEAD]))


def _scaled(value: str, scale: int) -> str:
    return format((Decimal(value) * scale).normalize(), "f") if len(value) <= _MAX_SCALED else value


def _unit(following: str) -> str | None:
    """The unit that the next word names, or the one after it (``5 business days``), within the clause."""
    if following.lstrip()[:1] == "%":
        return "%"
    for word in following.replace("-", " ").split()[:2]:
        bare = word.rstrip(".,;:!?।)")
        if bare in UNITS:
            return UNITS[bare]
        if bare != word or any(map(str.isdigit, word)):
            return None
    return None

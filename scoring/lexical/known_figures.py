"""Known figures: which numbers a text gives, in figures or in words, and which follow from them.

A number is made up when it stands nowhere, follows from none that does, and is not simply counted by whoever writes.
So this is decided for amounts, percentages, long numbers, and numbers with a unit of which the text gives another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final

from .facts import MAX_TEXT, NumberInText, numbers
from .numerals import CURRENCIES, NUMBER_WORDS, spoken_numbers
from .statement import root, words_of
from .text import fold_digits, normalise, tokens

_UNREAD: Final = re.compile(
    r"hundred|thousand|million|dozen|hundert|tausend|zig\b|ßig\b|ssig\b|zehn\b|ciento|cien\b|cientos|\bmil\b|veint|treinta"
    r"|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa|सौ|हज़ार|हजार|लाख|cent\b|vingt|trente|quarante|cinquante"
)
"""Number words that are not read: beside one of them nobody knows which numbers a text gives."""
_STAMP: Final = re.compile(r"(?<!\d)(\d{1,2}):([0-5]\d)(?!\d)")
_FRACTIONS: Final = {
    "half": "50", "halves": "50", "quarter": "25", "hälfte": "50", "halb": "50", "mitad": "50", "medio": "50",
}  # fmt: skip
_TIME: Final = frozenset(
    map(
        root,
        words_of(
            "second seconds minute minutes hour hours day days night nights week weeks month months year years",
            "business",
            "minuten stunde stunden tag tage tagen woche wochen monat monate jahr jahre",
            "minuto minutos hora horas día días semana semanas mes meses año años uhr am pm",
        ),
    )
)
_ARTICLES: Final = frozenset(("a", "an", "ein", "eine", "einen", "einer", "un", "una"))
_UNITS_OF_TIME: Final = (5.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 365.0)
_OFTEN: Final = (2.0, 7.0, 12.0, 30.0, 52.0)
"""How often what costs so much each time may be meant."""
_BETWEEN: Final = frozenset(("to", "or", "bis", "oder", "a", "o"))
"""What stands between the ends of a range."""
_MOST: Final = 60
"""Different numbers of a text among which others may follow; of more, any number might."""
_REACH: Final = 2
_LONG: Final = 4


class KnownFigures:
    """The numbers of a text."""

    def __init__(self, text: str) -> None:
        normal = normalise(fold_digits(text[:MAX_TEXT]))
        words = tokens(normal)
        found = numbers(normal)
        self._unread = _UNREAD.search(normal) is not None
        self._amounts = set(_floats(value for number in found if number.currency for value in number.values))
        self._values = {
            *_floats(value for number in found for value in number.values),
            *_floats(spoken_numbers(words)),
            *_floats(_FRACTIONS[word] for word in words if word in _FRACTIONS),
            *_floats(word for word in words if word.isdigit()),
            *_of_times(normal),
        }
        self._by_unit: dict[str, set[float]] = {}
        for unit, value in _with_units(words):
            self._by_unit.setdefault(unit, set()).add(value)
            if unit in CURRENCIES:
                self._amounts.add(value)

    def gives(self, value: float) -> bool:
        """Whether the number stands in the text, or might: beside words that are not read this is unknown."""
        return self._unread or value in self._values

    def lacks_amount(self, value: float) -> bool:
        """Whether an amount follows from none here: no sum, difference or multiple of amounts."""
        if len(self._values) > _MOST:
            return False
        counts = {*(count for count in self._values if count <= 100), *_OFTEN}
        multiples = (amount * count for amount in self._amounts for count in counts)
        cents = (left + right / 100 for left in self._values for right in self._values if right < 100)
        shares = (amount / count for amount in self._amounts for count in counts if count)
        return not _holds(value, (*_sums(self._amounts), *multiples, *cents, *shares))

    def lacks_measure(self, value: float, unit: str) -> bool:
        """Whether the text gives numbers of this unit, and this one follows from none of them."""
        known = self._by_unit.get(unit, set())
        if not known or len(self._values) > _MOST:
            return False
        times = set().union(*(self._by_unit.get(one, set()) for one in _TIME)) if unit in _TIME else set()
        converted = (each for one in times for factor in _UNITS_OF_TIME for each in (one * factor, one / factor))
        return not _holds(value, (*_sums(known), *converted))


def made_up(number: NumberInText, claim: str, texts: tuple[KnownFigures, ...]) -> bool:
    """Whether a number of a claim stands in none of the texts, follows from none, and is no count of the writer's."""
    wanted = _floats(number.values)
    if not wanted or any(text.gives(value) for text in texts for value in wanted):
        return False
    folded = normalise(fold_digits(claim))
    if re.search(rf"(?<!\d){re.escape(number.text)} ?(?:%|percent|prozent|por ciento)", folded):
        return True
    if number.currency is not None:
        return all(text.lacks_amount(value) for text in texts for value in wanted)
    words = tokens(folded)
    at = words.index(number.text) if number.text in words else len(words)
    units = [root(word) for word in words[at + 1 : at + 1 + _REACH] if word.isalpha()]
    if any(text.lacks_measure(value, unit) for text in texts for value in wanted for unit in units):
        return True
    return len(number.text) >= _LONG


def _floats(values: Iterable[str]) -> list[float]:
    return [float(value) for value in values if re.fullmatch(r"\d{1,15}(\.\d{1,6})?", value)]


def _sums(values: set[float]) -> list[float]:
    return [result for left, right in combinations(values, 2) for result in (left + right, abs(left - right))]


def _holds(value: float, results: Iterable[float]) -> bool:
    return any(abs(value - result) < 1e-6 for result in results)


def _of_times(normal: str) -> Iterator[float]:
    """Hours and minutes of times of day, in either way to count the hours."""
    for match in _STAMP.finditer(normal):
        hour = int(match[1])
        yield from (float(hour), float(hour + 12), float(max(hour - 12, 0)), float(match[2]))


def _with_units(words: list[str]) -> Iterator[tuple[str, float]]:
    """Numbers with the words that follow them, as roots; of a range both ends."""
    waiting: list[float] = []
    for at, word in enumerate(words):
        value = float(word) if word.isdigit() and len(word) <= 15 else NUMBER_WORDS.get(word)
        if word in _ARTICLES and root(" ".join(words[at + 1 : at + 2])) in _TIME:
            value = 1.0
        if value is None:
            continue
        waiting = (
            [*waiting, float(value)]
            if at >= 2 and waiting and words[at - 1] in ("to", "bis", "a", "or")
            else [float(value)]
        )
        for follower in words[at + 1 : at + 1 + _REACH]:
            if follower.isdigit() or follower in NUMBER_WORDS:
                break
            yield from ((follower if follower in CURRENCIES else root(follower), one) for one in waiting)

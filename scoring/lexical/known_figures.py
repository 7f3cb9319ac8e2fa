"""Known figures: the numbers that a text gives, in figures or in words, and the numbers that follow from them.

A number is unaccounted for when it is absent, follows from no number that is present, and the writer neither rounds nor
calculates. A short one may still count or name something (``Account.OPEN``): that alone is no contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from functools import cached_property
from itertools import combinations
from typing import Final

from .facts import MAX_TEXT, NumberInText, numbers
from .lexicon import STOPWORDS, word_list
from .numerals import CURRENCIES, NUMBER_WORDS, spoken_numbers
from .statement import root
from .text import fold_digits, normalise, tokens

_UNREAD: Final = re.compile(
    r"hundred|thousand|million|dozen|hundert|tausend|zig\b|ßig\b|ssig\b|zehn\b|ciento|cien\b|cientos|\bmil\b|veint|treinta"
    r"|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa|सौ|हज़ार|हजार|लाख|cent\b|vingt|trente|quarante|cinquante"
)
"""Number words that are not read: beside one of them a text's numbers are unknown."""
_STAMP: Final = re.compile(r"(?<!\d)(\d{1,2}):([0-5]\d)(?!\d)")
_FRACTIONS: Final = {
    "half": (50,), "halves": (50,), "hälfte": (50,), "halb": (50,), "mitad": (50,), "medio": (50,), "third": (33,),
    "thirds": (33, 67, 66), "drittel": (33, 67, 66), "tercio": (33,), "quarter": (25,), "quarters": (25, 75),
    "viertel": (25, 75), "cuarto": (25,), "fifth": (20,), "fifths": (40, 60, 80), "fünftel": (20, 40, 60, 80),
    "tenth": (10,), "zehntel": (10,),
}  # fmt: skip
"""Percent that a fraction may be."""
_RATIO: Final = re.compile(r"(?<![\d/])(\d{1,3}) ?/ ?(\d{1,3})(?![\d/])")
_FACTORS: Final = (2.0, 5.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0, 1e3, 1e6)
"""Factors of units of time, of frequencies, and of what a number may leave out: *sixty* for 60,000, *1.2k*, cents."""
_PLACES: Final = 4
_MOST: Final = 60
"""Most different numbers of a text that others are derived from; with more, any number might follow."""
_LONG: Final = 1000
_DIGITS: Final = 4
_REACH: Final = 2
_LARGE: Final = 1000
_JOINED: Final = re.compile(r"(?<=\d)[ .-](?=\d)")
_COUNTED: Final = {
    "fortnight": 14.0, "couple": 2.0, "pair": 2.0, "both": 2.0, "twice": 2.0, "century": 100.0, "decade": 10.0,
}  # fmt: skip
_ORDINALS: Final = {
    word: float(value)
    for value, words in enumerate(
        (
            "first erste ersten primero primera", "second zweite zweiten segundo segunda",
            "third dritte dritten tercero", "fourth vierte vierten cuarto", "fifth fünfte fünften quinto",
            "sixth sechste sechsten sexto", "seventh siebte siebten séptimo", "eighth achte achten octavo",
            "ninth neunte neunten noveno", "tenth zehnte zehnten décimo", "eleventh elfte elften",
            "twelfth zwölfte zwölften", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
            "eighteenth", "nineteenth", "twentieth",
        ),
        1,
    )
    for word in words.split()
}  # fmt: skip
_BETWEEN: Final = frozenset(("to", "or", "bis", "oder", "a", "o"))
"""Words between the ends of a range."""
_LONGEST: Final = 15
_ARTICLES: Final = frozenset(("a", "an", "ein", "eine", "einen", "einer", "un", "una"))
_NUMBERED: Final = word_list(
    "gate room row floor page ticket flight platform order number no seat line bus channel zimmer gleis nummer tor"
)
"""Things with a number as their name: no arithmetic leads to it."""
_TIME: Final = frozenset(
    map(
        root,
        word_list(
            "seconds minutes hours days nights weeks months years minuten stunden tage wochen monate jahre",
            "minutos horas días semanas meses años",
        ),
    )
)
_HALVES: Final = frozenset(("half", "halb", "medio", "media", "halbe", "halben"))
_QUARTERS: Final = frozenset(("quarter", "quarters", "viertel", "cuarto"))
_RECKONED: Final = re.compile(
    r"\b(?:about|around|almost|nearly|approximately|roughly|over|under|up\s+to|at\s+least|at\s+most|more|less|fewer|"
    r"cheaper|dearer|total|totals|altogether|sum|difference|saves?d?|saving|each|average|early|earlier|"
    r"remaining|double|triple|half|twice|times\s+as|older|younger|longer|shorter|faster|slower|i\.?e|"
    r"rund|etwa|ungefähr|fast|mehr|weniger|insgesamt|zusammen|jeweils|früher|später|unos|casi|más|menos|doble|mitad)\b"
)
"""Words that mark a number as rounded or calculated by the writer."""


class KnownFigures:
    """The numbers of a text."""

    def __init__(self, text: str) -> None:
        normal = normalise(fold_digits(text[:MAX_TEXT]))
        words = tokens(normal)
        found = numbers(normal)
        self._unread = _UNREAD.search(normal) is not None
        self._values = {
            *_floats(value for number in found for value in number.values),
            *_floats(spoken_numbers(words)),
            *(float(share) for word in words for share in _FRACTIONS.get(word, ())),
            *(float(round(100 * int(m[1]) / int(m[2]))) for m in _RATIO.finditer(normal) if int(m[2])),
            *_floats(word for word in words if word.isdigit()),
            *_of_times(normal),
            *(known for word in words if (known := _COUNTED.get(word, _ORDINALS.get(word))) is not None),
        }
        parts = {
            *((0.5,) if not _HALVES.isdisjoint(words) else ()),
            *((0.25, 0.75) if not _QUARTERS.isdisjoint(words) else ()),
        }
        self._values |= {value + part for value in self._values for part in parts if value < _LARGE} | parts
        self._joined = _JOINED.sub("", normal)
        self._amounts = set(_floats(value for number in found if number.currency for value in number.values))
        self._by_unit: dict[str, set[float]] = {}
        for unit, value in _with_units(words):
            self._by_unit.setdefault(unit, set()).add(value)

    def gives(self, value: float) -> bool:
        """Whether the number is in the text, or may be: beside unread number words this is unknown."""
        if self._unread or value in self._values or len(self._values) > _MOST:
            return True
        return value >= _LONG and value == int(value) and str(int(value)) in self._joined  # dictated in groups

    def yields(self, value: float) -> bool:
        """Whether the number follows from one or two of the text's by plain arithmetic."""
        return round(value, _PLACES) in self._derived

    def yields_share(self, value: float) -> bool:
        """Whether this percentage is the ratio of two amounts here, or of their difference to one of them."""
        pairs = ((left, right) for left in self._amounts for right in self._amounts if right)
        shares = {round(100 * each / right) for left, right in pairs for each in (left, abs(left - right))}
        return round(value) in shares

    def measures(self, unit: str) -> frozenset[float]:
        """The numbers with this unit and the results of two of them; for times also conversions of other units."""
        known = self._by_unit.get(unit, set())
        times = set().union(*(self._by_unit.get(one, set()) for one in _TIME)) if unit in _TIME and known else set()
        converted = (each for one in times for factor in _FACTORS for each in (one * factor, one / factor))
        sums = (each for left, right in combinations(known, 2) for each in (left + right, abs(left - right)))
        return frozenset([round(each, _PLACES) for each in (*known, *sums, *converted)])

    @cached_property
    def _derived(self) -> frozenset[float]:
        scaled = (each for one in self._values for factor in _FACTORS for each in (one * factor, one / factor))
        return frozenset([round(value, _PLACES) for value in (*scaled, *_reckoned(self._values))])


class Account(Enum):
    """How the numbers of texts account for a number of a claim."""

    FOR = auto()
    """It is present, follows from them, or the writer rounds or calculates."""
    OPEN = auto()
    """It is absent and may be a count or a name of something."""
    AGAINST = auto()
    """It is absent, and is an amount, a share or long, or the texts give other numbers of its unit."""


def account(number: NumberInText, claim: str, texts: tuple[KnownFigures, ...]) -> Account:
    """How a number of a claim is accounted for."""
    wanted = _floats(number.values)
    if not wanted or any(text.gives(value) for text in texts for value in wanted):
        return Account.FOR
    folded = normalise(fold_digits(claim))
    if _RECKONED.search(folded):
        return Account.FOR
    if re.search(rf"(?<!\d){re.escape(number.text)} ?(?:%|percent|prozent|por ciento)", folded):
        return Account.FOR if _any(KnownFigures.yields_share, texts, wanted) else Account.AGAINST
    words = tokens(folded)
    at = words.index(number.text) if number.text in words else len(words)
    for unit in [root(word) for word in words[at + 1 : at + 1 + _REACH] if word not in CURRENCIES]:
        known = frozenset().union(*(text.measures(unit) for text in texts))
        if known and not any(round(value, _PLACES) in known for value in wanted):
            return Account.AGAINST
    if _NUMBERED.isdisjoint(words[max(0, at - 1) : at]) and _any(KnownFigures.yields, texts, wanted):
        return Account.FOR
    return Account.AGAINST if number.currency is not None or len(number.text) >= _DIGITS else Account.OPEN


def _any(known: Callable[[KnownFigures, float], bool], texts: tuple[KnownFigures, ...], values: list[float]) -> bool:
    return any(known(text, value) for text in texts for value in values)


def _floats(values: Iterable[str]) -> list[float]:
    return [float(value) for value in values if re.fullmatch(r"\d{1,15}(\.\d{1,6})?", value)]


def _reckoned(values: set[float]) -> Iterator[float]:
    for left, right in combinations(values, 2):
        yield from (left + right, abs(left - right), left * right)
        if left and right:
            yield from (left / right, right / left)
        yield from (left + right / 100, right + left / 100)  # dollars and cents


def _of_times(normal: str) -> Iterator[float]:
    """Hours and minutes of times of day, in both ways of counting the hours."""
    for match in _STAMP.finditer(normal):
        hour = int(match[1])
        yield from (float(hour), float(hour + 12), float(max(hour - 12, 0)), float(match[2]))


def _with_units(words: list[str]) -> Iterator[tuple[str, float]]:
    """Numbers with the words that follow them, as roots; of a range both ends."""
    waiting: list[float] = []
    for at, word in enumerate(words):
        value = float(word) if word.isdigit() and len(word) <= _LONGEST else NUMBER_WORDS.get(word, _COUNTED.get(word))
        if word in _ARTICLES and root(" ".join(words[at + 1 : at + 2])) in _TIME:
            value = 1.0
        if value is None:
            continue
        ranged = at >= _REACH and waiting and words[at - 1] in _BETWEEN
        waiting = [*waiting, float(value)] if ranged else [float(value)]
        for follower in words[at + 1 : at + 1 + _REACH]:
            if follower.isdigit() or follower in NUMBER_WORDS:
                break
            if follower not in STOPWORDS and follower not in CURRENCIES:
                yield from ((root(follower), one) for one in waiting)

"""Figures: which numbers and dates a text states, and whether another text states them too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from sidejudge.scoring.lexical.claims import words_of
from sidejudge.scoring.lexical.facts import MAX_TEXT, NumberInText, dates, numbers, same_date
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.lexical.numerals import spoken_numbers
from sidejudge.scoring.lexical.text import normalise

_MOST = 200
"""Figures, and dates, of one text that are looked up."""
_LONG_FIGURE = 4
"""Digits from which a figure that stands in a row of digits is no chance."""


@dataclass(frozen=True, slots=True)
class _Stated:
    """The figures and dates of a text. Long figures may be dictated, written in groups, or part of a code."""

    values: frozenset[str]
    days: tuple[frozenset[str], ...]
    joined: str

    def lacks(self, figure: NumberInText) -> bool:
        digits = re.sub(r"\D", "", figure.text)
        return self.values.isdisjoint(figure.values) and (len(digits) < _LONG_FIGURE or digits not in self.joined)


@lru_cache(maxsize=4)
def _stated(known: str) -> _Stated:
    # Many claims are looked up in the same text.
    written_out = {value for number in numbers(known) for value in number.values}
    return _Stated(
        values=frozenset(written_out | spoken_numbers(words_of(known))),
        days=tuple(dict.fromkeys(dates(known))),
        joined=re.sub(r"[\s\W_]+", "", normalise(known)),
    )


def absent_from(text: str, known: str) -> str | None:
    """A figure or a date of a text that does not stand in what is known."""
    if max(len(text), len(known)) > MAX_TEXT:
        return None
    days, given = [day for day in dates(text)[:_MOST] if day], figures(text)
    if not days and not given:
        return None
    stated = _stated(known)
    for day in days:
        if not any(same_date(day, other) for other in stated.days):
            return f"the date {min(day)}"
    absent = next(filter(stated.lacks, given), None)
    return f"the figure {label(absent.text, 30)}" if absent else None


def _is_specific(number: NumberInText) -> bool:
    """An amount, or a number of two digits or more: smaller ones are counted, spelt out, or number a list."""
    return number.currency is not None or len(number.text) > 1


def figures(text: str) -> list[NumberInText]:
    """The first figures of a text that can be known from a count."""
    return [number for number in numbers(text[:MAX_TEXT]) if _is_specific(number)][:_MOST]


def disagree(left: Iterable[NumberInText], right: Iterable[NumberInText]) -> bool:
    """Whether both give figures, and not one in common."""
    mine, theirs = list(left), list(right)
    return bool(mine) and bool(theirs) and not any(one.agrees(other) for one in mine for other in theirs)

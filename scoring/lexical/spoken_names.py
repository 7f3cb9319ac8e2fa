"""Spoken names: whether a name may occur in a transcript, in any form: inflected, misspelt, or cut short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cached_property

from .text import WordIndex

_BEGINNING, _BEGINNING_OF_NAME = 4, 3
"""Letters that two forms of a name share at the beginning; fewer where both are capitalised."""
_ABBREVIATION = re.compile(r"\b(?:[A-Z]\.?){2,7}(?![a-z])")
_CAPITAL = re.compile(r"\b[^\W\d_a-z][^\W\d_]{2,40}")
_MOST_NAMES = 300
"""Most capitalised words compared with a name, and most names compared; any further one counts as possibly present."""
_LONGEST_NAME = 40
_SAME_NAME = 0.75


class SpokenNames:
    """The names of a transcript, by its text, the labels of its speakers, and the index of its words."""

    def __init__(self, text: str, speakers: Sequence[str], words: WordIndex) -> None:
        self._text, self._speakers, self._index = text, speakers, words
        self._alike: dict[str, bool] = {}

    @cached_property
    def abbreviations(self) -> frozenset[str]:
        """Words in capitals, without points: *WHO*, *U.N.* as *UN*."""
        return frozenset(found.replace(".", "") for found in _ABBREVIATION.findall(self._text))

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        capital = (word.casefold()[:_BEGINNING_OF_NAME] for word in _CAPITAL.findall(self._text))
        return frozenset((*capital, *(word[:_BEGINNING] for word in self._index.words)))

    def may_hold(self, word: str) -> bool:
        """Whether a word like this one occurs in any form (*Rome* where *Roman* does)."""
        if self._index.has_word(word):
            return True
        alike = (word[:_BEGINNING], word[:_BEGINNING_OF_NAME])
        if len(word) >= _BEGINNING and not self._beginnings.isdisjoint(alike):
            return True
        if word not in self._alike:
            self._alike[word] = len(self._alike) >= _MOST_NAMES or len(word) > _LONGEST_NAME or self._is_misspelt(word)
        return self._alike[word]

    def _is_misspelt(self, word: str) -> bool:
        """Whether a capitalised word here is spelt almost like it, or is short for it (*Liz*, *Elizabeth*)."""
        return any(
            known in word or word in known or SequenceMatcher(None, known, word).ratio() >= _SAME_NAME
            for known in self._capital
        )

    @cached_property
    def _capital(self) -> list[str]:
        labels = " ".join(dict.fromkeys(self._speakers))
        return list(dict.fromkeys(map(str.casefold, _CAPITAL.findall(f"{labels} {self._text}"))))[:_MOST_NAMES]

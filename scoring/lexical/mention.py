"""Mentions: whether a text contains a term as a separate word, and whether a name may occur in it in any form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

from .text import WordIndex, is_unspaced, normalise

_ENDING = 2
_PREFIX = 3
_LONG_ENOUGH = 4
_FIRST_WITH_PREFIXES, _LAST_WITH_PREFIXES = "\u0590", "\u08ff"
_FIRST_SYLLABLE, _LAST_SYLLABLE = "\uac00", "\ud7a3"
"""Korean: each character is a syllable, of two letters or more."""


class Mentions:
    """Texts in which many phrases are looked up after normalisation.

    A mention begins and ends where a word does, with exceptions by language: scripts without spaces have no bounds; a
    change of script ends a word (``KYCची``); a word of four letters or more may take an ending of two (``Annas``,
    ``प्रियाला``) that is not just a vowel sign; Arabic and Hebrew put up to three letters in front.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(map(normalise, texts))

    def has(self, phrase: str) -> bool:
        """Whether the phrase stands in one of the texts.

        >>> [Mentions(["KYC पूरा है, Anna."]).has(each) for each in ("kyc", "An", "पूर", "Anna")]
        [True, False, False, True]
        """
        wanted = normalise(phrase)
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            if self._begins(at) and self._ends(wanted, at + len(wanted)):
                return True
            at = self._text.find(wanted, at + 1)
        return False

    def _begins(self, at: int) -> bool:
        first = self._text[at]
        before = self._text[max(0, at - _PREFIX - 1) : at][::-1]
        length = _run(first, before)
        return length == 0 or (_FIRST_WITH_PREFIXES <= first <= _LAST_WITH_PREFIXES and length <= _PREFIX)

    def _ends(self, wanted: str, end: int) -> bool:
        ending = self._text[end : end + _ENDING + 1]
        ending = ending[: _run(wanted[-1], ending)]
        if ending in ("", "s"):
            return True
        letters = sum(2 if _FIRST_SYLLABLE <= each <= _LAST_SYLLABLE else _is_letter(each) for each in wanted)
        return letters >= _LONG_ENOUGH and len(ending) <= _ENDING and unicodedata.category(ending[0])[0] == "L"


def _run(beside: str, text: str) -> int:
    """How many characters at the beginning of the text continue the word that ``beside`` belongs to."""
    for at, character in enumerate(text):
        if not _same_word(beside, character):
            return at
        beside = character
    return len(text)


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


def _same_word(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word."""
    if unicodedata.category(left)[0] not in "LNM" or unicodedata.category(right)[0] not in "LNM":
        return False
    if is_unspaced(left) or is_unspaced(right):
        return False
    return _script(left) == _script(right) or "M" in unicodedata.category(left) + unicodedata.category(right)


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    """The first word of the character's name: LATIN, DEVANAGARI, …; ``DIGIT`` for digits."""
    return unicodedata.name(character, "").partition(" ")[0]


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

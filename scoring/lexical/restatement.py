"""Restatement: whether a transcript states what a claim states, but with another number or name in one place.

Words alone prove no fabrication: a summary adds what everybody knows, rounds, and counts. What does is a clause that
the transcript holds nearly word by word, with another number for the same thing or with a name that is nowhere.
"""

from __future__ import annotations

from typing import Final

from .claims import Claim, stems
from .facts import NumberInText
from .lexicon import STOPWORDS
from .numerals import CURRENCIES, NUMBER_WORDS
from .statement import root
from .text import tokens
from .transcript_index import TranscriptIndex

_SHARE, _SHARE_OF_NAMES = 0.6, 0.75
"""Of the claim's content words, without its names, the share that must stand together, around a number or a name."""
_LEAST: Final = 1
_REACH: Final = 3
"""Words on either side of a number among which the thing is named that it counts or measures."""


def restates(index: TranscriptIndex, claim: Claim, *, whole_name: bool) -> bool:
    """Whether the words of a claim stand together in the transcript, apart from its names and numbers.

    With a ``whole_name`` (*Amit Verma*), which is a party's more often than a single word, fewer of them suffice.
    """
    return _place(index, claim, _SHARE if whole_name else _SHARE_OF_NAMES) is not None


def gives_another_number(index: TranscriptIndex, claim: Claim, text: str, number: NumberInText) -> bool:
    """Whether the transcript holds the claim's words with another number, of the same thing or of the same currency."""
    said = _place(index, claim, _SHARE)
    if said is None:
        return False
    about = set().union(*(_beside(words, at) for words in [tokens(text)] for at in _places_of(words, number)))
    own = {value for each in claim.numbers for value in each.values}
    for words in said:
        for at, word in enumerate(words):
            if not (word.isdigit() or word in NUMBER_WORDS) or str(NUMBER_WORDS.get(word, word)) in own:
                continue
            near = _beside(words, at)
            money = number.currency is not None and any(CURRENCIES.get(one) == number.currency for one in near)
            if money or not about.isdisjoint(near):
                return True
    return False


def _place(index: TranscriptIndex, claim: Claim, least: float) -> list[list[str]] | None:
    content = _content(claim)
    if len(content) < _LEAST:
        return None
    found, share = index.together(content)
    return found if share >= least else None


def _content(claim: Claim) -> frozenset[str]:
    named = {stem for name in claim.names for stem in stems(tokens(name))}
    return frozenset(stem for stem in claim.content - named if not stem[:1].isdigit())


def _places_of(words: list[str], number: NumberInText) -> list[int]:
    values = {number.text, *number.values}
    return [at for at, word in enumerate(words) if word in values or str(NUMBER_WORDS.get(word, "")) in values]


def _beside(words: list[str], at: int) -> set[str]:
    """Roots of the words beside a number, and its currency."""
    near = words[max(0, at - _REACH) : at] + words[at + 1 : at + 1 + _REACH]
    return {word if word in CURRENCIES else root(word) for word in near if word not in STOPWORDS and not word.isdigit()}

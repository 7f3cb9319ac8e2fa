"""A short statement as an ordered list: roots of its content words, and its figures.

It is coarser than equality and finer than overlap: order counts, and so do words that reverse a meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from .facts import NumberInText, disagree, numbers, timestamps
from .lexicon import AGENT_WORDS, CUSTOMER_WORDS, NEGATIONS, word_list
from .numerals import CURRENCIES
from .text import fold_digits, tokens, without_ending

MAX_STATEMENT = 4000
"""Most characters of a statement that are read; a highlight has some sixty."""

_LIGHT = word_list(
    "a an the of for and about regarding is was are were be been being has have had do does did this that it its his",
    "her their your our my there s der die das des dem den ein eine einen einem einer und ist sind war wurde wurden",
    "hat haben von für über el los las un una y de del es son fue ha por para sobre है हैं था थी थे का की के को में और",
)
"""Words that do not change the meaning; prepositions of direction (*from*, *to*) do, and are not among them."""

_DENIALS = word_list(
    "not no never t didn doesn don wasn weren isn aren hasn haven hadn nicht nie kein keine keinen nunca नहीं न"
)
"""Words that only deny."""

AGENT, CUSTOMER = "agent", "customer"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """Roots and figures of a statement, each in order; a time of day is a figure too."""

    roots: tuple[str, ...]
    figures: tuple[NumberInText, ...]

    @property
    def stated(self) -> frozenset[str]:
        return frozenset(self.roots)

    @property
    def affirmed(self) -> tuple[str, ...]:
        """The roots without the words that merely deny."""
        return tuple(word for word in self.roots if word not in _DENIALS)

    @property
    def amounts(self) -> tuple[NumberInText, ...]:
        return tuple(figure for figure in self.figures if figure.currency is not None)


def root(word: str) -> str:
    """A word without a common ending, a doubled last letter and a final *y*; never cut short.

    >>> {root(word) for word in ("verify", "verified", "verifies")}
    {'verifi'}
    """
    if len(word) < 4:
        return word
    word = without_ending(word)
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return f"{word[:-1]}i" if word[-1] == "y" and word[-2] not in "aeiou" else word


@lru_cache(maxsize=512)
def read_statement(text: str) -> Statement:
    """Take a statement apart.

    >>> read_statement("The refund of $49 was initiated").roots
    ('refund', 'initiat')
    """
    folded = fold_digits(text[:MAX_STATEMENT]).replace("%", " percent ")
    words = [word for word in tokens(folded) if not word.isdigit() and word not in _LIGHT and word not in CURRENCIES]
    times = [NumberInText(str(at), frozenset({f"@{at}"})) for at in timestamps(folded)]
    return Statement(tuple(map(_word, words)), (*numbers(folded), *times))


def covers(statement: Statement, other: Statement) -> bool:
    """Whether a statement covers all of the other: its words and figures in the same order, nothing reversed.

    >>> covers(read_statement("Refund initiated for $49"), read_statement("Refund of $49"))
    True
    >>> covers(read_statement("Refund of $49 declined"), read_statement("Refund of $49"))
    False
    """
    if not other.roots and not other.figures:
        return False
    return (
        _is_subsequence(other.roots, statement.roots, lambda a, b: a == b)
        and _is_subsequence(other.figures, statement.figures, NumberInText.agrees)
        and TURNS.isdisjoint(statement.stated - other.stated)
    )


def states_the_same(left: Statement, right: Statement) -> bool:
    """Whether both state the same, word for word and figure for figure."""
    return covers(left, right) and covers(right, left)


def contradicts(statement: Statement, other: Statement) -> bool:
    """Whether both are about the same thing, ``other`` in no more words, and give different figures or the opposite.

    >>> contradicts(read_statement("Refund initiated for $49"), read_statement("Refund of $99"))
    True
    """
    if statement.affirmed == other.affirmed and len(other.affirmed) > 1:
        denied = [not _DENIALS.isdisjoint(one.roots) for one in (statement, other)]
        if denied[0] != denied[1]:
            return True
    topic = other.stated - {AGENT, CUSTOMER}
    if not topic or not topic <= statement.stated or not TURNS.isdisjoint(statement.stated ^ other.stated):
        return False
    if statement.amounts or other.amounts:
        return disagree(statement.amounts, other.amounts)
    return disagree(statement.figures, other.figures)


def _word(word: str) -> str:
    if word in AGENT_WORDS:
        return AGENT
    if word in CUSTOMER_WORDS:
        return CUSTOMER
    return word if word in NEGATIONS else root(word)


def _is_subsequence(part: Iterable[T], whole: Iterable[T], same: Callable[[T, T], bool]) -> bool:
    rest = iter(whole)
    return all(any(same(one, other) for other in rest) for one in part)


TURNS = NEGATIONS | frozenset(
    map(
        root,
        word_list(
            "if whether unless may might could would should will can shall ask asks want wants wish wishes request",
            "demand offer promise propose plan consider deny decline reject refuse dispute doubt threaten attempt try",
            "pending fail unable cancel reverse revoke withdraw instead almost wrong wrongly incorrect false claim",
            "claimed alleged or before until only partly partial half twice double percent",
            "wenn ob soll wird würde abgelehnt verweigert storniert si rechazado rechazó denegado cancelado",
            "अगर यदि अस्वीकार",
        ),
    )
)
"""Words that change the meaning of a statement."""

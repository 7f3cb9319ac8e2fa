"""The lexical answer to a question about a translation: its facts, by numbers, dates, times and codes, any script.

A fact is kept where all of its figures stand in the translation. It is lost where another figure of its kind stands
in the place of one. A figure that is merely absent may be written in words or in another unit, and is left open; so is
what a sign, a half of the day or a version number may change.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from sidejudge.scoring.lexical.critical_facts import CriticalFact, CriticalFacts
from sidejudge.scoring.lexical.mention import Mentions
from sidejudge.scoring.questions.kinds import KeepsFact
from sidejudge.scoring.questions.question import Answer, NoAnswer, Reply
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import Method

_HALF_OF_DAY: Final = re.compile(
    r"\b[ap]\.? ?m\b\.?|(?:noon|midnight|mittags?|nachmittags?|abends?|tarde|noche|soir)", re.IGNORECASE
)
_NEGATIVE: Final = re.compile(r"(?<![\w.,])[-−–]\d|\bminus\b|\bmoins\b|\bmenos\b", re.IGNORECASE)
_TRAILING_ZERO: Final = re.compile(r"\d[.,]\d*0(?!\d)")


def keeps_fact(question: KeepsFact) -> Reply:
    """Whether a fact is kept; one without any figure is kept when it stands there word for word."""
    fact, translation = question.fact, question.translation
    wanted = CriticalFacts(fact).facts
    if not wanted:
        if Mentions([translation]).has(fact):
            return Answer(value=True, method=Method.LEXICAL, reason=Reason("stands there word for word"))
        return NoAnswer(
            Reason("critical fact {fact} names no number, date or code: it needs a judge", fact=quoted(repr(fact[:60])))
        )
    stated = _stated(translation)
    lost = [each for each in wanted if not stated.state(each)]
    if not lost:
        return _OPEN if _may_differ(fact, translation) else Answer(value=True, method=Method.LEXICAL)
    others = [each for each in stated.facts if each not in wanted]
    replaced = [each.text for each in lost if any(_in_place_of(each, other) for other in others)]
    if not replaced or _HALF_OF_DAY.search(f"{fact} {translation}"):
        return _OPEN
    return Answer(
        value=False,
        method=Method.LEXICAL,
        reason=Reason("not there: {facts}", facts=quoted(", ".join(replaced[:5])[:200])),
    )


def _may_differ(fact: str, translation: str) -> bool:
    """Whether equal figures may mean something else: a sign, a half of the day, a version's last zero."""
    signed = bool(_NEGATIVE.search(fact)) != bool(_NEGATIVE.search(translation))
    halves = bool(_HALF_OF_DAY.search(f"{fact} {translation}"))
    return signed or halves or bool(_TRAILING_ZERO.search(fact)) != bool(_TRAILING_ZERO.search(translation))


def _in_place_of(lost: CriticalFact, other: CriticalFact) -> bool:
    """Whether a fact of the translation may replace a missing one: both are of one kind."""
    if lost.literal:
        return bool(other.literal) and lost.literal[-1:].isalpha() == other.literal[-1:].isalpha()
    if lost.date:
        return bool(other.date)
    measures = {quantity.measure for quantity in lost.quantities}
    return bool(other.quantities) and measures == {quantity.measure for quantity in other.quantities}


_OPEN: Final = NoAnswer(Reason("figures alone cannot tell: it needs a judge"))


@lru_cache(maxsize=4)
def _stated(translation: str) -> CriticalFacts:
    # One question a fact is asked of the same translation.
    return CriticalFacts(translation)

"""The lexical answer to a question about a translation: its facts, by numbers, dates, times and codes, any script."""

from __future__ import annotations

from functools import lru_cache

from scoring.lexical.critical_facts import CriticalFacts
from scoring.lexical.mention import Mentions
from scoring.questions.question import Answer, NoAnswer, Reply
from scoring.questions.translation import KeepsFact
from scoring.result.result import Method


def keeps_fact(question: KeepsFact) -> Reply:
    """A fact is kept when every number, date, time and code in it stands in the translation.

    One without any is kept when it stands there word for word; else only a judge can answer.
    """
    literal = CriticalFacts(question.fact).facts
    if not literal:
        if Mentions([question.translation]).has(question.fact):
            return Answer(value=True, method=Method.LEXICAL, reason="stands there word for word")
        return NoAnswer(f"critical fact {question.fact[:60]!r} names no number, date or code: it needs a judge")
    stated = _stated(question.translation)
    lost = [fact.text for fact in literal if not stated.state(fact)]
    return Answer(
        value=not lost, method=Method.LEXICAL, reason=f"not there: {', '.join(lost[:5])[:200]}" if lost else ""
    )


@lru_cache(maxsize=4)
def _stated(translation: str) -> CriticalFacts:
    # Each fact is one question about the same translation.
    return CriticalFacts(translation)

"""Drift: an answer of a judge in, the numbers out by which it is compared with another answer to the same prompt."""

from __future__ import annotations

from scoring.questions.question import Question
from scoring.rubrics.dimensions import LEVELS

from .golden import facts, metric_of, stable


def measures(question: Question, value: object) -> dict[str, float]:
    """The numbers of an answer by measure: levels, yes as 1, how many of a list.

    >>> from scoring.questions.benchmarks import PiecesUsed
    >>> measures(PiecesUsed(("a", "b")), (True, False))
    {'pieces_used': 1.0}
    """
    metric = metric_of(question)
    found: dict[str, float] = {}
    for name, fact in stable(facts(value)).items():
        number = LEVELS.get(fact) if isinstance(fact, str) else fact
        if isinstance(number, tuple):
            number = float(sum(one is not False for one in number))
        if number is not None:
            found[metric if name == "value" else f"{metric}.{name}"] = float(number)
    return found

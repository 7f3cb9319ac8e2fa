"""Drift: an answer of a judge comes in, the measures for comparing it with another answer to the same prompt go out."""

from __future__ import annotations

from sidejudge.scoring.questions.kinds import CANNOT_TELL, AskDeclared
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.rubrics.dimensions import LEVELS
from sidejudge.scoring.statistics.judge_drift import Answered

from .beside import ends_of
from .golden import facts, metric_of, stable

_QUARTER = 0.25
"""A quarter of a scale: grades further apart are different answers, not variation of the same one."""


def measures(question: Question, value: object) -> dict[str, Answered]:
    """An answer by measure: levels and grades as numbers, yes as 1, a list by its length, a category by its name.

    >>> from sidejudge.scoring.questions.kinds import PiecesUsed
    >>> measures(PiecesUsed(("a", "b")), (True, False))
    {'pieces_used': 1.0}
    """
    if value == CANNOT_TELL and isinstance(question, AskDeclared):
        return {}
    metric = _named(question)
    found: dict[str, Answered] = {}
    for name, fact in stable(facts(value)).items():
        number = LEVELS.get(fact) if isinstance(fact, str) else fact
        if isinstance(fact, str) and isinstance(question, AskDeclared):
            found[metric] = fact
        elif isinstance(number, tuple):
            found[_joined(metric, name)] = float(sum(one is not False for one in number))
        elif number is not None:
            found[_joined(metric, name)] = float(number)
    return found


def far(question: Question, value: object) -> dict[str, float]:
    """By measure, the difference of numbers beyond which two answers differ; counts have no such bound."""
    metric = _named(question)
    found: dict[str, float] = {}
    for name, fact in stable(facts(value)).items():
        if isinstance(fact, bool):
            found[_joined(metric, name)] = 0.0
        elif (ends := ends_of(question, name)) is not None and isinstance(fact, int | float | str):
            found[_joined(metric, name)] = _QUARTER * (ends[1] - ends[0])
    return found


def _named(question: Question) -> str:
    """The name of a measure: two declared metrics of one kind are two measures."""
    return (
        question.metric.rpartition("-")[0] or question.metric
        if isinstance(question, AskDeclared)
        else metric_of(question)
    )


def _joined(metric: str, name: str) -> str:
    return metric if name == "value" else f"{metric}.{name}"

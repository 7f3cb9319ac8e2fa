"""Addressed: a question for a judge other than the default one. Whoever else answers is asked the question itself."""

from __future__ import annotations

from dataclasses import dataclass

from sidejudge.scoring.questions.question import Question


@dataclass(frozen=True, slots=True)
class Addressed(Question):
    """A question for the judge of this name. It is answered as ``question`` is.

    ``permuted``: it stands in a prompt with the material and the questions in another order.
    """

    question: Question
    judge: str
    permuted: bool = False


def plain(question: Question) -> Question:
    """The question itself, whoever is to answer it."""
    return question.question if isinstance(question, Addressed) else question

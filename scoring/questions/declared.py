"""A question that somebody declared in a rubric of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .question import Question

CANNOT_TELL: Final = "cannot tell"
"""What a judge answers where the material does not decide a question: no value, which no coin toss replaces."""
AnswerKind: TypeAlias = Literal["boolean", "scale", "one_of", "number", "findings"]


@dataclass(frozen=True, slots=True)
class AskDeclared(Question):
    """What the instructions ask of the case, whose ``parts`` are shown as data.

    ``metric`` is how it is called in the prompt: unlike for unlike instructions. ``choices`` belong to the ``kind``.
    Answered by, for boolean: a bool; scale: a whole number from ``choices[0]`` to ``choices[1]``; one_of: one of
    ``choices``; number: a number, between the two where they are given; findings: a tuple of texts, at most
    ``choices[0]``. All but findings may be ``CANNOT_TELL``: whoever asked gets no answer then. ``texts`` are shown
    besides, by name: those of a single step, whose case has other parts. ``prompt`` is the prompt of prompt management
    that it was read from, with its version (``tone v3``); empty: none.
    """

    metric: str
    instructions: str
    kind: AnswerKind
    choices: tuple[str | float, ...] = ()
    parts: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    prompt: str = ""

"""Questions about a run that is too long to be shown whole: its outline, and some of its steps in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .question import Question

CATEGORIES: Final = ("reasoning", "planning", "execution", "coordination")
IMPACTS: Final = ("high", "medium", "low")
MOST_CHOSEN: Final = 60
"""Steps that a judge may ask to see."""
MOST_FOUND: Final = 20
"""Errors that one answer names."""


@dataclass(frozen=True, slots=True)
class ChooseSteps(Question):
    """Which steps of this outline have to be seen in full, to find the errors of the run?

    Answered by a tuple of numbers of steps, the most suspicious first, at most ``MOST_CHOSEN``.
    """

    task: str
    outline: str


@dataclass(frozen=True, slots=True)
class FindErrors(Question):
    """Which errors does the run make at the steps that are shown in full?

    Answered by ``{"findings": [{"category", "step", "evidence", "quotation", "impact"}]}``: one of ``CATEGORIES``, a
    number of the outline, words of that step, and one of ``IMPACTS``. ``shown`` are the numbers of the steps in
    ``steps``, of ``of``.
    """

    task: str
    outline: str
    steps: str
    shown: tuple[int, ...]
    of: int


@dataclass(frozen=True, slots=True)
class ReachedGoal(Question):
    """What did the run achieve, by its outline and its last steps in full?

    Answered by ``all``, ``part`` or ``none``, or by ``CANNOT_TELL``: whoever asked gets no answer then.
    """

    task: str
    outline: str
    steps: str
    shown: tuple[int, ...]
    of: int

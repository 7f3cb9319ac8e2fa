"""Questions about an answer as a whole (seed 003 §2)."""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, slots=True)
class GradeQuality(Question):
    """Is the answer clear, accurate by its sources, and complete by what is expected? One question for all three.

    Answered by ``{"answer_quality", "factual_correctness", "completeness", "reasoning"}``: three numbers in [0, 1]
    on the seed's six levels, and text. Sources and criteria are those of ``scoring.case.grounds``.
    """

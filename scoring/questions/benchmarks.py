"""Questions of the standard benchmarks: what an output states, draws on, argues and obeys (seed 000, Layer 2).

Whether a claim is supported is asked as in the text rubric (``scoring.questions.text.Supported``), and how close two
texts are as in the translation rubric (``SentenceSimilarity``): equal questions are asked once.
"""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, slots=True)
class StatedClaims(Question):
    """Which claims do these statements make? Answered by a tuple of texts, each to be checked by itself.

    Nobody able to answer: each statement counts as one claim, as it stands. The statements are all that is to be taken
    apart: they may be the output's, another run's, or the reference's.
    """

    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SameFact(Question):
    """Do both state the same fact, figures included, in whatever words? Answered by a bool."""

    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class PiecesUsed(Question):
    """Which of these pieces of context does the output draw on? Answered by a tuple of bools, one a piece."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PiecesNeeded(Question):
    """Which of these pieces does it take to give the expected outcome? Answered by a tuple of bools, one a piece."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SoundReasoning(Question):
    """Is each step of the output's reasoning sound, compared with the reasoning of the expected outcome?

    Answered by ``{"steps": [{"step": str, "score": 1.0 | 0.5 | 0.0}], "expected": bool}``: 1.0 sound, 0.5 partial (the
    right conclusion by a wrong reason), 0.0 wrong. ``expected``: whether the expected outcome reasons at all; an
    output that does not has no steps.
    """


@dataclass(frozen=True, slots=True)
class FollowsInstructions(Question):
    """Which instructions did the output follow? The expected outcome shows an output that follows all of them.

    ``instructions`` are the case's own; None: those of its system prompt, which are to be listed. Answered by
    ``{"instructions": [{"instruction": str, "followed": bool}]}``, those of the case in their order.
    """

    instructions: tuple[str, ...] | None

"""Questions about the dimensions of an output (seed 004)."""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, slots=True)
class VerifyClaims(Question):
    """Which claims does the output make, how much does each matter, and does each match the ground truth?

    Answered by ``{"claims": [{"claim": str, "importance": "major" | "minor", "accurate": bool}]}``; an output that
    claims nothing has an empty list.
    """


@dataclass(frozen=True, slots=True)
class GradeDimension(Question):
    """Which of its five levels does the output reach in this dimension?

    Answered by ``{"level": "excellent" | "good" | "acceptable" | "poor" | "failed", "reason": str}``.
    """

    dimension: str

"""Questions about an agent's conversation (seed 001)."""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question

EMPHASIS_HEADING = "Test case-specific evaluation emphasis"
"""Heading under which a case's own emphasis is appended to the judge's user prompt, as seed 001 names it."""


@dataclass(frozen=True, slots=True)
class GradeAgent(Question):
    """How well did the agent do by one metric of ``scoring.metrics.judge_metrics``, turns numbered from 0?

    A scored metric is answered by ``{"score": 0..5, "failure_code": str | null, "turns": [int], "reason": str}``, a
    binary one by the same with ``"passed": bool`` in place of the score. ``emphasis`` is the case's
    ``evaluation_criteria_override``: it belongs under ``EMPHASIS_HEADING`` and changes no metric.
    """

    metric: str
    emphasis: str | None = None

"""Score name: what a score is called where verdicts are written back (Langfuse: 1–35 characters of ``[a-z0-9_.-]``).

A metric's is ``<rubric>_<metric>``, the composite's ``<rubric>_score``, the pass's ``<rubric>_pass``, the state's
``<rubric>_state``. A name that would be longer is made of the metric's ``short`` form, which stands beside its
declaration and never changes.
"""

from __future__ import annotations

import re

from sidejudge.scoring.metrics.metric import Metric

MAX_SCORE_NAME = 35
_ALLOWED = re.compile(r"[a-z0-9_.-]{1,35}")


def score_name(rubric: str, metric: Metric) -> str:
    """The name of a metric's score under a rubric; ``ValueError`` names what its declaration lacks.

    >>> from sidejudge.scoring.rubrics.answer import accuracy_score
    >>> score_name("answer", accuracy_score)
    'answer_accuracy_score'
    """
    full = f"{rubric}_{metric.id}"
    if len(full) <= MAX_SCORE_NAME:
        return _checked(full)
    if metric.short is None:
        raise ValueError(
            f"{full} has {len(full)} characters, {MAX_SCORE_NAME} are allowed: give the metric {metric.id!r} a "
            f"short= of at most {MAX_SCORE_NAME - len(rubric) - 1} characters"
        )
    return _checked(f"{rubric}_{metric.short}")


def composite_name(rubric: str) -> str:
    """The name of a rubric's composite."""
    return _checked(f"{rubric}_score")


def pass_name(rubric: str) -> str:
    """The name of a rubric's pass, a truth value."""
    return _checked(f"{rubric}_pass")


def state_name(rubric: str) -> str:
    """The name of the state of a rubric's verdict, a category."""
    return _checked(f"{rubric}_state")


def _checked(name: str) -> str:
    if _ALLOWED.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no score name: 1 to {MAX_SCORE_NAME} characters of a-z, 0-9, '_', '.' and '-'")
    return name

"""Review reason: whether a person should look at a verdict, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from sidejudge.scoring.result.result import Method

from .documents import ScoreDocument, VerdictDocument

JUDGES_DISAGREE: Final = "the judges disagree"
"""The flag of a judged answer on which the members of a panel differ."""
COST_UNKNOWN: Final = "cost not known"
"""The flag of a judged answer with only its price in doubt."""
COST_ESTIMATED: Final = "cost estimated"
"""The flag of a judged answer whose provider did not report its tokens, so that ours are used."""
LEFT_OUT: Final = "asked without a part that a filter stopped"
"""The flag of an answer to a shortened prompt, because the provider's filter refused the whole."""
OUTLINED: Final = "judged by "
"""Prefix of the flag of an answer from an outline of the run, because the whole did not fit."""
_NOTES: Final = frozenset({COST_UNKNOWN, COST_ESTIMATED, LEFT_OUT, "reason cut to 80 words", "redacted"})
"""Flags that put no value in doubt."""
NEAR: Final = 0.05
"""Share of the scale within which a composite is near its pass mark."""


class ReviewReason(StrEnum):
    """Why a verdict is in doubt, the gravest first."""

    DISAGREEMENT = "disagreement"
    """The members of a panel differ."""
    CONTRADICTION = "contradiction"
    """A judged answer contradicts plain rules."""
    BORDERLINE = "borderline"
    """The composite lies near the pass mark, and not all of it was decided exactly."""


def contradicts(flags: Iterable[str]) -> bool:
    """Whether one of the flags of a judged answer states a contradiction with plain rules."""
    return any(flag not in _NOTES and flag != JUDGES_DISAGREE and not flag.startswith(OUTLINED) for flag in flags)


def review_reason(verdict: VerdictDocument, scale: float) -> ReviewReason | None:
    """The gravest reason to look at a verdict in its JSON form under a rubric of this scale; None for none.

    A verdict that neither passed nor failed has no result that could be wrong.
    """
    if verdict.get("passed") is None:
        return None
    scores: Sequence[ScoreDocument] = [each for each in verdict.get("scores") or () if isinstance(each, Mapping)]
    flags = [flag for score in scores for flag in (score.get("judge") or {}).get("flags") or ()]
    if JUDGES_DISAGREE in flags:
        return ReviewReason.DISAGREEMENT
    if contradicts(flags):
        return ReviewReason.CONTRADICTION
    composite, mark = verdict.get("composite"), verdict.get("pass_mark")
    if composite is None or mark is None or abs(composite - mark) > NEAR * scale + 1e-9:
        return None
    estimated = any(score.get("weight") and score.get("method") not in (None, Method.EXACT.value) for score in scores)
    return ReviewReason.BORDERLINE if estimated else None

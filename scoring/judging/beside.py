"""Beside: in which direction a judge's answer differs from the right one.

A yes or no, a grade and an option can each be wrong in one of several directions. The share of right answers does not
reveal a judge that always errs in the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sidejudge.scoring.metrics.judge_metrics import MAX_SCORE
from sidejudge.scoring.questions.kinds import (
    AskDeclared,
    GradeAgent,
    GradeAnswer,
    OutcomeDrift,
    PiecesNeeded,
    PiecesUsed,
    VerifyClaims,
)
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.rubrics.dimensions import LEVELS

from .golden import Facts, GoldenQuestion

_UNIT = (0.0, 1.0)
_MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class YesOrNo:
    """A yes or no."""

    right: bool
    given: bool


@dataclass(frozen=True, slots=True)
class GradeBeside:
    """A number as a share of its scale, in [0, 1]; ``right`` is the right value nearest to ``given``."""

    right: float
    given: float


@dataclass(frozen=True, slots=True)
class OptionChosen:
    """One of a few options, in the order in which they were offered."""

    right: str
    given: str
    options: tuple[str, ...]


Compared: TypeAlias = YesOrNo | GradeBeside | OptionChosen


def compared(golden: GoldenQuestion, given: Facts) -> list[Compared]:
    """An answer's decisions, grades and choices, each with the right one; listed texts are left out.

    >>> from sidejudge.scoring.questions.kinds import SameFact
    >>> compared(GoldenQuestion(name="q", question=SameFact("a", "b"), right={"value": False}), {"value": True})
    [YesOrNo(right=False, given=True)]
    """
    match golden.question:
        case VerifyClaims():
            return [YesOrNo(_none(golden.right.get("inaccurate")), _none(given.get("inaccurate")))]
        case OutcomeDrift():
            right = golden.right.get("kept") == golden.right.get("outcomes")
            return [YesOrNo(right, _none(given.get("lost")))]
        case PiecesUsed(pieces) | PiecesNeeded(pieces):
            return list(_places(len(pieces), golden.right.get("value"), given.get("value")))
        case _:
            return [one for name, wanted in golden.right.items() for one in _fact(golden.question, name, wanted, given)]


def too_much(one: Compared) -> bool | None:
    """Whether the answer is more favourable than the right one; None where it could not be."""
    match one:
        case YesOrNo(right=False, given=given):
            return given
        case GradeBeside(right=right, given=given) if right < _MIDDLE or given > right:
            return given > right
    return None


def too_little(one: Compared) -> bool | None:
    """Whether the answer is less favourable than the right one; None where it could not be."""
    match one:
        case YesOrNo(right=True, given=given):
            return not given
        case GradeBeside(right=right, given=given) if right > _MIDDLE or given < right:
            return given < right
    return None


def _fact(question: Question, name: str, wanted: object, given: Facts) -> Iterator[Compared]:
    stated = given.get(name)
    if stated is None:
        return
    if isinstance(wanted, bool) and isinstance(stated, bool):
        yield YesOrNo(wanted, stated)
    elif name == "followed" and isinstance(wanted, list | tuple) and isinstance(stated, tuple):
        yield from (YesOrNo(bool(x), bool(y)) for x, y in zip(wanted, stated, strict=False))
    elif name == "level" and isinstance(stated, str):
        worth = [LEVELS[str(each)] for each in _listed(wanted)]
        yield _grade(worth, LEVELS[stated], _UNIT)
    elif isinstance(question, AskDeclared) and question.kind == "one_of":
        right = [str(each) for each in _listed(wanted)]
        chosen = str(stated)
        yield OptionChosen(chosen if chosen in right else right[0], chosen, tuple(map(str, question.choices)))
    elif isinstance(question, AskDeclared) and question.kind == "findings" and name == "count":
        yield YesOrNo(_none(wanted), _none(stated))  # to find nothing is the favourable answer
    elif (ends := ends_of(question, name)) is not None and isinstance(stated, int | float):
        yield _grade([each for each in _listed(wanted) if isinstance(each, int | float)], float(stated), ends)


def ends_of(question: Question, name: str) -> tuple[float, float] | None:
    """The ends of the scale of a fact; None where it is no grade."""
    match question:
        case GradeAnswer():
            return 0.0, 2.0
        case GradeAgent() if name == "score":
            return 0.0, float(MAX_SCORE)
        case AskDeclared(kind="scale" | "number", choices=(low, high)):
            return float(low), float(high)
        case AskDeclared():
            return None
    return None if name in ("count", "outcomes", "added", "claims", "steps") else _UNIT


def _grade(right: Sequence[float], given: float, ends: tuple[float, float]) -> GradeBeside:
    low, high = ends
    nearest = min(max(given, min(right)), max(right))
    return GradeBeside((nearest - low) / (high - low), (given - low) / (high - low))


def _places(count: int, wanted: object, given: object) -> Iterator[YesOrNo]:
    if isinstance(wanted, list | tuple) and isinstance(given, tuple):
        yield from (YesOrNo(place in wanted, place in given) for place in range(count))


def _none(count: object) -> bool:
    """Whether a number, or the lower end of a range, is 0."""
    return _listed(count)[0] == 0


def _listed(wanted: object) -> Sequence[object]:
    """A value, or the values of a range."""
    return wanted if isinstance(wanted, list | tuple) else [wanted]

"""Golden question: a question with its right answer, to measure a judge.

An answer is compared by its *facts*: a level, a yes or no, how many claims there are, never by the words of a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.questions.question import Question

from .layout import form_for

Trap: TypeAlias = Literal[
    "position", "verbosity", "authority", "injection", "language", "format", "self_praise", "sycophancy"
]
TRAPS: Final[tuple[Trap, ...]] = get_args(Trap)
"""Changes to a question that leave its right answer and mislead a biased judge.

``self_praise``: the text praises itself; ``sycophancy``: the asker states a wish. Where ``position`` swaps two sides,
the right one changes sides as well.
"""
Fact: TypeAlias = float | str | tuple[object, ...]
Facts: TypeAlias = Mapping[str, Fact]
Expected: TypeAlias = Mapping[str, object]
"""By fact: the value itself, ``[low, high]`` of a number, any of several texts; ``mentions`` and ``omits`` of texts."""
_TEXT: Final = "text"
_SCORE: Final = "score"
_EXPLAINS: Final = frozenset({"reason", "reasoning", "rationale", "failure_code", "turns"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenQuestion:
    """A question and its right answer. ``twin`` names the same question without the ``trap``, where it has one.

    ``label`` is the metric under which reports count it; without one, the kind of its question.
    """

    name: str
    question: Question
    right: Expected
    trap: Trap | None = None
    twin: str | None = None
    label: str = ""

    @property
    def metric(self) -> str:
        """The name of the kind of question in reports."""
        return self.label or metric_of(self.question)


def metric_of(question: Question) -> str:
    """The name of a question's kind where questions of all rubrics are counted."""
    return f"declared {question.kind}" if isinstance(question, AskDeclared) else form_for(question).metric


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenCase:
    """A case with questions that are asked together, as a monitor asks them."""

    case: Case
    questions: tuple[GoldenQuestion, ...]


def facts(value: object) -> Facts:
    """The facts of an answer; ``value`` is as ``JudgeRequest.read`` returns it.

    >>> facts((True, False, True))
    {'value': (0, 2)}
    >>> facts({"outcomes": [{"outcome": "refused", "kept": False}], "added": []})
    {'outcomes': 1, 'kept': 0, 'lost': 1, 'added': 0}
    """
    if isinstance(value, Mapping):
        found: dict[str, Fact] = {}
        for key, item in value.items():
            if isinstance(item, list | tuple):
                found |= _of_list(str(key), item)
            elif key not in _EXPLAINS:
                found[str(key)] = item
        return found
    if value == ():  # of texts or of places, which an empty list does not say
        return {"value": (), "count": 0, _TEXT: ""}
    if isinstance(value, tuple) and all(isinstance(one, bool) for one in value):
        return {"value": tuple(place for place, one in enumerate(value) if one)}
    if isinstance(value, tuple):
        return {"count": len(value), _TEXT: "\n".join(map(str, value)).lower()}
    return {"value": value}  # type: ignore[dict-item]  # a yes or no, a number or a name


def _of_list(key: str, items: Sequence[object]) -> dict[str, Fact]:
    """The facts of a list of objects: how many there are, and how many of each kind."""
    if key in _EXPLAINS:
        return {}
    objects = [one for one in items if isinstance(one, Mapping)]
    if key == "instructions":
        return {"followed": tuple(one.get("followed") for one in objects)}
    found: dict[str, Fact] = {key: len(items)}
    if key == "outcomes":
        kept = sum(one.get("kept") is True for one in objects)
        found |= {"kept": kept, "lost": len(objects) - kept}
    elif key == "claims":
        accurate = sum(one.get("accurate") is True for one in objects)
        found |= {"accurate": accurate, "inaccurate": len(objects) - accurate}
    elif key == "steps" and objects:
        found["lowest"] = min(float(score) for one in objects if isinstance(score := one.get(_SCORE), int | float))
    return found


def is_right(expected: Expected, given: Facts) -> bool:
    """Whether an answer is right; a missing expected fact makes it wrong."""
    return all(_holds(name, wanted, given) for name, wanted in expected.items())


def stable(given: Facts) -> Facts:
    """The facts that a second answer to the same question should repeat: all but the words of listed texts."""
    return {name: fact for name, fact in given.items() if name != _TEXT}


def _holds(name: str, wanted: object, given: Facts) -> bool:
    if name in ("mentions", "omits") and isinstance(wanted, Sequence):
        text = str(given.get(_TEXT, ""))
        return all((str(one).lower() in text) is (name == "mentions") for one in wanted)
    fact = given.get(name)
    if fact is None:
        return False
    if isinstance(wanted, list | tuple):
        if isinstance(fact, tuple):
            return fact == tuple(wanted)
        if isinstance(fact, str):
            return fact in wanted
        return bool(wanted) and float(wanted[0]) <= fact <= float(wanted[-1])
    return fact is wanted if isinstance(wanted, bool) or isinstance(fact, bool) else fact == wanted

"""Registry: every kind of question by name, so that a question can be written down and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from sidejudge.scoring.trace.span import Json

from . import kinds, question
from .question import Question

KINDS: Final[Mapping[str, type[Question]]] = {
    name: kind
    for module in (kinds, question)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Question) and kind is not Question
}


def question_json(asked: Question) -> dict[str, Json]:
    """A question as JSON: its kind and its fields."""
    stated = {each.name: getattr(asked, each.name) for each in fields(asked)}
    return {"ask": type(asked).__name__, **stated}


def question_of_json(stated: Mapping[str, object]) -> Question:
    """The question that ``question_json`` wrote. Raises ``ValueError`` for anything else."""
    kind = KINDS.get(str(stated.get("ask")))
    given = {key: _frozen(value) for key, value in stated.items() if key != "ask"}
    if kind is None or (unknown := set(given) - {each.name for each in fields(kind)}):
        raise ValueError(
            f"no question: {stated.get('ask')} with {', '.join(sorted(given if kind is None else unknown))}"
        )
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"no question: {error}") from None


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value

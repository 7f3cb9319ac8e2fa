"""The form of a declared question: its instructions stand among the metrics, its answer is read as strictly as any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.declared import CANNOT_TELL, AskDeclared
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.trace.span import Json

from .answers import ParseError, explanation, level, texts
from .form import BOOL, STRING, TOKENS, Form, list_of, one_of
from .prompt import inline

_NUMBER: Mapping[str, Json] = {"type": "number"}
_UNDECIDED = one_of(CANNOT_TELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredForm(Form):
    """A form whose only texts are those of the step that is asked about."""

    def texts(self, question: Question) -> dict[str, str]:
        return dict(question.texts) if isinstance(question, AskDeclared) else {}


def form_of_declared(question: AskDeclared) -> Form:
    """The form of a declared question; questions that differ in their material alone share it."""
    return _form(question.metric, question.instructions, question.kind, question.choices, question.parts)


@lru_cache(maxsize=4096)
def _form(metric: str, instructions: str, kind: str, choices: tuple[str | float, ...], parts: tuple[str, ...]) -> Form:
    most = int(choices[0]) if kind == "findings" else 0
    return DeclaredForm(
        metric=metric,
        prompt=(inline(instructions),),
        parts=parts,
        properties={"reason": STRING, "answer": _schema(kind, choices)},
        read=_read,
        untold=("metric", "instructions", "kind", "choices", "parts"),
        tokens=lambda _: TOKENS + most * TOKENS // 4,
    )


def _schema(kind: str, choices: tuple[str | float, ...]) -> Mapping[str, Json]:
    match kind:
        case "boolean":
            return {"anyOf": [_UNDECIDED, dict(BOOL)]}
        case "scale":
            return {"anyOf": [_UNDECIDED, one_of(*range(int(choices[0]), int(choices[1]) + 1))]}
        case "one_of":
            return one_of(CANNOT_TELL, *choices)
        case "findings":
            return list_of(STRING)
        case _:
            limits = {"minimum": choices[0], "maximum": choices[1]} if choices else {}
            return {"anyOf": [_UNDECIDED, {**_NUMBER, **limits}]}


def _read(found: Mapping[str, object], question: Question) -> tuple[object, str]:
    """The answer in its declared type, and the reason; ``ParseError`` or ``ValueError`` for any other."""
    if not isinstance(question, AskDeclared):
        raise ParseError("not a declared question")
    if question.kind != "findings" and found.get("answer") == CANNOT_TELL:
        return CANNOT_TELL, explanation(found, "reason")
    return _answer(found, question), explanation(found, "reason")


def _answer(found: Mapping[str, object], question: AskDeclared) -> object:
    choices = question.choices
    match question.kind:
        case "boolean":
            return contract.yes_or_no(found, "answer")
        case "scale":
            return level(found, "answer", range(int(choices[0]), int(choices[1]) + 1))
        case "one_of":
            return contract.one_of(found, "answer", [str(each) for each in choices])
        case "findings":
            return texts(found, "answer", least=0, most=int(choices[0]))
        case _:
            return _number(found, choices)


def _number(found: Mapping[str, object], choices: tuple[str | float, ...]) -> float:
    value = contract.required(found, "answer")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseError("answer is not a number")
    if choices and not float(choices[0]) <= value <= float(choices[1]):
        raise ParseError(f"answer is not a number from {choices[0]:g} to {choices[1]:g}")
    return float(value)

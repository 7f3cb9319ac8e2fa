"""Requests: the open questions of a case as few prompts, and a judge's text back as their answers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from scoring.case import Case
from scoring.effects import NoAnswer, Question
from scoring.span import Json

from . import layout
from .answers import JudgedValue, ParseError, by_id, decode, exactly
from .fence import fence
from .form import Form, object_of
from .forms import form_of
from .layout import form_for
from .parts import part
from .prompt import DATA, SEED_002, prompt, version
from .tokens import estimate

__all__ = ["JudgeRequest", "JudgedValue", "ParseError", "cache_key", "can_judge", "prompt_version", "requests"]

MAX_ANSWER_TOKENS = 8192
"""Tokens of answers that one request asks for at most: what current models write in one go."""
_OVERHEAD = 64
"""Tokens of roles, separators and headings."""
_NOT_GIVEN = "(not given)"
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_FILLED_BY = {
    "task": "task",
    "reference_answer": "expected_outcome",
    "provided_context": "provided_context",
    "candidate_answer": "model_output",
}
"""What of a case goes into the holes of seed 002's template."""

Message: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One call to a judge. Made of equal questions about an equal case, it is equal to the last byte.

    ``schema`` is the JSON schema of the answer, for providers that hold a model to one; ``read`` is as strict without.
    ``prompt_version`` is the SHA-256 of the prompt files it is made of; ``ids`` is what its questions are called, in
    order (none where the answer has a shape of its own). ``prompt_tokens`` and ``answer_tokens`` are
    estimates, both rather too high: a limit on the answer below the latter may cut it short.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Json]
    schema_name: str
    prompt_version: str
    questions: tuple[Question, ...]
    ids: tuple[str, ...]
    prompt_tokens: int
    answer_tokens: int

    def read(self, text: str) -> dict[Question, JudgedValue]:
        """A value for each question. ``ParseError`` on any breach of the contract: there are no half answers."""
        found = decode(text)
        if form_for(self.questions[0]).alone:
            return {self.questions[0]: _read("answer", self.questions[0], found)}
        answers = by_id(found, self.ids)
        return {
            question: _read(name, question, answers[name])
            for name, question in zip(self.ids, self.questions, strict=True)
        }


def _read(name: str, question: Question, found: Mapping[str, object]) -> JudgedValue:
    form = form_for(question)
    try:
        exactly(found, (*(() if form.alone else ("id", "metric")), *form.properties))
        if not form.alone and found["metric"] != form.metric:
            raise ParseError(f"metric is not {form.metric}")
        value, reason = form.read(found)
    except ValueError as error:
        raise ParseError(f"{name}: {error}") from None
    return JudgedValue(value=value, reason=reason, prompt_version=form.version)


def can_judge(question: Question) -> bool:
    """Whether a judge can be asked this at all."""
    return form_of(question) is not None


def prompt_version(question: Question) -> str:
    """The SHA-256 of the prompt files that this question is asked with."""
    return form_for(question).version


def cache_key(case: Case, question: Question) -> str:
    """SHA-256 of all that an answer depends on but the model: the prompt, the question, what it shows of the case."""
    form = form_for(question)
    shown = [(name, part(case, name)) for name in form.parts]
    asked = [type(question).__name__, [getattr(question, field.name) for field in dataclasses.fields(question)]]
    return hashlib.sha256(json.dumps([form.version, asked, shown]).encode()).hexdigest()


def requests(
    case: Case, questions: Sequence[Question], *, context_tokens: int
) -> tuple[tuple[JudgeRequest, ...], dict[Question, NoAnswer]]:
    """As few requests as hold the questions that a judge can answer, each within the judge's context.

    Questions that no judge can answer are in neither result: they are another answerer's. Those for which the context
    is too small have a ``NoAnswer``: nothing is ever cut to fit.
    """
    draft = _Draft(case, context_tokens)
    made: list[JudgeRequest] = []
    refused: dict[Question, NoAnswer] = {}
    together: list[Question] = []
    for question in dict.fromkeys(filter(can_judge, questions)):
        if not form_for(question).alone:
            together.append(question)
        elif draft.fits([question]):
            made.append(draft.template(question))
        else:
            refused[question] = draft.refusal(question)
    made += map(draft.questions, draft.groups(together, refused))
    return tuple(made), refused


class _Draft:
    """Prompts about one case. Each of its parts and each question is written and measured once."""

    def __init__(self, case: Case, context_tokens: int) -> None:
        self._case = case
        self._context = context_tokens
        self._fenced: dict[str, str | None] = {}
        self._measured: dict[object, int] = {}

    def fits(self, group: Sequence[Question]) -> bool:
        """Whether these questions may travel together."""
        answers = self._answer_tokens(group)
        if len(group) > 1 and answers > MAX_ANSWER_TOKENS:
            return False
        return self._prompt_tokens(group) + min(answers, MAX_ANSWER_TOKENS) <= self._context

    def groups(self, questions: list[Question], refused: dict[Question, NoAnswer]) -> list[list[Question]]:
        """One group where all fits; else as few as filling one after the other gives, alike ones side by side."""
        if not questions or self.fits(questions):
            return [questions] if questions else []
        groups: list[list[Question]] = []
        for question in sorted(questions, key=lambda each: form_for(each).parts):
            if groups and self.fits([*groups[-1], question]):
                groups[-1].append(question)
            elif self.fits([question]):
                groups.append([question])
            else:
                refused[question] = self.refusal(question)
        return groups

    def refusal(self, question: Question) -> NoAnswer:
        """Why a question cannot be asked."""
        needed = self._prompt_tokens([question]) + min(self._answer_tokens([question]), MAX_ANSWER_TOKENS)
        return NoAnswer(f"takes some {needed} tokens, more than the judge's context of {self._context}")

    def questions(self, group: Sequence[Question]) -> JudgeRequest:
        """The request that asks these."""
        forms = list(map(form_for, group))
        names = layout.files(forms)
        shown = [self._shown(name) for name in layout.parts(forms)]
        ids = layout.ids(group, shown)
        closing = f"Answer all {len(group)} questions." if len(group) > 1 else "Answer the question."
        user = [*(["INPUTS", *shown] if shown else []), "QUESTIONS", *layout.asked(ids, group), *layout.emphasis(group)]
        return self._request(
            layout.system(names),
            "\n\n".join([*user, f"{closing} Return the JSON object only."]),
            group=group,
            names=names,
            schema=layout.schema(forms),
            schema_name="answers",
            ids=ids,
        )

    def template(self, question: Question) -> JudgeRequest:
        """Seed 002's request: its template, word for word, filled with fenced parts."""
        form = form_for(question)
        return self._request(
            prompt(DATA).rstrip("\n"),
            _HOLE.sub(lambda hole: self._in_hole(hole[1]), prompt(SEED_002).rstrip("\n")),
            group=[question],
            names=form.files,
            schema=object_of(form.properties),
            schema_name=form.metric,
        )

    def _request(
        self,
        system: str,
        user: str,
        *,
        group: Sequence[Question],
        names: Sequence[str],
        schema: Mapping[str, Json],
        schema_name: str,
        ids: tuple[str, ...] = (),
    ) -> JudgeRequest:
        return JudgeRequest(
            messages=({"role": "system", "content": system}, {"role": "user", "content": user}),
            schema=schema,
            schema_name=schema_name,
            prompt_version=version(names),
            questions=tuple(group),
            ids=ids,
            prompt_tokens=_OVERHEAD + estimate(system) + estimate(user) + estimate(json.dumps(schema)),
            answer_tokens=min(self._answer_tokens(group), MAX_ANSWER_TOKENS),
        )

    def _prompt_tokens(self, group: Sequence[Question]) -> int:
        """The same sum before anything is written; what is shown once though asked twice counts twice."""
        forms = {form.metric: form for form in map(form_for, group)}.values()
        files = form.files if (form := next(iter(forms))).alone else layout.files(forms)
        tokens = _OVERHEAD + sum(self._tokens(name, prompt(name)) for name in files)
        tokens += self._schema_tokens(tuple(forms))
        tokens += sum(self._part_tokens(name) for name in layout.parts(forms))
        return tokens + sum(map(self._question_tokens, group))

    def _answer_tokens(self, group: Sequence[Question]) -> int:
        return sum(form_for(question).tokens(self._question_tokens(question)) for question in group)

    def _tokens(self, name: object, text: str) -> int:
        if name not in self._measured:
            self._measured[name] = estimate(text)
        return self._measured[name]

    def _schema_tokens(self, forms: tuple[Form, ...]) -> int:
        key = tuple(form.metric for form in forms)
        if key not in self._measured:
            self._measured[key] = estimate(json.dumps(layout.schema(forms)))
        return self._measured[key]

    def _question_tokens(self, question: Question) -> int:
        if question not in self._measured:
            self._measured[question] = estimate(
                "\n".join([*layout.asked(["q0000-000000"], [question]), *layout.emphasis([question])])
            )
        return self._measured[question]

    def _part_tokens(self, name: str) -> int:
        key = ("part", name)
        if key not in self._measured:
            self._measured[key] = estimate(self._shown(name))
        return self._measured[key]

    def _fence(self, name: str) -> str | None:
        if name not in self._fenced:
            found = part(self._case, name)
            self._fenced[name] = None if found is None else fence(name, found)
        return self._fenced[name]

    def _shown(self, name: str) -> str:
        fenced = self._fence(name)
        return f"{name}: {_NOT_GIVEN}" if fenced is None else f"{name}:\n{fenced}"

    def _in_hole(self, name: str) -> str:
        fenced = self._fence(_FILLED_BY[name])
        return _NOT_GIVEN if fenced is None else f"\n{fenced}"

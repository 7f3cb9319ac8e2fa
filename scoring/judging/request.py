"""Requests: the open questions of a case become as few prompts as hold them; a judge's text becomes answers.

Batching puts all questions into one request where prompt and answers fit, else into few groups, filled in order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.questions.question import TOO_LONG, NoAnswer, Question
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.trace.span import Json

from . import layout
from .answers import AnswerReading, JudgedValue, ParseError, by_id, decode, having, read_items, shortened
from .certainty import Tokens, certainties
from .form import AGAIN, DATA, SEED_002, Form, object_of, one_of, prompt, version
from .forms import form_of
from .layout import LEAST, Outline, PromptMaterial, form_for, outlined, run_parts
from .parts import part
from .shapes import Shape, mended, named

MAX_ANSWER_TOKENS = 8192
"""Most tokens of answers that one request asks for: what current models write in one response."""
OVERHEAD = 64
"""Tokens of roles and separators that providers add."""
_HEADINGS = 50
"""Tokens of the headings around parts and questions."""
_BREAK = "\n\n"
_OF_OUTLINE = "its numbers are those of steps, not of turns: name no turns"
"""The note on an outline for the judge, outside the fence."""
_ID = "q0000-000000"


class Batching:
    """The questions about one case without repeats, measured before anything is written."""

    def __init__(self, shown: PromptMaterial, context_tokens: int) -> None:
        self._shown = shown
        self._context = context_tokens
        self._measured: dict[Hashable, int] = {}

    def groups(self, questions: list[Question], refused: dict[Question, NoAnswer]) -> list[list[Question]]:
        """The questions in groups, similar ones together; one that does not fit the context is ``refused``."""
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

    def fits(self, group: Sequence[Question]) -> bool:
        """Whether these questions may share a request."""
        too_many = len(group) > 1 and sum(map(self._answer, group)) > MAX_ANSWER_TOKENS
        return not too_many and self.needed(group) <= self._context

    def refusal(self, question: Question) -> NoAnswer:
        """Why a question cannot be asked."""
        needed = self.needed([question])
        return NoAnswer(
            Reason(
                "takes some {needed} tokens, {too_long} {most}",
                needed=needed,
                too_long=own(TOO_LONG),
                most=self._context,
            )
        )

    def answer_tokens(self, group: Sequence[Question]) -> int:
        """Tokens of the answers, at most."""
        return min(sum(map(self._answer, group)), MAX_ANSWER_TOKENS)

    def needed(self, group: Sequence[Question]) -> int:
        """Tokens of prompt and answers. A text that is shown once and asked about twice counts twice."""
        forms = tuple({form.metric: form for form in map(form_for, group)}.values())
        files = forms[0].files if forms[0].alone else layout.files(forms)
        tokens = OVERHEAD + _HEADINGS + sum(self._file(name) for name in files) + self._schema(forms)
        tokens += sum(self._shown.tokens(name) + estimate(_BREAK) for name in layout.parts(forms))
        return tokens + sum(map(self._question, group)) + self.answer_tokens(group)

    def _answer(self, question: Question) -> int:
        return form_for(question).tokens(self._question(question))

    def _file(self, name: str) -> int:
        return self._measure(name, lambda: prompt(name) + _BREAK)

    def _schema(self, forms: Iterable[Form]) -> int:
        return self._measure(tuple(form.metric for form in forms), lambda: json.dumps(layout.schema(forms)))

    def _question(self, question: Question) -> int:
        return self._measure(
            question, lambda: _BREAK.join(["", *layout.requested([_ID], [question]), *layout.emphasis([question])])
        )

    def _measure(self, key: Hashable, write: Callable[[], str]) -> int:
        if key not in self._measured:
            self._measured[key] = estimate(write())
        return self._measured[key]


_HOLE = re.compile(r"\{\{(\w+)\}\}")
_FILLED_BY = {
    "task": "task",
    "reference_answer": "expected_outcome",
    "provided_context": "provided_context",
    "candidate_answer": "model_output",
}
"""The part of a case for each hole of seed 002's template."""

Message: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One call to a judge. Equal questions about an equal case give a request that is equal to the last byte.

    ``schema`` is the JSON schema of the answer, for providers that enforce one; ``read`` does not rely on it.
    ``prompt_version`` is the SHA-256 of its prompt files; ``ids`` are the names of its questions in order (none where
    the answer has its own shape). ``prompt_tokens`` and ``answer_tokens`` are estimates, rather too high: a limit on
    the answer below the latter may cut it short.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Json]
    schema_name: str
    prompt_version: str
    questions: tuple[Question, ...]
    ids: tuple[str, ...]
    prompt_tokens: int
    answer_tokens: int
    outline: Outline | None = None
    """The outline in it, where the run does not fit as a whole."""
    permuted: bool = False
    """Whether its parts and questions are in the opposite order."""

    @property
    def alone(self) -> bool:
        """Whether its answer has its own shape and is accepted or rejected as a whole (seed 002)."""
        return form_for(self.questions[0]).alone

    def read(self, text: str, tokens: Tokens = ()) -> AnswerReading:
        """Read an answer question by question; valid answers are kept even where others are not.

        Args:
            text: the judge's text.
            tokens: its tokens, where the model gives their probabilities.
        """
        shapes: Counter[Shape] = Counter()
        try:
            if self.alone:
                found = {"answer": decode(text)}
                faults: dict[str, str] = {}
            else:
                items = read_items(text)
                metrics = [form_for(question).metric for question in self.questions]
                found, faults = by_id(named(items, self.ids, metrics, self._shown), self.ids)
                shapes = items.shapes
        except ParseError as error:
            return AnswerReading(answers={}, faults=dict.fromkeys(self.questions, str(error)))
        answers: dict[Question, JudgedValue] = {}
        refused: dict[Question, str] = {}
        for name, question in zip(self.ids or ("answer",), self.questions, strict=True):
            if name in faults:
                refused[question] = f"{name} {faults[name]}"
                continue
            try:
                answers[question] = _read(name, question, found[name], shapes)
            except ParseError as error:
                refused[question] = str(error)
        if tokens and not self.alone:
            of = dict(zip(self.ids, self.questions, strict=True))
            sure = certainties(text, tokens, {name: form_for(question).properties for name, question in of.items()})
            known = {of[name]: each for name, each in sure.items() if of[name] in answers}
            answers |= {q: dataclasses.replace(answers[q], certainty=each) for q, each in known.items()}
        return AnswerReading(answers=answers, faults=refused, shapes=dict(shapes) if answers else {})

    @property
    def _shown(self) -> Sequence[str]:
        return [message["content"] for message in self.messages]

    def again(self, faults: Mapping[Question, str]) -> JudgeRequest:
        """The request that repeats the questions without a valid answer.

        Seed 002's request is repeated as it is (*identical inputs*). Any other is extended by the faults and asks these
        questions alone; the prompt before them is the same, so that a provider's cache serves it.

        Args:
            faults: why each question has no answer, as ``read`` returned it.
        """
        if self.alone:
            return self
        left = [(name, q) for name, q in zip(self.ids, self.questions, strict=True) if q in faults]
        wrong = dict.fromkeys(faults[question] for _, question in left)
        closing = (
            f"Answer only these questions now: {', '.join(name for name, _ in left)}. Return the JSON object only."
        )
        complaint = "\n".join([prompt(AGAIN).rstrip("\n"), *(f"- {each}" for each in wrong), closing])
        *before, last = self.messages
        return dataclasses.replace(
            self,
            messages=(*before, {**last, "content": f"{last['content']}\n\n{complaint}"}),
            questions=tuple(question for _, question in left),
            ids=tuple(name for name, _ in left),
            prompt_tokens=self.prompt_tokens + estimate(complaint),
        )


def _read(name: str, question: Question, found: Mapping[str, object], shapes: Counter[Shape]) -> JudgedValue:
    form = form_for(question)
    flags: tuple[str, ...] = ()
    tried: Counter[Shape] = Counter()
    try:
        if form.alone:
            having(found, tuple(form.properties))
        else:
            found, flags = shortened({"metric": form.metric, **found})
            found = {key: mended(value, form.properties.get(key, {}), tried) for key, value in found.items()}
            having(found, tuple(form.properties))
            if mended(found["metric"], one_of(form.metric), tried) != form.metric:
                raise ParseError(f"metric is not {form.metric}")
        value, reason = form.read(found, question)
        shapes.update(tried)
    except ValueError as error:
        raise ParseError(f"{name}: {error}") from None
    return JudgedValue(value=value, reason=reason, prompt_version=form.version, flags=flags)


def can_judge(question: Question) -> bool:
    """Whether a judge can be asked this question."""
    return form_of(question) is not None


def prompt_version(question: Question) -> str:
    """The SHA-256 of the prompt files that this question is asked with."""
    return form_for(question).version


def cache_key(case: Case, question: Question) -> str:
    """SHA-256 of all that an answer depends on except the model: prompt, question and shown parts of the case."""
    form = form_for(question)
    shown = [(name, part(case, name)) for name in form.parts]
    requested = [type(question).__name__, [getattr(question, field.name) for field in dataclasses.fields(question)]]
    return hashlib.sha256(json.dumps([form.version, requested, shown]).encode()).hexdigest()


def can_permute(questions: Sequence[Question]) -> bool:
    """Whether these questions can be asked in another order: there are several questions or parts of the case.

    Seed 002's template is one text and stays as it is.
    """
    together = [form_for(question) for question in questions if not form_for(question).alone]
    return len(together) > 1 or len(layout.parts(together)) > 1


def spare_parts(case: Case, questions: Sequence[Question]) -> frozenset[str]:
    """The parts of the case that these questions show and can be answered without."""
    forms = [form_for(question) for question in questions]
    spare = frozenset(name for form in forms for name in form.spare)
    needed = {name for form in forms for name in form.parts if name not in form.spare}
    return frozenset(name for name in spare - needed if part(case, name) is not None)


def requests(
    case: Case,
    questions: Sequence[Question],
    *,
    context_tokens: int,
    permuted: bool = False,
    left_out: Collection[str] = (),
    outline: bool = False,
) -> tuple[tuple[JudgeRequest, ...], dict[Question, NoAnswer]]:
    """As few requests as hold the questions that a judge can answer, each within the judge's context.

    Args:
        case: the case to show.
        questions: questions that no judge can answer are in neither result; another evaluator answers them.
        context_tokens: tokens of prompt and answer that the judge takes at once.
        permuted: put parts and questions in the opposite order (not in seed 002's template).
        left_out: parts that are not shown, though the case has them.
        outline: where a run does not fit as a whole, ask by an outline of it.

    Returns:
        The requests, and a ``NoAnswer`` for each question whose material does not fit: nothing is cut to fit.
    """
    shown = PromptMaterial(case, left_out)
    batching = Batching(shown, context_tokens)
    refused: dict[Question, NoAnswer] = {}
    requested = list(dict.fromkeys(filter(can_judge, questions)))
    alone = [[question] for question in requested if form_for(question).alone]
    together = [question for question in requested if not form_for(question).alone]
    made = [_template(shown, group, batching) for group in alone if batching.fits(group)]
    refused |= {group[0]: batching.refusal(group[0]) for group in alone if not batching.fits(group)}
    made += [_batch(shown, group, batching, permuted=permuted) for group in batching.groups(together, refused)]
    if outline and any(question in refused for question in together):
        made += _outlined(case, refused, context_tokens, permuted=permuted, left_out=left_out)
    return tuple(made), refused


def _outlined(
    case: Case, refused: dict[Question, NoAnswer], context_tokens: int, *, permuted: bool, left_out: Collection[str]
) -> list[JudgeRequest]:
    """Requests with an outline in place of the whole run. Their questions are removed from ``refused``."""
    asked = [question for question in refused if run_parts(case, form_for(question).parts)]
    asked = [question for question in asked if not form_for(question).alone]

    def batching_with(of: Sequence[Question], note: str, text: str) -> tuple[PromptMaterial, Batching]:
        first, *others = run_parts(case, layout.parts(list(map(form_for, of))))
        in_place = {first: (note, text)} | dict.fromkeys(others, (f"see {first}, which shows the whole run", ""))
        shown = PromptMaterial(case, left_out, in_place)
        return shown, Batching(shown, context_tokens)

    made: list[JudgeRequest] = []
    groups = batching_with(asked, _OF_OUTLINE, "step " * LEAST)[1].groups(asked, {}) if asked else []
    for group in groups:
        left = context_tokens - batching_with(group, _OF_OUTLINE, "")[1].needed(group)
        while left >= LEAST:
            found = outlined(case, left)
            note = f"{found.extent}; {_OF_OUTLINE}"
            shown, batching = batching_with(group, note, found.text)
            if batching.fits(group):
                made.append(dataclasses.replace(_batch(shown, group, batching, permuted=permuted), outline=found))
                for question in group:
                    del refused[question]
                break
            left = left * 9 // 10
    return made


def _batch(
    shown: PromptMaterial, group: Sequence[Question], batching: Batching, *, permuted: bool = False
) -> JudgeRequest:
    """The request that asks these questions together."""
    step = -1 if permuted else 1
    group = group[::step]
    forms = list(map(form_for, group))
    names = layout.files(forms)
    parts = [shown.titled(name) for name in layout.parts(forms)[::step]]
    ids = layout.ids(group, parts)
    made = _request(
        layout.system(names),
        layout.user(parts, ids, group),
        group,
        names=names,
        schema=layout.schema(forms),
        schema_name="answers",
        ids=ids,
        batching=batching,
    )
    return dataclasses.replace(made, permuted=permuted)


def _template(shown: PromptMaterial, group: Sequence[Question], batching: Batching) -> JudgeRequest:
    """Seed 002's request: its template, word for word, filled with fenced parts."""
    form = form_for(group[0])
    return _request(
        prompt(DATA).rstrip("\n"),
        _HOLE.sub(lambda hole: shown.in_line(_FILLED_BY[hole[1]]), prompt(SEED_002).rstrip("\n")),
        group,
        names=form.files,
        schema=object_of(form.properties),
        schema_name=form.metric,
        ids=(),
        batching=batching,
    )


def _request(
    system: str,
    user: str,
    group: Sequence[Question],
    *,
    names: Sequence[str],
    schema: Mapping[str, Json],
    schema_name: str,
    ids: tuple[str, ...],
    batching: Batching,
) -> JudgeRequest:
    return JudgeRequest(
        messages=({"role": "system", "content": system}, {"role": "user", "content": user}),
        schema=schema,
        schema_name=schema_name,
        prompt_version=version(names),
        questions=tuple(group),
        ids=ids,
        prompt_tokens=OVERHEAD + estimate(system) + estimate(user) + estimate(json.dumps(schema)),
        answer_tokens=batching.answer_tokens(group),
    )

"""Layout: the order of a prompt. The fixed text comes first and never changes with the material.

Everything outside the fences is ours: names of parts, ids, metrics, and the number of questions.

A fence puts material of a case between two lines of marks that nothing in it can imitate.

The code in the marks is derived from the SHA-256 of the text between them: to carry its own closing line, a text would
have to contain its own hash. It needs no randomness, so that equal material gives equal prompts, and retry and cache
see the same request. Anything that looks like a mark or like a control token of a model's chat format, or is invisible,
is escaped. All in linear time.

Each part of a case is fenced and measured once. Where a run does not fit a judge's context, questions about a
conversation, transcript or tool calls show an outline of it, with the most important steps in full. Their other parts
are shown whole, or the question is not asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import plain
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.metrics.trajectory_selection import outline, requests_of, select
from sidejudge.scoring.metrics.trajectory_steps import MOST_STEPS
from sidejudge.scoring.questions.kinds import EMPHASIS_HEADING, GradeAgent
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.rubrics.trajectory_signs import trajectory
from sidejudge.scoring.trace.span import Json

from .form import ANSWERS, DATA, FIVE_FIELDS, SEED_000, STRING, Form, is_inline, list_of, object_of, one_of, prompt
from .forms import BY_METRIC, FORMS, form_of
from .parts import PARTS, is_metadata, part

_FENCE_CODE = 16
"""Hexadecimal digits of the code: 64 bits."""


def fence(name: str, text: str) -> str:
    """The text as data under a name; ``name`` is ours, never the case's."""
    shown = plain(text)
    code = hashlib.sha256(shown.encode()).hexdigest()[:_FENCE_CODE]
    return f"<<<DATA {name} {code}>>>\n{shown}\n<<<END {code}>>>"


_FORMS = (*FORMS.values(), *(form for forms in BY_METRIC.values() for form in forms.values()))
_FILES = tuple(
    dict.fromkeys((SEED_000, DATA, ANSWERS, FIVE_FIELDS, *(name for form in _FORMS for name in form.prompt)))
)
"""All files of questions that share a request, in the order of the prompt."""
_METRICS = "METRICS"
_CODE = 6


def form_for(question: Question) -> Form:
    """The form of a question that a judge can answer; ``ValueError`` for any other."""
    form = form_of(question)
    if form is None:
        raise ValueError(f"{type(question).__name__} is no question for a judge")
    return form


def ids(questions: Sequence[Question], shown: Sequence[str]) -> tuple[str, ...]:
    """The name of each question in its prompt: its number, and a code derived from the whole prompt.

    An answer planted in the material cannot contain the code, so that a judge that merely copies one has not answered.
    """
    texts = [[*form_for(question).texts(question).items()] for question in questions]
    code = hashlib.sha256(json.dumps([list(shown), texts]).encode()).hexdigest()[:_CODE]
    return tuple(f"q{number}-{code}" for number, _ in enumerate(questions, 1))


def files(forms: Iterable[Form]) -> tuple[str, ...]:
    """The prompt files that these questions need, in order."""
    wanted = {name for form in forms for name in form.files}
    return (*(name for name in _FILES if name in wanted), *sorted(filter(is_inline, wanted)))


def parts(forms: Iterable[Form]) -> tuple[str, ...]:
    """The parts of the case that these questions show, in order."""
    wanted = {name for form in forms for name in form.parts}
    return (*(name for name in PARTS if name in wanted), *sorted(filter(is_metadata, wanted)))


def system(names: Sequence[str]) -> str:
    """The instructions: the common files, then the metrics."""
    common = [name for name in names if name in (SEED_000, DATA, ANSWERS, FIVE_FIELDS)]
    metrics = [name for name in names if name not in common]
    return "\n\n".join([*(prompt(name).rstrip("\n") for name in common), _METRICS]
                       + [prompt(name).rstrip("\n") for name in metrics])  # fmt: skip


def user(shown: Sequence[str], names: Sequence[str], questions: Sequence[Question]) -> str:
    """The material and the questions."""
    closing = f"Answer all {len(questions)} questions." if len(questions) > 1 else "Answer the question."
    inputs = ["INPUTS", *shown] if shown else []
    stated = [*inputs, "QUESTIONS", *requested(names, questions), *emphasis(questions)]
    return "\n\n".join([*stated, f"{closing} Return the JSON object only."])


def requested(names: Sequence[str], questions: Sequence[Question]) -> list[str]:
    """The questions by their ids, each with its texts. A repeated text is referred to, not shown again."""
    shown: dict[str, str] = {}
    return [_requested(name, question, shown) for name, question in zip(names, questions, strict=True)]


def _requested(name: str, question: Question, shown: dict[str, str]) -> str:
    form = form_for(question)
    reported = [f"id: {name}", f"metric: {form.metric}"]
    for field, text in form.texts(question).items():
        place = f"{name.partition('-')[0]}.{field}"
        before = shown.setdefault(text, place)
        reported.append(f"{field}: the same text as {before}" if before != place else f"{field}:\n{fence(place, text)}")
    return "\n".join(reported)


def emphasis(questions: Sequence[Question]) -> list[str]:
    """The emphasis of a test case, under seed 001's heading."""
    reported = dict.fromkeys(q.emphasis for q in questions if isinstance(q, GradeAgent) and q.emphasis)
    return [f"{EMPHASIS_HEADING}\n{fence('emphasis', text)}" for text in reported]


def schema(forms: Iterable[Form]) -> dict[str, Json]:
    """The JSON schema of the answer: a list of objects, one shape for all metrics with the same form of answer.

    It depends on the metrics and not on the number of questions, so that a provider that compiles schemas sees few.
    """
    alike: dict[str, list[Form]] = {}
    for form in sorted({form.metric: form for form in forms}.values(), key=lambda each: each.metric):
        alike.setdefault(json.dumps(form.properties, default=dict), []).append(form)
    shapes = [_shape([form.metric for form in same], same[0].properties) for same in alike.values()]
    return object_of({"answers": list_of(shapes[0] if len(shapes) == 1 else {"anyOf": [*shapes]})})


def _shape(metrics: Sequence[str], properties: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    return object_of({"id": STRING, "metric": one_of(*metrics), **properties})


NOT_GIVEN = "(not given)"


class PromptMaterial:
    """One case. Parts that it lacks or that are ``left_out`` are marked as not given.

    ``in_place`` holds texts that replace parts, each with our note on what it is.
    """

    def __init__(
        self, case: Case, left_out: Collection[str] = (), in_place: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._case, self._left_out, self._in_place = case, left_out, in_place or {}
        self._fenced: dict[str, str | None] = {}
        self._tokens: dict[str, int] = {}

    def fenced(self, name: str) -> str | None:
        """The part as data; None when the case lacks it."""
        if name not in self._fenced:
            found = None if name in self._left_out else part(self._case, name)
            self._fenced[name] = None if found is None else fence(name, found)
        return self._fenced[name]

    def titled(self, name: str) -> str:
        """The part under its name."""
        if name in self._in_place:
            note, text = self._in_place[name]
            return f"{name} ({note})" + (f":\n{fence(name, text)}" if text else "")
        fenced = self.fenced(name)
        return f"{name}: {NOT_GIVEN}" if fenced is None else f"{name}:\n{fenced}"

    def in_line(self, name: str) -> str:
        """The part as the continuation of a template's line."""
        fenced = self.fenced(name)
        return NOT_GIVEN if fenced is None else f"\n{fenced}"

    def tokens(self, name: str) -> int:
        """Tokens of the part under its name."""
        if name not in self._tokens:
            self._tokens[name] = estimate(self.titled(name))
        return self._tokens[name]


RUN: Final = ("transcript", "conversation", "tools")
"""The parts of a case that an outline can replace: they show what happened in the run."""
LEAST: Final = 1_000
"""Tokens below which an outline shows too little of a run to judge by."""
_FOR_LINES: Final = 4
"""One of this many parts of the tokens goes to one-line steps at most, the rest to steps in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Part of a run. ``shown`` of ``steps`` are in full; they hold ``share`` of the tokens of all steps."""

    text: str
    shown: int
    steps: int
    share: float

    @property
    def extent(self) -> str:
        """What was shown, in words."""
        return f"an outline of the run with {self.shown} of {self.steps} steps in full, {self.share:.0%} of its tokens"


def run_parts(case: Case, names: Sequence[str]) -> tuple[str, ...]:
    """The named parts that an outline can replace; none where the case has no steps to outline."""
    given = tuple(name for name in names if name in RUN and part(case, name) is not None)
    too_many = case.trace is not None and len(case.trace.spans) > MOST_STEPS
    return given if given and not too_many and case.once(trajectory).steps else ()


def outlined(case: Case, tokens: int) -> Outline:
    """The run in at most so many tokens."""
    run = case.once(trajectory)
    for_lines = tokens // _FOR_LINES
    chosen = select(run, tokens - min(for_lines, estimate(outline(run, for_lines))))
    lines = outline(run, for_lines, chosen)
    full = "".join(f"\n\n{text}" for _, text in requests_of(run, chosen, tokens))
    share = sum(run[number].tokens for number in chosen) / max(1, run.tokens)
    return Outline(text=lines + full, shown=len(chosen), steps=len(run.steps), share=share)

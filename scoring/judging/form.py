"""Form: how a question is put to a judge, which parts of the case it shows, and how its answer is read.

Prompt files hold the fixed texts of a prompt.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.question import Question, prompt_text
from sidejudge.scoring.trace.span import Json

from .answers import Reader, explanation, level
from .parts import lines

SEED_000 = "seed_000_system"
SEED_002 = "seed_002_evaluator"
DATA = "data"
ANSWERS = "answers"
AGAIN = "again"
FIVE_FIELDS = "seed_000_answers"

_INLINE = "="
"""Prefix of a prompt name that holds the text itself rather than naming a file: instructions of a declared question."""


def inline(text: str) -> str:
    """The name of a prompt that is this text."""
    return _INLINE + text


def is_inline(name: str) -> bool:
    """Whether a prompt's text is in its name rather than in a file."""
    return name.startswith(_INLINE)


@lru_cache(maxsize=4096)
def prompt(name: str) -> str:
    """The text of a prompt file, read once, or the text that the name holds."""
    if is_inline(name):
        return name.removeprefix(_INLINE)
    return prompt_text(name)


@lru_cache(maxsize=4096)
def _version(names: tuple[str, ...]) -> str:
    return hashlib.sha256("".join(map(prompt, names)).encode()).hexdigest()


def version(names: Sequence[str]) -> str:
    """SHA-256, in hexadecimal, of these files one after the other."""
    return _version(tuple(names))


TOKENS = 220
"""Most tokens of one answer; a list takes many times as many. The output limit of a call is computed from it."""
_CITATIONS = {"expected_outcome_reference": "expected_outcome", "model_output_observed": "model_output"}
_CITED = 100
SPARE = ("config",)
"""Parts that help to judge a call and do not decide."""

STRING: Mapping[str, Json] = {"type": "string"}
BOOL: Mapping[str, Json] = {"type": "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of one kind of question.

    ``metric`` is the question's name in the prompt and in the judge's answer. ``prompt`` are its own prompt files,
    ``common`` those before them. ``parts`` names the shown parts of the case (``scoring.judging.parts``); ``spare``
    ones may be left out where they keep a provider from answering. ``properties`` is the JSON schema of the keys of its
    answer, besides ``id`` and ``metric``. An ``alone`` question is a request by itself. The fields ``apart`` are
    independent values: where a panel is split on one it is None, and the others stay. ``levels`` are the only numbers
    that its answer may be: a panel with another number in its middle is split. ``hidden`` are fields of the
    question that choose its form and are not shown as text. Items of its lists are ``numbered`` from 0 where the answer
    refers to them. ``tokens`` gives the length of an answer from the tokens of the question's texts.
    """

    metric: str
    prompt: tuple[str, ...]
    common: tuple[str, ...] = (DATA, ANSWERS)
    parts: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    properties: Mapping[str, Mapping[str, Json]]
    read: Reader
    alone: bool = False
    apart: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    hidden: tuple[str, ...] = ()
    numbered: bool = False
    tokens: Callable[[int], int] = lambda _: TOKENS

    @property
    def files(self) -> tuple[str, ...]:
        """All prompt files that a judge reads for this question, in order."""
        return (*self.common, *self.prompt)

    @property
    def version(self) -> str:
        return version(self.files)

    def texts(self, question: Question) -> dict[str, str]:
        """The question's own non-empty texts by field. They come from the case, and are data."""
        reported: dict[str, str] = {}
        for field in dataclasses.fields(question):
            value = getattr(question, field.name)
            if field.name not in self.hidden and value not in (None, "", ()):
                reported[field.name] = value if isinstance(value, str) else self._listed(value)
        return reported

    def _listed(self, items: Sequence[object]) -> str:
        if not self.numbered:
            return lines(items)
        return lines({"number": number, "text": item} for number, item in enumerate(items))


def object_of(properties: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """The JSON schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": {key: dict(schema) for key, schema in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(items: Mapping[str, Json]) -> dict[str, Json]:
    """The JSON schema of a list."""
    return {"type": "array", "items": dict(items)}


def one_of(*values: Json) -> dict[str, Json]:
    """The JSON schema of one of a few texts or whole numbers."""
    return {"type": "string" if isinstance(values[0], str) else "integer", "enum": list(values)}


def five_fields(
    metric: str, *parts: str, score: Mapping[str, Json], read: Callable[[Mapping[str, object]], object]
) -> Form:
    """A question of seed 000, answered by its five fields. The citations are kept with the reason."""

    def answer(found: Mapping[str, object], _: Question) -> tuple[object, str]:
        cited = [f"{source}: {words}" for key, source in _CITATIONS.items() if (words := _citation(found, key))]
        value, reason = read(found), explanation(found, "reason")
        return value, f"{reason} ({'; '.join(cited)})" if cited else reason

    return Form(
        metric=metric,
        prompt=(metric,),
        common=(SEED_000, DATA, ANSWERS, FIVE_FIELDS),
        parts=parts,
        spare=SPARE,
        properties={"score": score, **dict.fromkeys(_CITATIONS, STRING), "reason": STRING},
        read=answer,
    )


def _citation(found: Mapping[str, object], key: str) -> str:
    words = found[key]
    if not isinstance(words, str):
        raise ValueError(f"{key} is not text")  # noqa: TRY004  # one kind of error for every breach of the contract
    return json.dumps(label(words.strip(), _CITED), ensure_ascii=False) if words.strip() else ""


def yes_or_no(metric: str, *parts: str) -> Form:
    """A question of seed 000 with a yes or a no: score 1 or 0."""
    return five_fields(metric, *parts, score=one_of(0, 1), read=lambda found: level(found, "score", (0, 1)) == 1)


def share(metric: str, *parts: str) -> Form:
    """A question of seed 000 with a score from 0.0 to 1.0."""
    return five_fields(
        metric,
        *parts,
        score={"type": "number", "minimum": 0, "maximum": 1},
        read=lambda found: contract.share(found, "score"),
    )

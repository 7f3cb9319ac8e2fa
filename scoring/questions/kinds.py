"""Questions that metrics ask, by the rubric that asks them; each can be written down by its name and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.trace.span import Json

from .question import Question

EMPHASIS_HEADING = "Test case-specific evaluation emphasis"
"""Heading under which a case's own emphasis is appended to the judge's user prompt, as seed 001 names it."""


@dataclass(frozen=True, slots=True)
class CitesTranscript(Question):
    """Does this reason point to a specific moment, quote or action of the transcript? Answered by a bool."""

    reason: str


@dataclass(frozen=True, slots=True)
class BorneOut(Question):
    """Does the moment that this reason cites exist in the transcript, accurately described? Answered by a bool."""

    reason: str


@dataclass(frozen=True, slots=True)
class GradeAnswer(Question):
    """Seed 002 §2.1: grade the case's answer. Answered by ``{"accuracy_score", "faithfulness_score", "rationale"}``."""


@dataclass(frozen=True, slots=True)
class SameEntity(Question):
    """Which of ``found`` names the same thing as each of ``wanted``, in any language, one to one?

    Answered by a tuple as long as ``wanted``: the index in ``found`` of the match (cosine >= 0.80), or None.
    """

    wanted: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GradeAgent(Question):
    """How well did the agent do by one metric of ``scoring.metrics.judge_metrics``, turns numbered from 0?

    A scored metric is answered by ``{"score": 0..5, "failure_code": str | null, "turns": [int], "reason": str}``, a
    binary one by the same with ``"passed": bool`` in place of the score. ``emphasis`` is the case's
    ``evaluation_criteria_override``: it belongs under ``EMPHASIS_HEADING`` and changes no metric.
    """

    metric: str
    emphasis: str | None = None


@dataclass(frozen=True, slots=True)
class StatedClaims(Question):
    """Which claims do these statements make? Answered by a tuple of texts, each to be checked by itself.

    Without an evaluator each statement counts as one claim. The statements may be the output's, another run's, or the
    reference's; nothing else is split.
    """

    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SameFact(Question):
    """Do both state the same fact, figures included, in whatever words? Answered by a bool."""

    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class PiecesUsed(Question):
    """Which of these pieces of context does the output draw on? Answered by a tuple of bools, one for each piece."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PiecesNeeded(Question):
    """Which of these pieces does the expected outcome need? Answered by a tuple of bools, one for each piece."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SoundReasoning(Question):
    """Is each step of the output's reasoning sound, compared with the reasoning of the expected outcome?

    Answered by ``{"steps": [{"step": str, "score": 1.0 | 0.5 | 0.0}], "expected": bool}``: 1.0 sound, 0.5 partial (the
    right conclusion by a wrong reason), 0.0 wrong. ``expected``: whether the expected outcome reasons at all; an
    output that does not has no steps.
    """


@dataclass(frozen=True, slots=True)
class FollowsInstructions(Question):
    """Which instructions did the output follow? The expected outcome shows an output that follows all of them.

    ``instructions`` are the case's own; None: those of its system prompt, which the judge lists. Answered by
    ``{"instructions": [{"instruction": str, "followed": bool}]}``, those of the case in their order.
    """

    instructions: tuple[str, ...] | None


CANNOT_TELL: Final = "cannot tell"
"""The judge's answer where the material does not decide a question: no value rather than a guess."""
AnswerKind: TypeAlias = Literal["boolean", "scale", "one_of", "number", "findings"]


@dataclass(frozen=True, slots=True)
class AskDeclared(Question):
    """A question by free instructions about the case, whose ``parts`` are shown as data.

    ``metric`` is its name in the prompt, different for different instructions. ``choices`` depend on the ``kind``.
    Answered by, for boolean: a bool; scale: a whole number from ``choices[0]`` to ``choices[1]``; one_of: one of
    ``choices``; number: a number, between the two where they are given; findings: a tuple of texts, at most
    ``choices[0]``. All but findings may be ``CANNOT_TELL``, which counts as no answer. ``texts`` by name are shown as
    well: those of a single step, which the case's parts lack. ``prompt`` is the prompt of prompt management that it was
    read from, with its version (``tone v3``); empty: none.
    """

    metric: str
    instructions: str
    kind: AnswerKind
    choices: tuple[str | float, ...] = ()
    parts: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class VerifyClaims(Question):
    """Which claims does the output make, how much does each matter, and does each match the ground truth?

    Answered by ``{"claims": [{"claim": str, "importance": "major" | "minor", "accurate": bool}]}``; an output that
    claims nothing has an empty list.
    """


@dataclass(frozen=True, slots=True)
class GradeDimension(Question):
    """Which of its five levels does the output reach in this dimension?

    Answered by ``{"level": "excellent" | "good" | "acceptable" | "poor" | "failed", "reason": str}``.
    """

    dimension: str


@dataclass(frozen=True, slots=True)
class GradeQuality(Question):
    """Is the answer clear, accurate by its sources, and complete by what is expected? One question for all three.

    Answered by ``{"answer_quality", "factual_correctness", "completeness", "reasoning"}``: three numbers in [0, 1]
    on the seed's six levels, and text. Sources and criteria are those of ``scoring.case.grounds``.
    """


@dataclass(frozen=True, slots=True)
class SameIntent(Question):
    """Does ``found`` state the purpose of the call that ``expected`` states?

    Answered by 1.0 (the same), 0.5 (the right domain, an incomplete intent) or 0.0 (another intent).
    """

    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class SameHighlight(Question):
    """Does the highlight ``found`` state what ``expected`` states (and perhaps more)? Answered by a bool."""

    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class CorrectHighlight(Question):
    """Is this highlight correct? Answered by a bool.

    It is correct when nothing in it contradicts the case's reference, and the reference or the transcript has every
    number, amount, date and name in it.
    """

    highlight: str


@dataclass(frozen=True, slots=True)
class SummaryClaims(Question):
    """Which claims do these facts of a summary make? Answered by a tuple of texts, at least one.

    Without an evaluator each fact counts as one claim.
    """

    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supported(Question):
    """Does the transcript or the reference support this claim? Answered by a bool.

    ``about`` names the field of a bare value (``customer_name``), and is empty where the claim is a sentence.
    """

    claim: str
    about: str = ""


CATEGORIES: Final = ("reasoning", "planning", "execution", "coordination")
IMPACTS: Final = ("high", "medium", "low")
MOST_CHOSEN: Final = 60
"""Most steps that a judge may ask to see."""
MOST_FOUND: Final = 20
"""Most errors that one answer names."""


@dataclass(frozen=True, slots=True)
class ChooseSteps(Question):
    """Which steps of this outline have to be seen in full, to find the errors of the run?

    Answered by a tuple of numbers of steps, the most suspicious first, at most ``MOST_CHOSEN``.
    """

    task: str
    outline: str


@dataclass(frozen=True, slots=True)
class FindErrors(Question):
    """Which errors does the run make at the steps that are shown in full?

    Answered by ``{"findings": [{"category", "step", "evidence", "quotation", "impact"}]}``. ``category`` is one of
    ``CATEGORIES``, ``step`` a number of the outline, ``quotation`` words of that step, ``impact`` one of ``IMPACTS``.
    ``steps`` shows the steps with the numbers ``shown``; the run has ``of`` steps.
    """

    task: str
    outline: str
    steps: str
    shown: tuple[int, ...]
    of: int


@dataclass(frozen=True, slots=True)
class ReachedGoal(Question):
    """What did the run achieve, by its outline and its last steps in full?

    Answered by ``all``, ``part`` or ``none``, or by ``CANNOT_TELL``, which counts as no answer.
    """

    task: str
    outline: str
    steps: str
    shown: tuple[int, ...]
    of: int


@dataclass(frozen=True, slots=True)
class SentenceSimilarity(Question):
    """How close in meaning are the two texts of each pair?

    For a translation they are the model's sentence and the reference's, in one target language.
    Answered by one number for each pair, in order: the cosine similarity of their multilingual embeddings, in [-1, 1].
    """

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HowFluent(Question):
    """Is this translation grammatically correct and natural in its target language? Only a judge answers this.

    ``language`` is the target language where the case names one (``hi``); None: that of the case's reference.
    Answered by a number in [0, 1], by the levels of seed 000, Task 4, Metric 3: 1.0 reads like a native translation,
    0.75 minor issues, 0.50 noticeable errors, 0.25 meaning obscured, 0.0 incomprehensible.
    """

    text: str
    language: str | None = None


@dataclass(frozen=True, slots=True)
class KeepsFact(Question):
    """Does this translation state this fact, unchanged (an outcome changed or reversed is not kept)?

    The fact may be written in the source or in the target language. Answered by a bool.
    """

    fact: str
    translation: str


@dataclass(frozen=True, slots=True)
class OutcomeDrift(Question):
    """Which outcomes of the call do the reference's sentences state, and which of them do the model's keep?

    Outcomes are what was resolved, escalated, refused, agreed …; numbers, dates and codes are not included.
    ``pairs`` are (reference's sentence, model's sentence), the latter empty where there is none. Answered by
    ``{"outcomes": [{"outcome": "escalated to supervisor", "kept": false}, …], "added": ["…", …]}``: each outcome of
    the reference once; ``added`` are outcomes that the model states and that replace none of the reference's.
    """

    pairs: tuple[tuple[str, str], ...]


KINDS: Final[Mapping[str, type[Question]]] = {
    name: kind
    for name, kind in globals().items()
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

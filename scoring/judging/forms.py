"""The forms, one for each type of question that a judge can answer.

A new type takes a line here and a file in ``scoring/prompts``; the conformance test names the types without a form.

A declared question has a form too: its instructions stand among the metrics, its answer is read as strictly as any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sidejudge.scoring.metrics.judge_metrics import DEFINITIONS, MAX_SCORE, Definition
from sidejudge.scoring.questions import contract, kinds
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.rubrics.dimensions import IMPORTANCE, LEVELS
from sidejudge.scoring.trace.span import Json

from . import readers
from .answers import ParseError, Reader, explanation, level, texts
from .form import (
    ANSWERS,
    BOOL,
    DATA,
    FIVE_FIELDS,
    SEED_000,
    SEED_002,
    SPARE,
    STRING,
    TOKENS,
    Form,
    five_fields,
    inline,
    list_of,
    object_of,
    one_of,
    share,
    yes_or_no,
)

_NUMBER: Mapping[str, Json] = {"type": "number"}
_UNDECIDED = one_of(kinds.CANNOT_TELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredForm(Form):
    """A form that shows only the texts of one step."""

    def texts(self, question: Question) -> dict[str, str]:
        return dict(question.texts) if isinstance(question, kinds.AskDeclared) else {}


def form_of_declared(question: kinds.AskDeclared) -> Form:
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
        hidden=("metric", "instructions", "kind", "choices", "parts"),
        tokens=lambda _: TOKENS + most * TOKENS // 4,
    )


def _schema(kind: str, choices: tuple[str | float, ...]) -> Mapping[str, Json]:
    match kind:
        case "boolean":
            return {"anyOf": [_UNDECIDED, dict(BOOL)]}
        case "scale":
            return {"anyOf": [_UNDECIDED, one_of(*range(int(choices[0]), int(choices[1]) + 1))]}
        case "one_of":
            return one_of(kinds.CANNOT_TELL, *choices)
        case "findings":
            return list_of(STRING)
        case _:
            limits = {"minimum": choices[0], "maximum": choices[1]} if choices else {}
            return {"anyOf": [_UNDECIDED, {**_NUMBER, **limits}]}


def _read(found: Mapping[str, object], question: Question) -> tuple[object, str]:
    """The answer in its declared type, and the reason; ``ParseError`` or ``ValueError`` for any other."""
    if not isinstance(question, kinds.AskDeclared):
        raise ParseError("not a declared question")
    if question.kind != "findings" and found.get("answer") == kinds.CANNOT_TELL:
        return kinds.CANNOT_TELL, explanation(found, "reason")
    return _answer(found, question), explanation(found, "reason")


def _answer(found: Mapping[str, object], question: kinds.AskDeclared) -> object:
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


_CALL = ("transcript", "expected_outcome", "model_output", "config")
"""The inputs of seed 000 (the metric is the question's)."""
_SHARE: Mapping[str, Json] = {"type": "number", "minimum": 0, "maximum": 1}
_WHOLE: Mapping[str, Json] = {"type": "integer"}
_INTENTS = (0.0, 0.5, 1.0)


def _restated(own: int) -> int:
    """Tokens of an answer that repeats, item by item, what it was shown."""
    return 4 * TOKENS + 2 * own


def _of_agent(definition: Definition) -> Form:
    score = {"passed": BOOL} if definition.score_type == "binary" else {"score": one_of(*range(MAX_SCORE + 1))}
    return Form(
        metric=definition.name,
        prompt=("agent/conversation", f"agent/{definition.name}"),
        parts=("system_prompt", "conversation", "tools", "context", "expected_outcome", "config"),
        spare=("context", *SPARE),
        properties={
            "reason": STRING,
            **score,
            "failure_code": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "turns": list_of({"type": "integer"}),
        },
        read=readers.agent_grade(definition),
        hidden=("metric", "emphasis"),  # the emphasis is appended once, under the seed's heading
    )


def _extracted(
    metric: str, *parts: str, found: Mapping[str, Mapping[str, Json]], read: Reader, numbered: bool = False
) -> Form:
    """A question of seed 000 that asks for more than a score, so that its answer has other than the five fields."""
    return Form(
        metric=metric,
        prompt=(metric,),
        common=(SEED_000, DATA, ANSWERS, FIVE_FIELDS),
        parts=parts,
        properties={"reason": STRING, **found},
        read=read,
        numbered=numbered,
        tokens=_restated,
    )


def _of_dimension(name: str, *parts: str) -> Form:
    return Form(
        metric=name,
        prompt=(f"dimensions/{name}",),
        parts=parts,
        properties={"reason": STRING, "level": one_of(*LEVELS)},
        read=readers.dimension_level,
        hidden=("dimension",),
    )


def _of_run(metric: str, found: Mapping[str, Mapping[str, Json]], read: Reader, *, tokens: int = TOKENS) -> Form:
    """A question about part of a run, which brings its texts along."""
    return Form(
        metric=metric,
        prompt=("trajectory/run", f"trajectory/{metric}"),
        properties={"reason": STRING, **found},
        read=read,
        hidden=("shown", "of"),
        tokens=lambda _: tokens,
    )


FORMS: Mapping[type[Question], Form] = {
    kinds.CitesTranscript: yes_or_no("has_evidence", *_CALL),
    kinds.BorneOut: yes_or_no("is_factual", *_CALL),
    kinds.SameIntent: replace(
        five_fields("call_intent_match", score=_NUMBER, read=lambda found: level(found, "score", _INTENTS)),
        levels=_INTENTS,
    ),
    kinds.SameHighlight: yes_or_no("highlight_recall_rate"),
    kinds.CorrectHighlight: yes_or_no("highlight_correctness_rate", *_CALL),
    kinds.Supported: yes_or_no("fabrication_free_rate", *_CALL),
    kinds.HowFluent: share("target_language_fluency", "expected_outcome"),
    kinds.KeepsFact: yes_or_no("critical_fact_preservation_rate"),
    kinds.SummaryClaims: _extracted("summary_claims", found={"claims": list_of(STRING)}, read=readers.summary_claims),
    kinds.OutcomeDrift: _extracted(
        "outcome_drift",
        found={"outcomes": list_of(object_of({"outcome": STRING, "kept": BOOL})), "added": list_of(STRING)},
        read=readers.outcome_drift,
    ),
    kinds.SameFact: yes_or_no("same_fact"),
    kinds.StatedClaims: _extracted("stated_claims", found={"claims": list_of(STRING)}, read=readers.stated_claims),
    kinds.PiecesUsed: _extracted(
        "pieces_used", "model_output", found={"used": list_of(_WHOLE)}, read=readers.pieces("used"), numbered=True
    ),
    kinds.PiecesNeeded: _extracted(
        "pieces_needed",
        "input",
        "expected_outcome",
        found={"needed": list_of(_WHOLE)},
        read=readers.pieces("needed"),
        numbered=True,
    ),
    kinds.SoundReasoning: _extracted(
        "argument_correctness",
        "input",
        "transcript",
        "expected_outcome",
        "model_output",
        found={"steps": list_of(object_of({"step": STRING, "score": _NUMBER})), "expected": BOOL},
        read=readers.reasoning,
    ),
    kinds.FollowsInstructions: _extracted(
        "instruction_following",
        "system_prompt",
        "input",
        "expected_outcome",
        "model_output",
        found={"instructions": list_of(object_of({"instruction": STRING, "followed": BOOL}))},
        read=readers.instructions,
        numbered=True,
    ),
    kinds.GradeQuality: Form(
        metric="quality",
        prompt=("quality",),
        parts=("input", "sources", "criteria", "model_output"),
        properties={
            "reasoning": STRING,
            "answer_quality": _SHARE,
            "factual_correctness": _SHARE,
            "completeness": _SHARE,
        },
        read=readers.quality,
        apart=("answer_quality", "factual_correctness", "completeness"),
    ),
    kinds.VerifyClaims: Form(
        metric="factual_accuracy",
        prompt=("dimensions/factual_accuracy",),
        parts=("ground_truth", "model_output"),
        properties={
            "reason": STRING,
            "claims": list_of(object_of({"claim": STRING, "importance": one_of(*IMPORTANCE), "accurate": BOOL})),
        },
        read=readers.checked_claims,
        tokens=lambda _: 10 * TOKENS,
    ),
    kinds.ChooseSteps: _of_run("trajectory_steps", {"steps": list_of(_WHOLE)}, readers.chosen_steps, tokens=2 * TOKENS),
    kinds.FindErrors: _of_run(
        "trajectory_errors",
        {
            "findings": list_of(
                object_of(
                    {
                        "category": one_of(*kinds.CATEGORIES),
                        "step": _WHOLE,
                        "evidence": STRING,
                        "quotation": STRING,
                        "impact": one_of(*kinds.IMPACTS),
                    }
                )
            )
        },
        readers.found_errors,
        tokens=kinds.MOST_FOUND * TOKENS // 2,
    ),
    kinds.ReachedGoal: _of_run(
        "goal_reached", {"achieved": one_of("all", "part", "none", kinds.CANNOT_TELL)}, readers.achieved
    ),
}
"""Forms of the types with one form each."""

BY_METRIC: Mapping[type[Question], Mapping[str, Form]] = {
    kinds.GradeAgent: {name: _of_agent(definition) for name, definition in DEFINITIONS.items()},
    kinds.GradeDimension: {
        form.metric: form
        for form in (
            _of_dimension("completeness", "input", "criteria", "model_output"),
            _of_dimension("citation_accuracy", "ground_truth", "model_output"),
            _of_dimension("source_quality", "input", "sources", "model_output"),
            _of_dimension("tool_efficiency", "input", "tools", "model_output"),
        )
    },
}
"""Forms of the types with a form for each metric or dimension."""

TEMPLATE = Form(
    metric="grade",
    prompt=(SEED_002,),
    parts=("task", "expected_outcome", "provided_context", "model_output"),
    properties={"accuracy_score": one_of(0, 1, 2), "faithfulness_score": one_of(0, 1, 2), "rationale": STRING},
    common=(DATA,),
    read=readers.grade,
    alone=True,
    apart=("accuracy_score", "faithfulness_score"),
)
"""The form of ``GradeAnswer``: seed 002's template, with its own shape of answer."""


def form_of(question: Question) -> Form | None:
    """The form of a question; None when no judge can answer it."""
    match question:
        case kinds.GradeAnswer():
            return TEMPLATE
        case kinds.AskDeclared():
            return form_of_declared(question)
        case kinds.GradeAgent(metric=name) | kinds.GradeDimension(dimension=name):
            return BY_METRIC[type(question)].get(name)
        case _:
            return FORMS.get(type(question))

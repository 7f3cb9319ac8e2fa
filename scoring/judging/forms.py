"""The forms, one for each type of question that a judge can answer.

A new type takes a line here and a file in ``scoring/prompts``; the conformance test names the types without a form.
"""

from __future__ import annotations

from collections.abc import Mapping

from scoring import contract
from scoring.effects import BorneOut, CitesTranscript, GradeAnswer, Question, SameEntity
from scoring.judge_metrics import DEFINITIONS, MAX_SCORE, Definition
from scoring.questions.agent import GradeAgent
from scoring.questions.dimensions import GradeDimension, VerifyClaims
from scoring.questions.quality import GradeQuality
from scoring.questions.text import CorrectHighlight, SameHighlight, SameIntent, SummaryClaims, Supported
from scoring.questions.translation import HowFluent, KeepsFact, OutcomeDrift, SentenceSimilarity
from scoring.rubrics.agent import parse_agent_grade
from scoring.rubrics.answer import parse_grade
from scoring.rubrics.dimensions import IMPORTANCE, LEVELS, parse_claims, parse_level
from scoring.rubrics.quality import parse_quality
from scoring.span import Json
from scoring.summary import MAX_FACTS

from .answers import explanation, level, objects, texts
from .form import BOOL, STRING, TOKENS, Form, five_fields, list_of, object_of, one_of, share, yes_or_no
from .prompt import ANSWERS, DATA, SEED_000, SEED_002

EMBEDDING_ONLY: tuple[type[Question], ...] = (SameEntity, SentenceSimilarity)
"""Answered by the cosine of two embeddings, which no judge can tell."""

_CALL = ("transcript", "expected_outcome", "model_output", "config")
"""The inputs of seed 000 (the metric is the question's)."""
_EXTRACTED = (SEED_000, DATA, ANSWERS)
"""Before what is asked in the place of a score: which claims, which outcomes."""
_NUMBER: Mapping[str, Json] = {"type": "number"}
_MOST = 500
_INTENTS = (0.0, 0.5, 1.0)


def _restated(own: int) -> int:
    """Tokens of an answer that says again, item by item, what it was shown."""
    return TOKENS + 2 * own


def _summary_claims(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    return texts(found, "claims", least=1, most=MAX_FACTS), explanation(found, "reason")


def _outcome_drift(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    outcomes = [
        {"outcome": contract.text(one, "outcome"), "kept": contract.yes_or_no(one, "kept")}
        for one in objects(found, "outcomes", ("outcome", "kept"), _MOST)
    ]
    added = list(texts(found, "added", least=0, most=_MOST))
    return {"outcomes": outcomes, "added": added}, explanation(found, "reason")


def _claims(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    objects(found, "claims", ("claim", "importance", "accurate"), _MOST)
    claims = [
        {"claim": one.claim, "importance": one.importance, "accurate": one.accurate} for one in parse_claims(found)
    ]
    return {"claims": claims}, explanation(found, "reason")


def _level(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    reason = explanation(found, "reason")
    return {"level": parse_level(found).level, "reason": reason}, reason


def _quality(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    reasoning, scores = explanation(found, "reasoning"), parse_quality(found)
    return {
        "answer_quality": scores.answer_quality,
        "factual_correctness": scores.factual_correctness,
        "completeness": scores.completeness,
        "reasoning": reasoning,
    }, reasoning


def _grade(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    grade, rationale = parse_grade(found), explanation(found, "rationale")
    return {
        "accuracy_score": grade.accuracy_score,
        "faithfulness_score": grade.faithfulness_score,
        "rationale": rationale,
    }, rationale


def _of_agent(definition: Definition) -> Form:
    binary = definition.score_type == "binary"

    def read(found: Mapping[str, object], _: Question) -> tuple[object, str]:
        reason, grade = explanation(found, "reason"), parse_agent_grade(found, definition)
        told: dict[str, object] = {"passed": grade.acceptable} if binary else {"score": grade.score}
        return {**told, "failure_code": grade.failure_code, "turns": list(grade.turns), "reason": reason}, reason

    return Form(
        metric=definition.name,
        prompt=("agent/conversation", f"agent/{definition.name}"),
        parts=("system_prompt", "conversation", "tools", "context", "expected_outcome", "config"),
        properties={
            **({"passed": BOOL} if binary else {"score": one_of(*range(MAX_SCORE + 1))}),
            "failure_code": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "turns": list_of({"type": "integer"}),
            "reason": STRING,
        },
        read=read,
        untold=("metric", "emphasis"),  # the emphasis is appended once, under the seed's heading
    )


def _of_dimension(name: str, *parts: str) -> Form:
    return Form(
        metric=name,
        prompt=(f"dimensions/{name}",),
        parts=parts,
        properties={"level": one_of(*LEVELS), "reason": STRING},
        read=_level,
        untold=("dimension",),
    )


FORMS: Mapping[type[Question], Form] = {
    CitesTranscript: yes_or_no("has_evidence", *_CALL),
    BorneOut: yes_or_no("is_factual", *_CALL),
    SameIntent: five_fields("call_intent_match", score=_NUMBER, read=lambda found: level(found, "score", _INTENTS)),
    SameHighlight: yes_or_no("highlight_recall_rate"),
    CorrectHighlight: yes_or_no("highlight_correctness_rate", *_CALL),
    Supported: yes_or_no("fabrication_free_rate", *_CALL),
    HowFluent: share("target_language_fluency", "expected_outcome"),
    KeepsFact: yes_or_no("critical_fact_preservation_rate"),
    SummaryClaims: Form(
        metric="summary_claims",
        prompt=("summary_claims",),
        common=_EXTRACTED,
        properties={"claims": list_of(STRING), "reason": STRING},
        read=_summary_claims,
        tokens=_restated,
    ),
    OutcomeDrift: Form(
        metric="outcome_drift",
        prompt=("outcome_drift",),
        common=_EXTRACTED,
        properties={
            "outcomes": list_of(object_of({"outcome": STRING, "kept": BOOL})),
            "added": list_of(STRING),
            "reason": STRING,
        },
        read=_outcome_drift,
        tokens=_restated,
    ),
    GradeQuality: Form(
        metric="quality",
        prompt=("quality",),
        parts=("input", "sources", "criteria", "model_output"),
        properties={
            "answer_quality": _NUMBER,
            "factual_correctness": _NUMBER,
            "completeness": _NUMBER,
            "reasoning": STRING,
        },
        read=_quality,
    ),
    VerifyClaims: Form(
        metric="factual_accuracy",
        prompt=("dimensions/factual_accuracy",),
        parts=("ground_truth", "model_output"),
        properties={
            "claims": list_of(object_of({"claim": STRING, "importance": one_of(*IMPORTANCE), "accurate": BOOL})),
            "reason": STRING,
        },
        read=_claims,
        tokens=lambda _: 10 * TOKENS,
    ),
}
"""Forms of the types that have one form each."""

BY_METRIC: Mapping[type[Question], Mapping[str, Form]] = {
    GradeAgent: {name: _of_agent(definition) for name, definition in DEFINITIONS.items()},
    GradeDimension: {
        form.metric: form
        for form in (
            _of_dimension("completeness", "input", "criteria", "model_output"),
            _of_dimension("citation_accuracy", "ground_truth", "model_output"),
            _of_dimension("source_quality", "input", "sources", "model_output"),
            _of_dimension("tool_efficiency", "input", "tools", "model_output"),
        )
    },
}
"""Forms of the types that have one for each metric or dimension that they name."""

TEMPLATE = Form(
    metric="grade",
    prompt=(SEED_002,),
    parts=("task", "expected_outcome", "provided_context", "model_output"),
    properties={"accuracy_score": one_of(0, 1, 2), "faithfulness_score": one_of(0, 1, 2), "rationale": STRING},
    common=(DATA,),
    read=_grade,
    alone=True,
)
"""The form of ``GradeAnswer``: seed 002's template, with an answer of its own shape."""


def form_of(question: Question) -> Form | None:
    """The form of a question; None when no judge can answer it."""
    match question:
        case GradeAnswer():
            return TEMPLATE
        case GradeAgent(metric=name) | GradeDimension(dimension=name):
            return BY_METRIC[type(question)].get(name)
        case _:
            return FORMS.get(type(question))

"""answer: accuracy, faithfulness, latency and tokens of one answer (seed 002)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric, metric
from sidejudge.scoring.metrics.settle import settled_field, unavailable
from sidejudge.scoring.questions.kinds import GradeAnswer
from sidejudge.scoring.questions.question import Steps
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Bands, Failed, Method, Result, Scored, Unavailable, at_most
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

SOURCE = "seed 002"
MAX_RATIONALE_WORDS = 80

_PASS_AT_LEAST = {"accuracy_score": 1.0, "faithfulness_score": 1.0}
_PASS_AT_MOST = {"latency_e2e_ms": 8000.0, "total_tokens": 6000.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """A judge's grade: two whole scores from 0 to 2, and why."""

    accuracy_score: int
    faithfulness_score: int
    rationale: str


def parse_grade(value: object) -> Grade:
    """Read a judge's answer, as text or decoded, as strictly as seed 002 §2.2 demands; ``ValueError`` names the fault.

    >>> parse_grade('{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Close."}').accuracy_score
    2
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("not JSON") from None
    if not isinstance(value, Mapping):
        raise ValueError("not a JSON object")  # noqa: TRY004  # one kind of error for every breach of the contract
    for key in ("accuracy_score", "faithfulness_score", "rationale"):
        if key not in value:
            raise ValueError(f"{key} is missing")
    for key in ("accuracy_score", "faithfulness_score"):
        if type(value[key]) is not int or value[key] not in (0, 1, 2):
            raise ValueError(f"{key} is not 0, 1 or 2")
    rationale = value["rationale"]
    if not isinstance(rationale, str) or not rationale.strip():
        raise ValueError("rationale is empty")
    if len(rationale.split()) > MAX_RATIONALE_WORDS:
        raise ValueError(f"rationale has more than {MAX_RATIONALE_WORDS} words")
    return Grade(
        accuracy_score=value["accuracy_score"], faithfulness_score=value["faithfulness_score"], rationale=rationale
    )


def _may_be_lost(case: Case) -> bool:
    """Whether an unknown answer may exist. A request that timed out has none: the judge sees it empty.

    By the seed, a missing answer is judged like any other. If it were decided here, a monitor without a judge would
    only know failures, and its pass rate would be 0.
    """
    return case.model_output is None and not (case.timed_out and case.content_captured)


def _graded(case: Case, field: str) -> Steps:
    if _may_be_lost(case):
        return Unavailable(Reason("no answer to grade: model_output is null"))
    replies = yield (GradeAnswer(),)
    (grade,), method, judgements = settled_field(replies, field, ("accuracy_score", "faithfulness_score"), parse_grade)
    return Scored(value=getattr(grade, field), method=method, reason=grade.rationale, judgements=judgements)


def _milliseconds(case: Case, field: Literal["latency_e2e_ms", "latency_model_ms"]) -> Result:
    value = case.latency_e2e_ms if field == "latency_e2e_ms" else case.latency_model_ms
    if value is None:
        return Unavailable(Reason("{field} is not known", field=own(field)))
    reason = Reason("timed out; elapsed time") if case.timed_out else ""
    return Scored(value=value, reason=reason, details={"timed_out": case.timed_out})


def _tokens(case: Case) -> tuple[int, int]:
    if case.input_tokens is None or case.output_tokens is None:
        raise unavailable(Reason("input_tokens and output_tokens are not both known"))
    return case.input_tokens, case.output_tokens


@metric(
    formula="input_tokens + output_tokens; token_efficiency_norm = min(1, 2000 / max(total_tokens, 1))",
    source=f"{SOURCE} §1.4",
    bands=at_most(good=2000, acceptable=6000),
    unit="tokens",
    bounds=(0.0, None),
    undefined="the case does not state both counts",
)
def total_tokens(case: Case) -> Result:
    """Tokens read and written for the answer."""
    used = _tokens(case)
    return Scored(value=sum(used), details={"input_tokens": used[0], "output_tokens": used[1]})


@metric(
    formula="output_tokens / max(input_tokens, 1)",
    source=f"{SOURCE} §1.4",
    bounds=(0.0, None),
    undefined="the case does not state both counts",
)
def token_efficiency_ratio(case: Case) -> Result:
    """Tokens written for each token read."""
    read, written = _tokens(case)
    return Scored(value=written / max(read, 1))


def accuracy_norm(score: float) -> float:
    """``accuracy_score / 2``; faithfulness likewise."""
    return score / 2


def latency_norm(milliseconds: float) -> float:
    """``min(1, 3000 / max(latency_e2e_ms, 1))``.

    >>> latency_norm(6000)
    0.5
    """
    return min(1.0, 3000 / max(milliseconds, 1))


def token_efficiency_norm(total: float) -> float:
    """``min(1, 2000 / max(total_tokens, 1))``."""
    return min(1.0, 2000 / max(total, 1))


def _passes(_: float, results: Mapping[str, Result]) -> bool | None:
    """The four conditions of §3.1: one that fails decides; one that is unknown leaves the rest undecided."""
    reported: list[bool | None] = []
    for name, bound in _PASS_AT_LEAST.items():
        result = results[name]
        reported.append(result.value >= bound if isinstance(result, Scored) else None)
    for name, bound in _PASS_AT_MOST.items():
        result = results[name]
        reported.append(result.value <= bound if isinstance(result, Scored) else None)
    if False in reported:
        return False
    return None if None in reported else True


def evaluator_error(accuracy: Result, faithfulness: Result) -> str | None:
    """Why a sample has no grade: ``parse_error`` (§2.2), ``error``, ``unavailable`` (no judge); ``None``: it has one.

    >>> evaluator_error(Failed("parse_error: not JSON"), Failed("parse_error: not JSON"))
    'parse_error'
    """
    for result in (accuracy, faithfulness):
        if isinstance(result, Failed):
            return "parse_error" if result.reason.startswith("parse_error") else result.status
        if isinstance(result, Unavailable):
            return result.status
    return None


def _sample(case: Case, composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """Every per-sample field by the seed's name, under ``answer``: all that a run's aggregates need.

    A field without a value is null. ``sample_score`` (§3.3) is the composite.
    """
    values = {name: result.value if isinstance(result, Scored) else None for name, result in results.items()}
    norms = {
        norm: None if (value := values[metric.id]) is None else component(value)
        for norm, metric, component in (
            ("accuracy_norm", accuracy_score, accuracy_norm),
            ("faithfulness_norm", faithfulness_score, accuracy_norm),
            ("latency_norm", latency_e2e_ms, latency_norm),
            ("token_efficiency_norm", total_tokens, token_efficiency_norm),
        )
    }
    return {
        "answer": {
            "accuracy_score": values[accuracy_score.id],
            "faithfulness_score": values[faithfulness_score.id],
            "evaluator_error": evaluator_error(results[accuracy_score.id], results[faithfulness_score.id]),
            "latency_e2e_ms": values[latency_e2e_ms.id],
            "latency_model_ms": values[latency_model_ms.id],
            "timed_out": case.timed_out,
            "input_tokens": case.input_tokens,
            "output_tokens": case.output_tokens,
            "total_tokens": values[total_tokens.id],
            "token_efficiency_ratio": values[token_efficiency_ratio.id],
            **norms,
            "sample_score": composite,
        }
    }


_SCORE_BANDS = Bands((("good", 2.0), ("acceptable", 1.0)), "fail")

accuracy_score = Metric(
    id="accuracy_score",
    title="Accuracy",
    meaning="2 fully correct and complete, 1 partially correct, 0 incorrect or non-responsive.",
    formula="judge's grade in {0, 1, 2}; accuracy_norm = accuracy_score / 2",
    source=f"{SOURCE} §1.1, §2; rubrics §8",
    measure=partial(_graded, field="accuracy_score"),
    bands=_SCORE_BANDS,
    unit="points",
    bounds=(0.0, 2.0),
    methods=(Method.JUDGE,),
    undefined="there is no judge, or its answer twice broke the contract; the answer is not known",
)
faithfulness_score = Metric(
    id="faithfulness_score",
    title="Faithfulness",
    meaning="2 no unsupported claims, 1 minor unsupported inference, 0 fabricated or materially unfaithful.",
    formula="judge's grade in {0, 1, 2}; faithfulness_norm = faithfulness_score / 2",
    source=f"{SOURCE} §1.2, §2; rubrics §8",
    measure=partial(_graded, field="faithfulness_score"),
    bands=_SCORE_BANDS,
    unit="points",
    bounds=(0.0, 2.0),
    methods=(Method.JUDGE,),
    undefined="there is no judge, or its answer twice broke the contract; the answer is not known",
)
latency_e2e_ms = Metric(
    id="latency_e2e_ms",
    title="End-to-end latency",
    meaning="From the start of the request to the fully received answer; a timed-out one counts as it is.",
    formula="end − start; latency_norm = min(1, 3000 / max(latency_e2e_ms, 1))",
    source=f"{SOURCE} §1.3",
    measure=partial(_milliseconds, field="latency_e2e_ms"),
    bands=at_most(good=3000, acceptable=8000),
    unit="ms",
    bounds=(0.0, None),
    undefined="the case states no latency",
)
latency_model_ms = Metric(
    id="latency_model_ms",
    title="Model latency",
    meaning="Generation time of the model or its provider.",
    formula="sum of the model calls' durations, as stated by the case",
    source=f"{SOURCE} §1.3",
    measure=partial(_milliseconds, field="latency_model_ms"),
    unit="ms",
    bounds=(0.0, None),
    undefined="the case states no model latency",
)

RUBRIC = Rubric(
    id="answer",
    title="Answer",
    source="seed 002 §3; rubrics §1.6",
    formula="0.45 × accuracy_norm + 0.30 × faithfulness_norm + 0.15 × latency_norm + 0.10 × token_efficiency_norm; "
    "passes if accuracy_score >= 1, faithfulness_score >= 1, latency_e2e_ms <= 8000 and total_tokens <= 6000",
    criteria=(
        Criterion(metric=accuracy_score, weight=0.45, component=accuracy_norm),
        Criterion(metric=faithfulness_score, weight=0.30, component=accuracy_norm),
        Criterion(metric=latency_e2e_ms, weight=0.15, component=latency_norm),
        Criterion(metric=total_tokens, weight=0.10, component=token_efficiency_norm),
        Criterion(metric=latency_model_ms),
        Criterion(metric=token_efficiency_ratio),
    ),
    pass_mark=None,
    passes=_passes,
    detail=_sample,
)

"""qa: scores of a call scorecard's questions against a human analyst's (seed 000, Task 1; rubrics §3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.metric import metric
from sidejudge.scoring.metrics.settle import settled, truth
from sidejudge.scoring.metrics.structure import (
    Matched,
    items_by_id,
    over,
    shown_by_name,
    shown_items,
    strict_key,
    structure_compliance,
)
from sidejudge.scoring.questions.kinds import BorneOut, CitesTranscript
from sidejudge.scoring.questions.question import Steps
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import (
    Blocker,
    Effect,
    Method,
    NotApplicable,
    Result,
    Scored,
    at_least,
    at_most,
)
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, derived_pass_mark, weights_in_words

SOURCE = "seed 000, Task 1"
_LARGEST = 1e15
_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardItem:
    """A question of the reference, and the model's answer; ``score`` None when that has no number."""

    question_id: Json
    expected: float
    max_score: float
    pass_fail: bool
    score: float | None
    answer: dict[str, Json] | None

    @property
    def correct(self) -> bool:
        """PASS_FAIL: equal. SCORE: within a tenth of the scale (±0.5 on 5 points)."""
        if self.score is None:
            return False
        gap = round(abs(self.score - self.expected), _DIGITS)
        return gap == 0 if self.pass_fail else gap <= round(0.1 * self.max_score, _DIGITS)

    @property
    def gap(self) -> float:
        """Distance from the expected score over the question's own scale, at most 1; 1 for a skipped question."""
        if self.score is None:
            return 1.0
        return min(1.0, round(abs(self.score - self.expected), _DIGITS) / self.max_score)

    @property
    def false_pass(self) -> bool:
        """Whether it has full marks, or more than the scale has, though the agent clearly failed."""
        if not self.pass_fail or self.score is None or round(self.expected, _DIGITS) != 0:
            return False
        return round(self.score, _DIGITS) >= round(self.max_score, _DIGITS)

    def __str__(self) -> str:
        if self.score is not None:
            given = f"{self.score:g}"
        else:
            given = "skipped" if self.answer is None else "score not usable"
        return f"{label(str(self.question_id))} ({given}, expected {self.expected:g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScorecard:
    """The reference's questions with the model's answers, matched by question id."""

    items: tuple[ScorecardItem, ...]
    matched: Matched

    def ratio(self, count: float) -> float:
        """Over the reference's questions. None expected: 1 when none were answered either, else 0 (rubrics §1.2)."""
        if self.items:
            return count / len(self.items)
        return 0.0 if self.matched.answered else 1.0

    def remarks(self) -> dict[str, object]:
        """Remarks on what was ignored, and where the model's own scale or type differs from the reference's."""
        differing = [
            item.question_id
            for item in self.items
            if item.answer is not None
            and (
                item.answer.get("max_score", item.max_score) != item.max_score
                or item.answer.get("type", _type(item)) != _type(item)
            )
        ]
        matched = self.matched
        return shown_by_name(
            unknown_ids=matched.unknown, repeated_ids=matched.repeated, differing_scale_or_type=differing
        )


def read_scorecard(case: Case) -> CallScorecard:
    """The reference's questions with the model's answers; ``NoValueError`` without a reference that can be used."""
    wanted, matched = items_by_id(case, "questions", "question_id", _unusable)
    return CallScorecard(items=tuple(_item(question, matched) for question in wanted), matched=matched)


def _unusable(question: Json) -> str | None:
    if not isinstance(question, dict):
        return "not an object"
    if kind(question.get("question_id")) not in ("string", "number"):
        return "question_id is missing"
    score, most = _number(question.get("score")), _number(question.get("max_score"))
    if score is None:
        return "score is not a number"
    if most is None or most <= 0:
        return "max_score is not a number above 0"
    if question.get("type") not in ("PASS_FAIL", "SCORE"):
        return "type is neither PASS_FAIL nor SCORE"
    return None


def _item(question: dict[str, Json], matched: Matched) -> ScorecardItem:
    answer = matched.by_id.get(strict_key(question["question_id"]))
    return ScorecardItem(
        question_id=question["question_id"],
        expected=_number(question["score"]) or 0.0,
        max_score=_number(question["max_score"]) or 0.0,
        pass_fail=question["type"] == "PASS_FAIL",
        score=None if answer is None else _number(answer.get("score")),
        answer=answer,
    )


def _number(value: Json) -> float | None:
    """A number within the range of computation; None for anything else."""
    if kind(value) != "number" or not isinstance(value, int | float) or abs(value) > _LARGEST:
        return None
    return float(value)


def _type(item: ScorecardItem) -> str:
    return "PASS_FAIL" if item.pass_fail else "SCORE"


@metric(
    title="Question Score Accuracy",
    formula="questions_scored_correctly / total_questions",
    source=f"{SOURCE}, Metric 1; rubrics §3",
    bands=at_least(good=0.95, acceptable=0.90),
    undefined="there is no expected outcome with questions",
)
@over(read_scorecard)
def question_score_accuracy(card: CallScorecard) -> Result:
    """Share of the scorecard's questions that the model scored as the reference does; a skipped one is wrong."""
    wrong = [item for item in card.items if not item.correct]
    right = len(card.items) - len(wrong)
    reason = Reason("{n} of {all} questions", n=right, all=len(card.items))
    if wrong:
        reason += Reason("; wrong: {names}", names=quoted(", ".join(map(str, wrong[:5]))))
    if len(wrong) > 5:
        reason += Reason(" and {n} more", n=len(wrong) - 5)
    return Scored(
        value=card.ratio(right),
        reason=reason,
        details={"wrong": shown_items(item.question_id for item in wrong), **card.remarks()},
    )


@metric(
    title="Score Gap Accuracy",
    formula="1 − mean(|model_score − expected_score| / question_max_score)",
    source=f"{SOURCE}, Metric 2; rubrics §3",
    bands=at_least(good=0.90, acceptable=0.80),
    undefined="there is no expected outcome with questions",
)
@over(read_scorecard)
def score_gap_accuracy(card: CallScorecard) -> Result:
    """How close the scores are on average, each measured on its own question's scale."""
    gaps = {label(str(item.question_id)): round(item.gap, 9) for item in card.items[:50] if item.gap}
    value = 1.0 - card.ratio(math.fsum(item.gap for item in card.items)) if card.items else card.ratio(0)
    reason = Reason("average normalised gap {gap:.3f}", gap=1.0 - value) if card.items else ""
    return Scored(value=value, reason=reason, details={"gaps": gaps})


@metric(
    title="Compliance False Pass Rate",
    formula="wrongly_passed_questions / total_pass_fail_questions; wrongly passed: model >= max_score, reference 0",
    source=f"{SOURCE}, Blocker; rubrics §3",
    bands=at_most(good=0.01, acceptable=0.03),
    undefined="there is no expected outcome with questions; not applicable without a PASS_FAIL question",
)
@over(read_scorecard)
def compliance_false_pass_rate(card: CallScorecard) -> Result:
    """Share of PASS_FAIL questions given full marks (or more) where the reference gives zero."""
    requested = [item for item in card.items if item.pass_fail]
    if not requested:
        return NotApplicable(Reason("the reference has no PASS_FAIL question"))
    wrong = [item for item in requested if item.false_pass]
    return Scored(
        value=len(wrong) / len(requested),
        reason=Reason("{n} of {all} PASS_FAIL questions wrongly passed", n=len(wrong), all=len(requested))
        + (Reason(": {ids}", ids=", ".join(label(str(item.question_id)) for item in wrong[:5])) if wrong else ""),
        details={"wrongly_passed": shown_items(item.question_id for item in wrong)},
    )


@metric(
    title="Evidence-Backed Reasoning",
    formula="(reasons_with_evidence + factual_reasons) / (2 × total_reasons)",
    source=f"{SOURCE}, Metric 3; rubrics §3, §9",
    bands=at_least(good=0.90, acceptable=0.80),
    methods=(Method.LEXICAL, Method.JUDGE),
    undefined="there is no expected outcome with questions, or no transcript",
)
def evidence_backed_reasoning(case: Case) -> Steps:
    """Whether the model's reasons point to something in the transcript, and whether that is really there."""
    card = case.once(read_scorecard)
    reasons: list[tuple[Json, str]] = []
    blank: list[Json] = []
    for item in card.items:
        reason = item.answer.get("reason") if item.answer else None
        if isinstance(reason, str) and reason.strip():
            reasons.append((item.question_id, reason))
        elif isinstance(reason, str):
            blank.append(item.question_id)  # given, and evidence of nothing
    if not reasons:
        return Scored(value=card.ratio(0) if not card.items else 0.0, reason=Reason("the model gave no reasons"))
    replies = yield (*(CitesTranscript(reason) for _, reason in reasons), *(BorneOut(reason) for _, reason in reasons))
    answers, method, judgements = settled(replies, truth)
    cited, borne_out = answers[: len(reasons)], answers[len(reasons) :]
    # A reason without evidence is not factual either.
    factual = [c and b for c, b in zip(cited, borne_out, strict=True)]
    total = len(reasons) + len(blank)
    return Scored(
        value=(sum(cited) + sum(factual)) / (2 * total),
        method=method,
        reason=Reason(
            "{cited} of {all} reasons cite evidence, {borne_out} are borne out",
            cited=sum(cited),
            all=total,
            borne_out=sum(factual),
        ),
        details={
            "without_evidence": shown_items([*(q for (q, _), c in zip(reasons, cited, strict=True) if not c), *blank]),
            "not_factual": shown_items([*(q for (q, _), f in zip(reasons, factual, strict=True) if not f), *blank]),
        },
        judgements=judgements,
    )


response_structure_compliance = structure_compliance(read_scorecard)

_CRITERIA = (
    Criterion(metric=response_structure_compliance, prerequisite=True),
    Criterion(metric=question_score_accuracy, weight=0.70),
    Criterion(metric=score_gap_accuracy, weight=0.20),
    Criterion(metric=evidence_backed_reasoning, weight=0.10),
    # Only its table and the scorecard name this blocker: the number stands, the verdict does not pass (rubrics §1.4).
    Criterion(metric=compliance_false_pass_rate, blocker=Blocker(effect=Effect.DISQUALIFIED, above=0.03)),
)

RUBRIC = Rubric(
    id="qa",
    title="QA Analysis",
    source="seed 000, Task 1; rubrics §3",
    formula=f"{weights_in_words(_CRITERIA)}; invalid if response_structure_compliance = 0",
    criteria=_CRITERIA,
    pass_mark=derived_pass_mark(*_CRITERIA),
)

"""Readers: answers of more than one number, read strictly as the value of the question."""

from __future__ import annotations

from collections.abc import Mapping

from sidejudge.scoring.metrics.judge_metrics import Definition
from sidejudge.scoring.metrics.judged_benchmarks import SOUNDNESS
from sidejudge.scoring.metrics.summary import MAX_FACTS
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.kinds import (
    CANNOT_TELL,
    CATEGORIES,
    IMPACTS,
    MOST_CHOSEN,
    MOST_FOUND,
    FollowsInstructions,
    PiecesNeeded,
    PiecesUsed,
)
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.rubrics.agent import parse_agent_grade
from sidejudge.scoring.rubrics.answer import parse_grade
from sidejudge.scoring.rubrics.dimensions import parse_claims, parse_level
from sidejudge.scoring.rubrics.quality import parse_quality
from sidejudge.scoring.rubrics.trajectory import COSTS

from .answers import ParseError, Reader, explanation, level, objects, texts

_LONGEST_CODE = 80
MOST = 500
"""Most items of one list."""


def summary_claims(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Claims of a summary, which states at least one."""
    return texts(found, "claims", least=1, most=MAX_FACTS), explanation(found, "reason")


def outcome_drift(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Outcomes of the reference with whether each is kept, and those added."""
    outcomes = [
        {"outcome": contract.text(one, "outcome"), "kept": contract.yes_or_no(one, "kept")}
        for one in objects(found, "outcomes", ("outcome", "kept"), MOST)
    ]
    added = list(texts(found, "added", least=0, most=MOST))
    return {"outcomes": outcomes, "added": added}, explanation(found, "reason")


def checked_claims(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Claims of an output with their weight, each accurate or not."""
    objects(found, "claims", ("claim", "importance", "accurate"), MOST)
    claims = [
        {"claim": one.claim, "importance": one.importance, "accurate": one.accurate} for one in parse_claims(found)
    ]
    return {"claims": claims}, explanation(found, "reason")


def dimension_level(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """One of the five levels."""
    reason = explanation(found, "reason")
    return {"level": parse_level(found).level, "reason": reason}, reason


def quality(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Three scores from 0 to 1."""
    reasoning, scores = explanation(found, "reasoning"), parse_quality(found)
    return {
        "answer_quality": scores.answer_quality,
        "factual_correctness": scores.factual_correctness,
        "completeness": scores.completeness,
        "reasoning": reasoning,
    }, reasoning


def grade(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Seed 002's two scores from 0 to 2."""
    graded, rationale = parse_grade(found), explanation(found, "rationale")
    return {
        "accuracy_score": graded.accuracy_score,
        "faithfulness_score": graded.faithfulness_score,
        "rationale": rationale,
    }, rationale


def agent_grade(definition: Definition) -> Reader:
    """A score from 0 to 5, or a verdict, with what failed and where."""

    def read(found: Mapping[str, object], _: Question) -> tuple[object, str]:
        reason, graded = explanation(found, "reason"), parse_agent_grade(found, definition)
        code = found["failure_code"]  # as given: the metric normalises it again and notes that it did
        binary = definition.score_type == "binary"
        reported: dict[str, object] = {"passed": graded.acceptable} if binary else {"score": graded.score}
        kept = code[:_LONGEST_CODE] if isinstance(code, str) else None
        return {**reported, "failure_code": kept, "turns": list(graded.turns), "reason": reason}, reason

    return read


def stated_claims(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Claims of any text; it may make none."""
    return texts(found, "claims", least=0, most=MAX_FACTS), explanation(found, "reason")


def pieces(key: str) -> Reader:
    """Numbers of pieces of context, as a yes or no for each."""

    def read(found: Mapping[str, object], question: Question) -> tuple[object, str]:
        count = len(question.pieces) if isinstance(question, PiecesUsed | PiecesNeeded) else 0
        named = contract.required(found, key)
        if not isinstance(named, list) or any(type(one) is not int or not 0 <= one < count for one in named):
            raise ParseError(f"{key} is not a list of numbers of pieces")
        if len(set(named)) < len(named):
            raise ParseError(f"{key} names a piece twice")
        marked = frozenset(named)
        return tuple(number in marked for number in range(count)), explanation(found, "reason")

    return read


def reasoning(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Steps with their soundness, and whether the reference reasons."""
    steps = [
        {"step": contract.text(one, "step"), "score": level(one, "score", SOUNDNESS)}
        for one in objects(found, "steps", ("step", "score"), MOST)
    ]
    return {"steps": steps, "expected": contract.yes_or_no(found, "expected")}, explanation(found, "reason")


def instructions(found: Mapping[str, object], question: Question) -> tuple[object, str]:
    """Instructions, each followed or not; where the question lists them, as many as it lists."""
    reported = [
        {"instruction": contract.text(one, "instruction"), "followed": contract.yes_or_no(one, "followed")}
        for one in objects(found, "instructions", ("instruction", "followed"), MOST)
    ]
    listed = question.instructions if isinstance(question, FollowsInstructions) else None
    if listed is not None and len(reported) != len(listed):
        raise ParseError("instructions are not as many as were asked about")
    return {"instructions": reported}, explanation(found, "reason")


def chosen_steps(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Numbers of steps, each once, in the judge's order."""
    listed = contract.required(found, "steps")
    if not isinstance(listed, list) or any(type(one) is not int for one in listed):
        raise ParseError("steps is not a list of numbers of steps")
    return tuple(dict.fromkeys(listed))[:MOST_CHOSEN], explanation(found, "reason")


def found_errors(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Errors with their places. ``cost`` is how bad the list is as a whole; a panel votes on it."""
    keys = ("category", "step", "evidence", "quotation", "impact")
    findings: list[Mapping[str, object]] = []
    for one in objects(found, "findings", keys, MOST_FOUND):
        if type(one["step"]) is not int or not isinstance(one["quotation"], str):
            raise ParseError("findings names a step that is no number, or a quotation that is no text")
        impact = contract.one_of(one, "impact", IMPACTS)
        findings.append({
            "category": contract.one_of(one, "category", CATEGORIES), "step": str(one["step"]),
            "evidence": contract.text(one, "evidence"), "quotation": one["quotation"][: contract.MAX_TEXT],
            "impact": impact, "cost": COSTS[impact],
        })  # fmt: skip
    return {"findings": findings}, explanation(found, "reason")


def achieved(found: Mapping[str, object], _: Question) -> tuple[object, str]:
    """Whether a run achieved its goal, or that this cannot be known."""
    value = contract.one_of(found, "achieved", ("all", "part", "none", CANNOT_TELL))
    return value, explanation(found, "reason")

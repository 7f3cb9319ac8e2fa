"""agent: nine metrics of a conversation in four tiers, as a judge scores them (seed 001)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.metrics.judge_metrics import (
    ACCEPTABLE_SCORE,
    DEFINITIONS,
    FULL_SCORE,
    MAX_SCORE,
    Definition,
    JudgeConfig,
)
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import known, settled
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.kinds import GradeAgent
from sidejudge.scoring.questions.question import Steps
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Bands, Method, Scored, Unavailable, must_be_one
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

SOURCE = "seed 001"
_LABEL = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_NOT_LABEL = re.compile(r"[^a-z0-9]+")
_LONGEST_LABEL = 80
UNSPECIFIED = "unspecified"
"""The failure code where a judge gave none, or an unreadable one."""
_MOST_TURNS = 200
_MOST_DROPPED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGrade:
    """A judge's grade by one metric. ``score`` is 0–5, or 0 or 1 by a binary metric; turns are numbered from 0."""

    score: int
    acceptable: bool
    failure_code: str | None
    turns: tuple[int, ...]
    reason: str
    code_note: str | None = None
    """What was wrong with the judge's own failure code, where it was replaced."""

    def details(self, conversation: Sequence[Utterance]) -> dict[str, object]:
        """The failure code and the turns; null and empty where acceptable or better.

        Non-existent turns, and a diagnosis where nothing failed, are dropped and reported.
        """
        if self.acceptable:
            reported = {"failure_code": self.failure_code, "turns": list(self.turns)}
            ignored = {key: value for key, value in reported.items() if value}
            return {"failure_code": None, "turns": [], **({"ignored": ignored} if ignored else {})}
        known = [turn for turn in self.turns if 0 <= turn < len(conversation)]
        dropped = [turn for turn in self.turns if not 0 <= turn < len(conversation)]
        found: dict[str, object] = {"failure_code": self.failure_code, "turns": known}
        if self.code_note is not None:
            found["failure_code_note"] = self.code_note
        return {**found, "dropped_turns": dropped[:_MOST_DROPPED]} if dropped else found


def parse_agent_grade(value: object, definition: Definition) -> AgentGrade:
    """Read a judge's answer, as text or decoded; ``ValueError`` names the fault.

    >>> parse_agent_grade({"score": 5, "failure_code": None, "turns": [], "reason": "ok"}, DEFINITIONS["tool_routing"])
    AgentGrade(score=5, acceptable=True, failure_code=None, turns=(), reason='ok', code_note=None)
    """
    found = contract.read_object(value)
    if definition.score_type == "binary":
        acceptable = contract.yes_or_no(found, "passed")
        score = int(acceptable)
    else:
        score = contract.whole(found, "score", 0, MAX_SCORE)
        acceptable = score >= ACCEPTABLE_SCORE
    code, note = _failure_code(found, acceptable=acceptable)
    return AgentGrade(
        score=score,
        acceptable=acceptable,
        failure_code=code,
        turns=_turns(found),
        reason=contract.text(found, "reason"),
        code_note=note,
    )


def _failure_code(found: Mapping[str, object], *, acceptable: bool) -> tuple[str | None, str | None]:
    """The code in snake_case, and the fault of the given one; a bad code does not lower the score."""
    code = contract.required(found, "failure_code")
    if code is None:
        return (None, None) if acceptable else (UNSPECIFIED, "the judge gave no failure code")
    if isinstance(code, str) and len(code) <= _LONGEST_LABEL and _LABEL.fullmatch(code):
        return code, None
    words = _NOT_LABEL.sub("_", code.lower()).strip("_")[:_LONGEST_LABEL].strip("_") if isinstance(code, str) else ""
    return words or UNSPECIFIED, "the judge's failure code was not in snake_case"


def _turns(found: Mapping[str, object]) -> tuple[int, ...]:
    listed = contract.required(found, "turns")
    if not isinstance(listed, list | tuple) or len(listed) > _MOST_TURNS:
        raise ValueError(f"turns is not a list of at most {_MOST_TURNS} turns")
    if any(type(turn) is not int or abs(turn) >= 1 << 53 for turn in listed):
        raise ValueError("turns holds something that is not a whole number")
    return tuple(sorted(set(listed)))


def _graded(definition: Definition) -> Callable[[Case], Steps]:
    def measure(case: Case) -> Steps:
        conversation = known(turns(case))
        if definition.score_type == "binary" and case.expected_outcome is None:
            return Unavailable(Reason("no expected_outcome"))
        replies = yield (GradeAgent(definition.name, case.evaluation_criteria_override or None),)
        (grade,), method, judgements = settled(replies, lambda value: parse_agent_grade(value, definition))
        return Scored(
            value=grade.score,
            method=method,
            reason=grade.reason,
            details=grade.details(conversation),
            judgements=judgements,
        )

    return measure


def _metric(definition: Definition) -> Metric:
    binary = definition.score_type == "binary"
    levels = "; ".join(f"{score}: {criteria.removesuffix('.')}" for score, criteria in definition.levels)
    return Metric(
        id=definition.name,
        title=definition.display_name,
        meaning=definition.description,
        formula=f"judge's verdict, 1 or 0. {levels}" if binary else f"judge's score, weighed as score / 5. {levels}",
        source=f"{SOURCE}, tier {definition.tier.value}; rubrics §8",
        measure=_graded(definition),
        bands=must_be_one() if binary else Bands((("good", MAX_SCORE), ("acceptable", ACCEPTABLE_SCORE)), "fail"),
        unit="pass or fail" if binary else "points",
        bounds=(0.0, 1.0 if binary else float(MAX_SCORE)),
        methods=(Method.JUDGE,),
        undefined="there is no judge, no conversation, or its trace is incomplete"
        + ("; there is no expected outcome" if binary else ""),
    )


def _share_of_full(score: float) -> float:
    return score / MAX_SCORE


METRICS: Mapping[str, Metric] = {name: _metric(definition) for name, definition in DEFINITIONS.items()}
"""Every metric by its id, opt-in included."""


def _criterion(name: str, weight: float = 0.0) -> Criterion:
    if DEFINITIONS[name].score_type == "binary":
        return Criterion(metric=METRICS[name], weight=weight)
    return Criterion(metric=METRICS[name], weight=weight, component=_share_of_full)


def agent_rubric(config: JudgeConfig) -> Rubric:
    """The rubric of a judge's configuration: its metrics with renormalised weights, and its pass threshold."""
    weights = config.weights()
    return Rubric(
        id="agent",
        title="Agent Conversation",
        source="seed 001; rubrics §8",
        formula="100 × Σ weight × score / 5 over the metrics selected, weights renormalised to sum to 1; "
        "a binary metric counts 1 or 0",
        criteria=tuple(_criterion(name, weight) for name, weight in weights.items()),
        opt_in=tuple(_criterion(n) for n, each in DEFINITIONS.items() if n not in weights and each.default_weight == 0),
        pass_mark=config.pass_threshold,
        scale=FULL_SCORE,
    )


RUBRIC = agent_rubric(JudgeConfig())

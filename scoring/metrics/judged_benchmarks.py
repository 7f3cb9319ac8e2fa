"""The two benchmarks that only a judge can evaluate: sound reasoning, and instructions followed (seed 000, Layer 2)."""

from __future__ import annotations

from collections.abc import Sequence

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.kinds import FollowsInstructions, SoundReasoning
from sidejudge.scoring.questions.question import Steps
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import NotApplicable, Scored, Unavailable

from .correctness import both_sides
from .settle import settled, unavailable
from .structure import shown_items

MAX_PARTS = 500
"""Most steps or instructions of one case."""
SOUNDNESS = (0.0, 0.5, 1.0)
"""Wrong, partial, sound."""


def argument_correctness(case: Case) -> Steps:
    """The mean over the steps of the output's reasoning; 0 where it gives none and the reference does."""
    both_sides(case)
    replies = yield (SoundReasoning(),)
    ((steps, expected),), method, judgements = settled(replies, read_reasoning)
    if not steps:
        if not expected:
            return NotApplicable(Reason("neither the output nor the expected outcome reasons"))
        return Scored(value=0.0, method=method, reason=Reason("the output gives no reasoning"), judgements=judgements)
    weak = [step for step, score in steps if score < 1]
    return Scored(
        value=sum(score for _, score in steps) / len(steps),
        method=method,
        reason=Reason("{n} of {all} steps sound", n=len(steps) - len(weak), all=len(steps))
        + (Reason("; not: {first}", first=quoted(label(weak[0]))) if weak else ""),
        details={"steps": [{"step": label(step, 200), "score": score} for step, score in steps[:20]]},
        judgements=judgements,
    )


def instruction_following(case: Case) -> Steps:
    """Instructions followed over all instructions: those of ``config.instructions``, else of the system prompt."""
    if case.model_output is None:
        return Unavailable(Reason("no output: model_output is null"))
    listed = instructions(case)
    if listed == ():
        return NotApplicable(Reason("config.instructions is empty"))
    replies = yield (FollowsInstructions(listed),)
    (judged,), method, judgements = settled(replies, lambda value: read_instructions(value, listed))
    if not judged:
        return NotApplicable(Reason("the system prompt gives no instruction"))
    broken = [instruction for instruction, followed in judged if not followed]
    return Scored(
        value=(len(judged) - len(broken)) / len(judged),
        method=method,
        reason=Reason("{n} of {all} followed", n=len(judged) - len(broken), all=len(judged))
        + (Reason("; not: {first}", first=quoted(label(broken[0]))) if broken else ""),
        details={"not_followed": shown_items(broken)},
        judgements=judgements,
    )


def instructions(case: Case) -> tuple[str, ...] | None:
    """The listed instructions; None when a judge has to find them in the system prompt."""
    listed = case.config.get("instructions")
    if listed is None:
        if case.system_prompt is None or not case.system_prompt.strip():
            raise unavailable(Reason("neither config.instructions nor system_prompt"))
        return None
    if not isinstance(listed, list) or not all(isinstance(one, str) and one.strip() for one in listed):
        raise unavailable(Reason("config.instructions is not a list of texts"))
    if len(listed) > MAX_PARTS:
        raise unavailable(Reason("config.instructions: more than {most}", most=MAX_PARTS))
    return tuple(str(one) for one in listed)


def read_reasoning(value: object) -> tuple[list[tuple[str, float]], bool]:
    """A judge's steps with their scores, and whether the reference reasons; ``ValueError`` names the fault."""
    found = contract.read_object(value)
    expected = contract.yes_or_no(found, "expected")
    return [_read_step(one) for one in _listed(found, "steps")], expected


def read_instructions(value: object, listed: Sequence[str] | None) -> list[tuple[str, bool]]:
    """A judge's instructions, each followed or not; as many as are ``listed``. ``ValueError`` names the fault."""
    judged = [_read_instruction(one) for one in _listed(contract.read_object(value), "instructions")]
    if listed is None:
        return judged
    if len(judged) != len(listed):
        raise ValueError(f"instructions are {len(judged)}, not {len(listed)}")
    return [(instruction, followed) for instruction, (_, followed) in zip(listed, judged, strict=True)]


def _listed(found: object, key: str) -> Sequence[object]:
    listed = contract.required(contract.read_object(found), key)
    if not isinstance(listed, list | tuple) or len(listed) > MAX_PARTS:
        raise ValueError(f"{key} is not a list of at most {MAX_PARTS}")
    return listed


def _read_step(value: object) -> tuple[str, float]:
    found = contract.read_object(value)
    score = contract.share(found, "score")
    if score not in SOUNDNESS:
        raise ValueError("score is not one of 1.0, 0.5 and 0.0")
    return contract.text(found, "step"), score


def _read_instruction(value: object) -> tuple[str, bool]:
    found = contract.read_object(value)
    return contract.text(found, "instruction"), contract.yes_or_no(found, "followed")

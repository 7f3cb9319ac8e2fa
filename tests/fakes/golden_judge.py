"""A judge that knows the golden set: it answers each shipped question rightly, or wrongly where it is asked to.

It finds the question by the prompt that a monitor would send, so that it also shows that every question travels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sidejudge.monitor.offline.try_judge.run import golden_set
from sidejudge.scoring.judging.form import AGAIN, prompt
from sidejudge.scoring.judging.golden import GoldenCase, GoldenQuestion
from sidejudge.scoring.judging.request import JudgeRequest, requests
from sidejudge.scoring.questions.kinds import (
    AskDeclared,
    FollowsInstructions,
    GradeAgent,
    GradeAnswer,
    GradeDimension,
    GradeQuality,
    HowFluent,
    OutcomeDrift,
    PiecesNeeded,
    PiecesUsed,
    SoundReasoning,
    StatedClaims,
    SummaryClaims,
    VerifyClaims,
)
from sidejudge.scoring.questions.question import Question
from tests.fakes.openai import Behaviour, Seen, states

CONTEXT = 32_000
Cases = Sequence[GoldenCase]
Known = Mapping[str, tuple[JudgeRequest, Mapping[Question, GoldenQuestion]]]


def knows(
    wrong: Callable[[GoldenQuestion], bool] = lambda _: False, *, cases: Cases | None = None, delay_s: float = 0.0
) -> Behaviour:
    """Answers every golden question; wrongly those that ``wrong`` picks."""
    by_prompt = known(cases or golden_set())

    def act(seen: Seen):
        return states(written(by_prompt, seen, wrong), delay_s=delay_s)(seen)

    return act


def written(by_prompt: Known, seen: Seen, wrong: Callable[[GoldenQuestion], bool] = lambda _: False) -> str:
    """What the judge writes."""
    requested, _, again = seen.messages[-1]["content"].partition("\n\n" + prompt(AGAIN)[:40])
    made, by_question = by_prompt[requested]
    ids = [name for name in made.ids if not again or name in again]
    questions = dict(zip(made.ids or ("",), made.questions, strict=True))
    found = [
        {"id": name, "metric": by_question[questions[name]].metric.removeprefix("declared "),
         **answer(by_question[questions[name]], wrong=wrong(by_question[questions[name]]))}
        for name in ids
    ]  # fmt: skip
    for one, name in zip(found, ids, strict=True):
        one["metric"] = getattr(questions[name], "metric", one["metric"])
    if made.ids:
        return json.dumps({"answers": found})
    (question,) = made.questions
    return json.dumps(answer(by_question[question], wrong=wrong(by_question[question])))


def known(cases: Cases) -> Known:
    """User prompt → the request and its golden questions."""
    found = {}
    for case in cases:
        by_question = {each.question: each for each in case.questions}
        made, _ = requests(case.case, list(by_question), context_tokens=CONTEXT)
        found |= {each.messages[-1]["content"]: (each, by_question) for each in made}
    return found


def answer(golden: GoldenQuestion, *, wrong: bool) -> dict[str, Any]:  # noqa: C901, PLR0912  # one branch a kind of question
    """The keys of one answer."""
    right = golden.right
    value = right.get("value")
    match golden.question:
        case SummaryClaims() | StatedClaims():
            return {"claims": listed(right) + (["another thing"] * 9 if wrong else []), "reason": "as it reads"}
        case OutcomeDrift():
            kept = right["kept"] if not wrong else right["outcomes"] - right["kept"]
            flags = [True] * kept + [False] * (right["outcomes"] - kept)
            return {"outcomes": [{"outcome": "o", "kept": one} for one in flags], "added": [], "reason": "as it reads"}
        case PiecesUsed(pieces) | PiecesNeeded(pieces):
            key = "used" if isinstance(golden.question, PiecesUsed) else "needed"
            return {key: [n for n in range(len(pieces)) if (n in value) is not wrong], "reason": "as it reads"}
        case SoundReasoning():
            score = 1.0 - right["lowest"] if wrong else right["lowest"]
            return {"steps": [{"step": "s", "score": score}], "expected": right["expected"], "reason": "as it reads"}
        case FollowsInstructions(instructions):
            followed = [one is not wrong for one in right["followed"]]
            pairs = zip(instructions, followed, strict=True)
            return {"instructions": [{"instruction": i, "followed": f} for i, f in pairs], "reason": "as it reads"}
        case GradeQuality():
            keys = ("answer_quality", "factual_correctness", "completeness")
            levels = {key: picked(right.get(key, [0.5, 0.5]), wrong=wrong) for key in keys}
            return {**levels, "reasoning": "as it reads"}
        case VerifyClaims():
            true, false = (low(right.get(key, 0)) for key in ("accurate", "inaccurate"))
            claims = [True] * (false if wrong else true) + [False] * (true if wrong else false)
            made = [{"claim": "c", "importance": "major", "accurate": one} for one in claims]
            return {"claims": made, "reason": "as it reads"}
        case GradeAgent():
            graded = {"passed": right["passed"] is not wrong} if "passed" in right else {}
            if "score" in right:
                graded = {"score": picked(right["score"], wrong=wrong, most=5)}
            return {**graded, "failure_code": None, "turns": [], "reason": "as it reads"}
        case GradeDimension():
            worst_first = "failed" if "excellent" in right["level"] else "excellent"
            return {"level": worst_first if wrong else right["level"][0], "reason": "as it reads"}
        case GradeAnswer():
            keys = ("accuracy_score", "faithfulness_score")
            scores = {key: picked(right.get(key, 2), wrong=wrong, most=2) for key in keys}
            return {**scores, "rationale": "as it reads"}
        case AskDeclared(kind=kind, choices=choices):
            return {"answer": declared(kind, choices, right, wrong=wrong), "reason": "as it reads"}
        case HowFluent():
            return five(picked(value, wrong=wrong))
        case _:
            if isinstance(value, bool):
                return five(int(value is not wrong))
            return five(1.0 - value if wrong else value)


def five(score: float) -> dict[str, Any]:
    return {"score": score, "expected_outcome_reference": "", "model_output_observed": "", "reason": "as it reads"}


def declared(kind: str, choices, right, *, wrong: bool):
    value = right.get("value")
    match kind:
        case "boolean":
            return value is not wrong
        case "scale":
            return picked(value, wrong=wrong, most=int(choices[-1]), least=int(choices[0]))
        case "one_of":
            return next(one for one in choices if one != value) if wrong else value
        case "number":
            return 5 if wrong else value
        case _:
            return ["nothing of this kind"] * 4 if wrong else listed(right)


def low(expected) -> int:
    return expected[0] if isinstance(expected, list) else expected


def listed(right) -> list[str]:
    count = low(right["count"])
    return [" ".join(map(str, right.get("mentions", ("thing",))))] + ["thing"] * (count - 1) if count else []


def picked(expected, *, wrong: bool, most: float = 1.0, least: float = 0.0):
    """A value of the range that is right; of the other end of the scale where it is to be wrong."""
    bottom, top = (expected[0], expected[-1]) if isinstance(expected, list) else (expected, expected)
    if not wrong:
        return bottom
    return type(bottom)(most if bottom + top < most + least else least)  # a whole number stays one

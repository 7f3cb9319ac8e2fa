"""What is written has the fields that are promised: of a verdict, of its scores, of a trace."""

from __future__ import annotations

from sidejudge.monitor.api import verdict_schemas as bodies
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS


def written() -> dict:
    """A verdict by a judge, with a score that fails and one that nobody decided."""
    grade = {"answer_quality": 0.2, "factual_correctness": 0.9, "completeness": 0.5, "reasoning": "So."}
    case = Case(case_id="c", input="When?", model_output="1932", context=("1932",))
    return score(
        case, RUBRICS["quality"], created_at="2026-01-01T00:00:00Z",
        answer=lambda _case, _question: Answer(value=grade, method=Method.JUDGE, judgement=Judgement("m", "p", 0.1)),
    ).to_json()  # fmt: skip


def always(body: type) -> set[str]:
    """The fields of a body that are never absent."""
    return {name for name, field in body.model_fields.items() if field.is_required()}


def test_a_verdict_that_is_written_has_every_promised_field():
    verdict = written()
    assert always(bodies.VerdictBody) - verdict.keys() == set(), "docs/reference/promises/files.txt: verdict"
    assert always(bodies.VerdictJudgementBody) - verdict["judge"].keys() == set()
    for each in verdict["scores"]:
        assert always(bodies.ScoreBody) - each.keys() == set(), "docs/reference/promises/files.txt: verdict scores[]"
        assert {"model", "prompt_version", "cost_usd"} <= each["judge"].keys()
    assert bodies.VerdictBody.model_validate(verdict).composite_norm is not None


def test_nothing_is_written_that_is_not_declared():
    verdict = written()
    assert verdict.keys() - bodies.VerdictBody.model_fields.keys() == {"quality"}, "what a rubric adds"
    assert {key for each in verdict["scores"] for key in each} <= bodies.ScoreBody.model_fields.keys()

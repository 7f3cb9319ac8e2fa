"""quality: seed 003 §2, three scores from one question."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.questions.kinds import GradeQuality
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.quality import parse_quality
from sidejudge.scoring.trace.span import ToolCall
from sidejudge.scoring.verdict.verdict import State

RUBRIC = RUBRICS["quality"]
AT = "2026-01-01T00:00:00Z"
GOOD = {"answer_quality": 0.9, "factual_correctness": 0.95, "completeness": 0.85, "reasoning": "Well-structured."}
NAMES = ("answer_quality", "factual_correctness", "completeness")


def case(**more):
    return Case(case_id="c", **{"model_output": "Paris", "input": "Capital?", "context": ("Paris.",), **more})


def judge(*values, **more):
    grade = GOOD | dict(zip(NAMES, values, strict=False)) | more
    return lambda _case, _question: Answer(
        value=grade, method=Method.JUDGE, judgement=Judgement("m", "p", 0.001, call="c")
    )


def verdict(about=None, answer=None, rubric=RUBRIC):
    return score(about or case(), rubric, answer=answer or judge(), created_at=AT)


def test_langfuse_names_are_the_seeds():
    assert [f"{RUBRIC.id}_{c.metric.id}" for c in RUBRIC.criteria] == [
        "quality_answer_quality", "quality_factual_correctness", "quality_completeness",
    ]  # fmt: skip


def test_one_question_gives_all_three_and_is_paid_once():
    requested = []

    def noting(about, question):
        requested.append(question)
        return judge()(about, question)

    found = verdict(answer=noting).to_json()
    assert requested == [GradeQuality()]
    paid = found["judge"]
    assert (paid["calls"], paid["cost_usd"]) == (1, 0.001)
    assert {line["reason"] for line in found["scores"]} == {"Well-structured."}


@pytest.mark.parametrize(
    ("value", "ratings"),
    [
        (1.0, ("excellent", "perfect", "complete")),
        (0.95, ("good", "mostly_correct", "mostly_complete")),
        (0.8, ("good", "mostly_correct", "mostly_complete")),
        (0.6, ("adequate", "some_issues", "partially_complete")),
        (0.4, ("poor", "significant_issues", "incomplete")),
        (0.2, ("very_poor", "major_issues", "minimal")),
        (0.19, ("unacceptable", "completely_wrong", "does_not_answer")),
        (0.0, ("unacceptable", "completely_wrong", "does_not_answer")),
    ],
)
def test_each_score_is_rated_by_the_level_it_reaches(value, ratings):
    assert tuple(line.rating for line in verdict(answer=judge(value, value, value)).scores) == ratings


@pytest.mark.parametrize(
    ("values", "passed", "rating"),
    [
        ((0.7, 0.7, 0.7), True, "acceptable"),
        ((0.8, 0.8, 0.8), True, "good"),
        ((1.0, 1.0, 0.1), True, "acceptable"),
        ((0.7, 0.7, 0.69), False, "fail"),
    ],
)
def test_a_mean_of_seven_tenths_passes(values, passed, rating):
    found = verdict(answer=judge(*values))
    assert (found.passed, found.rating) == (passed, rating)


def test_the_pass_mark_can_be_configured():
    stricter = RUBRIC.with_overrides(pass_mark=0.95)
    assert verdict(rubric=stricter).passed is False
    assert stricter.version != RUBRIC.version


def test_without_a_judge_all_three_are_unavailable():
    found = verdict(answer=nobody)
    assert (found.state, found.passed) == (State.INCOMPLETE, None)
    assert {line.result.status for line in found.scores} == {"unavailable"}
    assert "quality" not in found.to_json()


def test_without_sources_nothing_is_correct_whether_there_are_none_or_they_are_unknown():
    status = {s.metric: s.result.status for s in verdict(case(context=None, tools_used=())).scores}
    assert status["factual_correctness"] == "unavailable"
    for unknown in ({"tools_used": None}, {"tools_used": (ToolCall(name="search"),)}):
        found = verdict(case(context=None, **unknown))
        assert {s.metric: s.result.status for s in found.scores}["factual_correctness"] == "unavailable"
        assert found.state is State.INCOMPLETE


def test_completeness_tells_what_it_was_compared_with():
    def compared(**more):
        found = verdict(case(**more)).scores[2].result
        return found.details["compared_against"] if found.status == "scored" else found.status

    assert compared(scenario={"expected_answer_criteria": "names the city"}) == "expected_answer_criteria"
    assert compared(expected_outcome="Paris") == "expected_outcome"
    assert compared() == "input"
    assert compared(input=None) == "unavailable"


def test_no_answer_is_not_graded():
    found = verdict(case(model_output=None), answer=lambda *_: pytest.fail("asked"))
    assert {line.result.status for line in found.scores} == {"unavailable"}


@pytest.mark.parametrize(
    "broken",
    [
        "nonsense",
        "```\n" + json.dumps(GOOD) + "\n```",
        '{"answer_quality": NaN}',
        None,
        [GOOD],
        *({k: v for k, v in GOOD.items() if k != missing} for missing in GOOD),
        *(
            GOOD | {"completeness": wrong}
            for wrong in (True, "0.9", None, -0.01, 1.01, float("nan"), float("inf"), [1])
        ),
        *(GOOD | {"reasoning": wrong} for wrong in ("", " \n", None, 1)),
    ],
)
def test_every_breach_of_the_judges_contract_is_a_parse_error(broken):
    with pytest.raises(ValueError, match=r"\w"):
        parse_quality(broken)
    found = verdict(answer=lambda *_: Answer(value=broken, method=Method.JUDGE))
    assert {line.result.status for line in found.scores} == {"error"}
    assert found.state is State.INCOMPLETE


def test_reasoning_that_cannot_be_written_is_mended_and_cut():
    found = parse_quality(GOOD | {"reasoning": "\ud800" + "x" * 5000})
    assert found.reasoning.startswith("?x")
    assert len(found.reasoning) == 2000


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_the_composite_is_the_mean(values):
    found = verdict(answer=judge(*values))
    assert found.composite == pytest.approx(sum(values) / 3)
    assert found.passed is (round(found.composite, 9) >= 0.7)

"""answer: seed 002, metric by metric, with its strict reading of the judge."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.kinds import GradeAnswer
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.answer import parse_grade
from sidejudge.scoring.verdict.verdict import State

RUBRIC = RUBRICS["answer"]
AT = "2026-01-01T00:00:00Z"


def case(**more):
    return Case(
        case_id="c",
        model_output="Paris",
        **{"latency_e2e_ms": 1000.0, "input_tokens": 1500, "output_tokens": 300, **more},
    )


def judge(accuracy=2, faithfulness=2):
    grade = {"accuracy_score": accuracy, "faithfulness_score": faithfulness, "rationale": "Right."}
    return lambda _case, requested: Answer(
        value=grade, method=Method.JUDGE, judgement=Judgement("m", "p", 0.001, call="c")
    )


def verdict(about=None, answer=None):
    return score(about or case(), RUBRIC, answer=answer or judge(), created_at=AT)


@pytest.mark.parametrize(
    ("accuracy", "faithfulness", "latency", "tokens", "composite"),
    [
        (2, 2, 3000, 2000, 1.0),
        (1, 1, 6000, 4000, 0.45 * 0.5 + 0.30 * 0.5 + 0.15 * 0.5 + 0.10 * 0.5),
        (2, 1, 0, 0, 0.45 + 0.15 + 0.15 + 0.10),
        (2, 2, 8000, 6000, 0.75 + 0.15 * 0.375 + 0.10 / 3),
    ],
)
def test_the_composite_is_the_seeds_weighted_sum(accuracy, faithfulness, latency, tokens, composite):
    about = case(latency_e2e_ms=latency, input_tokens=tokens, output_tokens=0)
    found = verdict(about, judge(accuracy, faithfulness))
    assert found.composite == pytest.approx(composite)
    assert found.passed is True


def test_tokens_are_summed_and_related():
    values = {s.metric: getattr(s.result, "value", None) for s in verdict(case(latency_model_ms=800.0)).scores}
    assert values["total_tokens"] == 1800
    assert values["token_efficiency_ratio"] == 0.2
    assert values["latency_model_ms"] == 800


def test_no_input_tokens_divide_by_one():
    values = {s.metric: getattr(s.result, "value", None) for s in verdict(case(input_tokens=0)).scores}
    assert values["token_efficiency_ratio"] == 300


def test_a_timed_out_request_counts_with_its_elapsed_time():
    score_line = next(
        s for s in verdict(case(latency_e2e_ms=30_000, timed_out=True)).scores if s.metric == "latency_e2e_ms"
    )
    assert score_line.result.value == 30_000
    assert score_line.result.details == {"timed_out": True}


def test_unknown_tokens_leave_the_pass_open_unless_something_else_failed():
    about = case(input_tokens=None)
    assert verdict(about).state is State.INCOMPLETE
    found = verdict(about, judge(accuracy=0))
    assert (found.state, found.passed) == (State.PARTIAL, False)


def test_both_scores_come_from_one_question():
    requested = []

    def once(_case, question):
        requested.append(question)
        return judge()(_case, question)

    found = verdict(answer=once)
    assert requested == [GradeAnswer()]
    paid = found.to_json()["judge"]
    assert (paid["calls"], paid["cost_usd"]) == (1, 0.001)


GOOD = {"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Close enough."}


def test_a_contract_keeping_grade_is_read_from_text_or_object():
    assert parse_grade(GOOD) == parse_grade(json.dumps(GOOD))


@pytest.mark.parametrize(
    "broken",
    [
        "nonsense",
        "```json\n" + json.dumps(GOOD) + "\n```",
        "[1]",
        None,
        {k: v for k, v in GOOD.items() if k != "rationale"},
        GOOD | {"accuracy_score": True},
        GOOD | {"accuracy_score": 1.0},
        GOOD | {"accuracy_score": 3},
        GOOD | {"faithfulness_score": "2"},
        GOOD | {"faithfulness_score": None},
        GOOD | {"rationale": "  "},
        GOOD | {"rationale": ["x"]},
        GOOD | {"rationale": "word " * 81},
    ],
)
def test_every_breach_of_the_judges_contract_is_a_parse_error(broken):
    with pytest.raises(ValueError, match=r"\w"):
        parse_grade(broken)
    found = verdict(answer=lambda *_: Answer(value=broken, method=Method.JUDGE))
    graded = found.scores[0].result
    assert graded.status == "error"
    assert graded.reason.startswith("parse_error")
    assert found.state is State.INCOMPLETE


def test_eighty_words_are_allowed():
    assert parse_grade(GOOD | {"rationale": "word " * 80})


def test_the_verdict_carries_every_per_sample_field_of_the_seed():
    about = case(latency_e2e_ms=6000.0, latency_model_ms=800.0)
    assert verdict(about, judge(accuracy=1)).to_json()["answer"] == {
        "accuracy_score": 1, "faithfulness_score": 2, "evaluator_error": None,
        "latency_e2e_ms": 6000.0, "latency_model_ms": 800.0, "timed_out": False,
        "input_tokens": 1500, "output_tokens": 300, "total_tokens": 1800, "token_efficiency_ratio": 0.2,
        "accuracy_norm": 0.5, "faithfulness_norm": 1.0, "latency_norm": 0.5, "token_efficiency_norm": 1.0,
        "sample_score": pytest.approx(0.45 * 0.5 + 0.30 + 0.15 * 0.5 + 0.10),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda *_: NoAnswer("no judge is configured"), "unavailable"),
        (lambda *_: NoAnswer("timeout", failed=True), "error"),
        (lambda *_: Answer(value="nonsense", method=Method.JUDGE), "parse_error"),
    ],
)
def test_a_sample_without_a_grade_has_nulls_and_says_why(answer, why):
    stated = verdict(case(output_tokens=None), answer).to_json()["answer"]
    assert stated["evaluator_error"] == why
    assert (stated["accuracy_score"], stated["accuracy_norm"], stated["sample_score"]) == (None, None, None)
    assert (stated["input_tokens"], stated["output_tokens"], stated["total_tokens"]) == (1500, None, None)


@pytest.mark.parametrize("more", [{"model_output": " \n"}, {"model_output": None, "timed_out": True}])
def test_no_answer_at_all_is_for_the_judge_to_grade(more):
    requested = replace(case(), **more)
    assert verdict(requested, judge(accuracy=0)).passed is False
    assert verdict(requested, lambda *_: NoAnswer("no judge is configured")).state is State.INCOMPLETE


@pytest.mark.parametrize(
    "more", [{"model_output": None}, {"model_output": None, "timed_out": True, "content_captured": False}]
)
def test_an_answer_that_may_merely_be_lost_is_not_wrong(more):
    assert verdict(replace(case(), **more)).state is State.INCOMPLETE

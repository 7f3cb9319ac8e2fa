"""agent: seed 001, its scores, weights, failure codes and turns, and its strict reading of the judge."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.metrics.judge_metrics import DEFINITIONS, JudgeConfig, MetricSelection
from sidejudge.scoring.questions.kinds import EMPHASIS_HEADING, GradeAgent
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.agent import METRICS, agent_rubric, parse_agent_grade
from sidejudge.scoring.verdict.verdict import State

RUBRIC = RUBRICS["agent"]
AT = "2026-01-01T00:00:00Z"
DEFAULTS = {name: each.default_weight for name, each in DEFINITIONS.items() if each.include_in_defaults}
SCORED, BINARY = DEFINITIONS["tool_routing"], DEFINITIONS["task_completion"]
GOOD = {"score": 5, "failure_code": None, "turns": [], "reason": "Right."}
BAD = {"score": 2, "failure_code": "wrong_tool_selected", "turns": [1], "reason": "Wrong tool."}
JUDGEMENT = Judgement("m", "p", 0.01, call="c")


def case(**more):
    turns = (Utterance("Refund me", "user"), Utterance("Done", "agent"))
    return Case(case_id="c", **{"model_output": "Done", "transcript": turns, **more})


def judge(**grades):
    """Fives for all, but for what is named."""

    def answer(_case, question):
        given = grades.get(question.metric, 5)
        if isinstance(given, dict):
            value = given
        elif isinstance(given, bool):
            value = {"passed": given, "failure_code": None if given else "not_done", "turns": [], "reason": "r"}
        else:
            value = {"score": given, "failure_code": None if given >= 4 else "x", "turns": [], "reason": "r"}
        return Answer(value=value, method=Method.JUDGE, judgement=JUDGEMENT)

    return answer


def verdict(about=None, answer=None, rubric=RUBRIC):
    return score(about or case(), rubric, answer=answer or judge(), created_at=AT)


def result(found, metric):
    return next(line.result for line in found.scores if line.metric == metric)


@pytest.mark.parametrize(
    ("grades", "overall", "passed"),
    [
        ({}, 100.0, True),
        (dict.fromkeys(DEFAULTS, 0), 0.0, False),
        (dict.fromkeys(DEFAULTS, 4), 80.0, True),
        (dict.fromkeys(DEFAULTS, 3), 60.0, False),
        ({"tool_routing": 0}, 85.0, True),
        ({"grounding_fidelity": 0, "instruction_compliance": 0}, 75.0, True),
        ({"grounding_fidelity": 0, "instruction_compliance": 0, "response_delivery": 4}, 73.0, False),
    ],
)
def test_overall_is_the_weighted_sum_on_a_scale_of_a_hundred(grades, overall, passed):
    found = verdict(answer=judge(**grades))
    assert (found.state, found.passed) == (State.VALID, passed)
    assert found.composite == pytest.approx(overall)
    assert found.composite_norm == pytest.approx(overall / 100)


def test_the_composite_is_rated_on_its_own_scale():
    assert RUBRIC.bands.describe() == "good >= 100, acceptable >= 75, else fail"
    assert verdict().rating == "good"
    assert verdict(answer=judge(tool_routing=0)).rating == "acceptable"


@pytest.mark.parametrize(("points", "rating"), [(5, "good"), (4, "acceptable"), (3, "fail"), (0, "fail")])
def test_acceptable_or_better_begins_at_four(points, rating):
    line = next(s for s in verdict(answer=judge(tool_routing=points)).scores if s.metric == "tool_routing")
    assert line.rating == rating


def test_every_metric_asks_one_question_of_its_own_and_one_call_is_paid_once():
    requested = []

    def noting(about, question):
        requested.append(question)
        return judge()(about, question)

    found = verdict(answer=noting)
    assert requested == [GradeAgent(name) for name in DEFAULTS]
    paid = found.to_json()["judge"]
    assert (paid["calls"], paid["cost_usd"]) == (1, 0.01)


def test_the_cases_own_emphasis_reaches_the_question_and_changes_no_metric():
    requested = []

    def noting(about, question):
        requested.append(question.emphasis)
        return judge()(about, question)

    found = verdict(case(evaluation_criteria_override="Politeness matters most."), noting)
    assert set(requested) == {"Politeness matters most."}
    assert [line.metric for line in found.scores] == list(DEFAULTS)
    assert EMPHASIS_HEADING == "Test case-specific evaluation emphasis"


def test_a_judge_that_failed_is_an_error_and_not_merely_absent():
    found = verdict(answer=lambda *_: NoAnswer("timed out", failed=True))
    assert {line.result.status for line in found.scores} == {"error"}


def test_a_selection_weighs_as_the_seeds_example_says():
    chosen = (MetricSelection(metric="tool_routing", weight=1.0), MetricSelection(metric="task_completion", weight=0.5))
    rubric = agent_rubric(JudgeConfig(metrics=chosen, pass_threshold=60.0))
    about = case(expected_outcome="the refund is made")
    found = verdict(about, judge(tool_routing=4, task_completion=False), rubric)
    assert found.composite == pytest.approx(100 * 2 / 3 * 0.8)
    assert (found.passed, found.pass_mark) == (False, 60.0)
    assert verdict(about, judge(tool_routing=2, task_completion=True), rubric).passed is True
    assert rubric.version != RUBRIC.version


def test_task_completion_needs_an_expected_outcome():
    rubric = agent_rubric(JudgeConfig(metrics=(MetricSelection(metric="task_completion", weight=1),)))
    assert result(verdict(rubric=rubric), "task_completion").reason == "no expected_outcome"
    found = verdict(case(expected_outcome="x"), judge(task_completion=True), rubric)
    assert (found.composite, found.passed) == (100.0, True)


def test_the_opt_in_metric_is_declared_and_not_asked_for():
    assert [criterion.metric.id for criterion in RUBRIC.opt_in] == ["task_completion"]
    assert "task_completion" not in {criterion.metric.id for criterion in RUBRIC.criteria}
    assert list(METRICS) == list(DEFINITIONS)


def test_a_failing_metric_keeps_its_code_and_its_turns():
    details = result(verdict(answer=judge(tool_routing=BAD)), "tool_routing").details
    assert details == {"failure_code": "wrong_tool_selected", "turns": [1]}


@pytest.mark.parametrize("points", [4, 5])
def test_an_acceptable_metric_has_neither_whatever_the_judge_says(points):
    found = verdict(answer=judge(tool_routing=BAD | {"score": points}))
    assert result(found, "tool_routing").details == {
        "failure_code": None,
        "turns": [],
        "ignored": {"failure_code": "wrong_tool_selected", "turns": [1]},
    }


def test_turns_that_the_transcript_does_not_have_are_dropped_and_told():
    found = verdict(answer=judge(tool_routing=BAD | {"turns": [7, 1, -1, 0, 1, 2]}))
    assert result(found, "tool_routing").details == {
        "failure_code": "wrong_tool_selected",
        "turns": [0, 1],
        "dropped_turns": [-1, 2, 7],
    }


@pytest.mark.parametrize(
    "more",
    [
        {"transcript": None, "input": None, "model_output": None},
        {"complete": False, "completion": "deadline"},
        {"transcript": None, "model_output": None, "content_captured": False, "capture_switch": "CAPTURE=true"},
    ],
)
def test_what_cannot_be_judged_is_not_asked(more):
    found = verdict(case(**more), answer=lambda *_: pytest.fail("asked"))
    assert found.state is State.INCOMPLETE
    assert {line.result.status for line in found.scores} == {"unavailable"}


def test_a_grade_is_read_from_text_or_object():
    assert parse_agent_grade(json.dumps(BAD), SCORED) == parse_agent_grade(BAD, SCORED)


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        (None, "unspecified"),
        ("Wrong Tool", "wrong_tool"),
        ("", "unspecified"),
        ("x" * 81, "x" * 80),
        (7, "unspecified"),
    ],
)
def test_a_failure_code_that_is_none_costs_no_score_and_is_noted(code, kept):
    answer = Answer(value=BAD | {"failure_code": code}, method=Method.JUDGE)
    found = verdict(answer=lambda about, q: answer if q.metric == "tool_routing" else judge()(about, q))
    (line,) = (line for line in found.scores if line.metric == "tool_routing")
    assert line.result.value == BAD["score"]
    assert line.result.details["failure_code"] == kept
    assert "failure code" in line.result.details["failure_code_note"]


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ("nonsense", "not JSON"),
        ("```json\n" + json.dumps(GOOD) + "\n```", "not JSON"),
        ('{"score": 5, "score": 4}', "not JSON"),
        ([], "not a JSON object"),
        (None, "not a JSON object"),
        ({k: v for k, v in GOOD.items() if k != "score"}, "score is missing"),
        ({k: v for k, v in GOOD.items() if k != "failure_code"}, "failure_code is missing"),
        ({k: v for k, v in GOOD.items() if k != "turns"}, "turns is missing"),
        ({k: v for k, v in GOOD.items() if k != "reason"}, "reason is missing"),
        (GOOD | {"score": True}, "score is not"),
        (GOOD | {"score": 5.0}, "score is not"),
        (GOOD | {"score": "5"}, "score is not"),
        (GOOD | {"score": 6}, "score is not"),
        (GOOD | {"score": -1}, "score is not"),
        (GOOD | {"score": None}, "score is not"),
        (GOOD | {"score": float("nan")}, "score is not"),
        (GOOD | {"reason": " "}, "reason is empty"),
        (BAD | {"turns": None}, "turns is not a list"),
        (BAD | {"turns": 1}, "turns is not a list"),
        (BAD | {"turns": [True]}, "whole number"),
        (BAD | {"turns": ["1"]}, "whole number"),
        (BAD | {"turns": [1.0]}, "whole number"),
        (BAD | {"turns": [10**400]}, "whole number"),
        (BAD | {"turns": [0] * 201}, "turns is not a list"),
    ],
)
def test_every_breach_of_the_judges_contract_is_a_parse_error(broken, fault):
    with pytest.raises(ValueError, match=fault):
        parse_agent_grade(broken, SCORED)
    answer = Answer(value=broken, method=Method.JUDGE)
    found = verdict(answer=lambda about, q: answer if q.metric == "tool_routing" else judge()(about, q))
    failed = result(found, "tool_routing")
    assert failed.status == "error"
    assert failed.reason.startswith("parse_error: ")


@pytest.mark.parametrize("value", [1, 0, "true", None, 1.0])
def test_a_binary_metric_is_passed_or_not_and_nothing_else(value):
    grade = {"passed": value, "failure_code": "x", "turns": [], "reason": "r"}
    with pytest.raises(ValueError, match="passed is neither true nor false"):
        parse_agent_grade(grade, BINARY)
    with pytest.raises(ValueError, match="passed is missing"):
        parse_agent_grade(GOOD, BINARY)


@given(st.dictionaries(st.sampled_from(list(DEFINITIONS)), st.floats(0.01, 10), min_size=1), st.integers(0, 5))
def test_equal_scores_give_the_same_overall_under_any_selection(weights, points):
    chosen = tuple(MetricSelection(metric=name, weight=weight) for name, weight in weights.items())
    scored = [each for each in chosen if each.metric != "task_completion"]
    if scored:
        rubric = agent_rubric(JudgeConfig(metrics=tuple(scored)))
        found = verdict(answer=judge(**dict.fromkeys(DEFAULTS, points)), rubric=rubric)
        assert found.composite == pytest.approx(points * 20)

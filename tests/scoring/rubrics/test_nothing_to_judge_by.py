"""A metric with nothing to judge by has no value, and what is no answer or no evidence has a value of 0."""

from __future__ import annotations

import json

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import SpanKind
from sidejudge.scoring.verdict.verdict import State
from tests.spans import span, trace

AT = "2026-01-01T00:00:00Z"


def result(rubric, metric, answer=nobody, **about):
    found = score(Case(case_id="c", **about), RUBRICS[rubric], answer=answer, created_at=AT)
    return next(line.result for line in found.scores if line.metric == metric)


def generous(_case, question):
    """A judge that finds everything perfect."""
    del question
    claims = [{"claim": "x", "importance": "major", "accurate": True}]
    grade = {"answer_quality": 1.0, "factual_correctness": 1.0, "completeness": 1.0, "reasoning": "Fine."}
    return Answer(value={"claims": claims, "level": "excellent", "reason": "Fine.", **grade}, method=Method.JUDGE)


@pytest.mark.parametrize(("rubric", "metric"), [("dimensions", "factual_accuracy"), ("quality", "factual_correctness")])
def test_facts_are_not_judged_against_nothing(rubric, metric):
    bare = {"model_output": "It opened in 1932.", "input": "When?", "tools_used": ()}
    assert result(rubric, metric, generous, **bare).status == "unavailable"
    assert result(rubric, metric, generous, **bare, context=()).status == "not_applicable"
    assert result(rubric, metric, generous, **bare, context=("Opened in 1932.",)).status == "scored"


def test_a_scenario_with_criteria_of_the_answer_alone_makes_no_verdict_on_the_workflow():
    requested = {"expected_answer_criteria": "says when it opened"}
    found = score(
        Case(case_id="c", model_output="x", scenario=requested, agents_called=(), tools_used=()),
        RUBRICS["workflow"],
        created_at=AT,
    )
    assert (found.passed, found.state) == (None, State.INCOMPLETE)
    assert {line.result.status for line in found.scores} == {"not_applicable"}
    assert found.reason == "not applicable: the scenario asks nothing of agents or tools"


def agents(*runs, scenario):
    spans = [
        span(f"{at}", "0" if at and nested else None, SpanKind.AGENT, name=name, agent=name, start_ns=begin, end_ns=end)
        for at, (name, begin, end, nested) in enumerate(runs)
    ]
    return result(
        "workflow", "agents", model_output="x", scenario=scenario, trace=trace(*spans, completion="rooted"),
        agents_called=tuple(name for name, *_ in runs), tools_used=(),
    )  # fmt: skip


RESEARCH = {"agents_should_include": ["research"]}


def test_the_root_agent_is_the_orchestrator_whatever_its_name():
    assert agents(("travel_desk", 0, 100, False), ("research", 10, 50, True), scenario=RESEARCH).value == 1.0
    beside = agents(
        ("travel_desk", 0, 100, False), ("research", 10, 50, True), ("web", 60, 90, True), scenario=RESEARCH
    )
    assert (beside.value, beside.details["unexpected"]) == (0.0, ["web"])


def test_an_agent_that_does_not_enclose_the_others_is_no_root():
    apart = agents(("planner", 0, 10, False), ("research", 20, 50, False), scenario=RESEARCH)
    assert (apart.value, apart.details["unexpected"]) == (0.0, ["planner"])


def test_a_root_agent_that_is_excluded_or_not_always_expected_stays_unexpected():
    runs = (("travel_desk", 0, 100, False), ("research", 10, 50, True))
    assert agents(*runs, scenario=RESEARCH | {"agents_should_exclude": ["travel_desk"]}).value == 0.0
    assert agents(*runs, scenario=RESEARCH | {"always_expected": []}).value == 0.0


def card(*reasons):
    listed = [
        {"question_id": f"Q{n}", "score": 5, "max_score": 5, "type": "SCORE", "reason": reason}
        for n, reason in enumerate(reasons)
    ]
    return {"questions": listed}


def test_a_blank_reason_is_no_evidence():
    transcript = "[00:12] Agent: Good morning."
    reasons = ["Agent said 'Good morning' at 00:12.", *[" "] * 19]
    found = result(
        "qa", "evidence_backed_reasoning", lexical.answer,
        model_output=json.dumps(card(*reasons)), expected_outcome=card(*["x"] * 20), transcript=transcript,
    )  # fmt: skip
    assert found.value == pytest.approx(1 / 20)
    assert found.reason.startswith("1 of 20 reasons cite evidence")


def test_where_the_model_reports_no_entity_none_matches_across_languages():
    given = {"detected_keywords": ["refund"], "detected_topics": [], "valid_entity_set": ["refund"]}
    nothing = given | {"detected_keywords": [], "valid_entity_set": []}
    found = result("entity", "cross_language_match_rate", model_output=nothing, expected_outcome=given)
    assert (found.status, found.value) == ("scored", 0.0)

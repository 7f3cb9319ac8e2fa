"""dimensions: seed 004, five weighted dimensions, and the seed's own arithmetic beside ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.kinds import GradeDimension, VerifyClaims
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.dimensions import LEVELS, CheckedClaim, claim_accuracy, parse_claims, parse_level
from sidejudge.scoring.trace.span import ToolCall

RUBRIC = RUBRICS["dimensions"]
AT = "2026-01-01T00:00:00Z"
JUDGED = ("completeness", "citation_accuracy", "source_quality", "tool_efficiency")
CLAIM = {"claim": "opened in 1932", "importance": "major", "accurate": True}


def seeds_overall(dimension_scores, rubric):
    """``calculate_overall_score`` of seed 004, as it stands there."""
    total_weight = 0
    weighted_sum = 0
    for dimension, value in dimension_scores.items():
        if dimension in rubric:
            weight = rubric[dimension]["weight"]
            weighted_sum += value * weight
            total_weight += weight
    return weighted_sum / total_weight if total_weight > 0 else 0


def case(**more):
    return Case(
        case_id="c",
        **{"model_output": "In 1932.", "input": "When?", "expected_outcome": "1932", "tools_used": (), **more},
    )


def judge(claims=(CLAIM,), **levels):
    def answer(_case, question):
        if isinstance(question, VerifyClaims):
            value = {"claims": list(claims)}
        else:
            value = {"level": levels.get(question.dimension, "excellent"), "reason": "r"}
        return Answer(value=value, method=Method.JUDGE, judgement=Judgement("m", "p"))

    return answer


def verdict(about=None, answer=None):
    return score(about or case(), RUBRIC, answer=answer or judge(), created_at=AT)


def result(found, metric):
    return next(line.result for line in found.scores if line.metric == metric)


def test_weights_and_levels_are_the_seeds():
    assert {c.metric.id: c.weight for c in RUBRIC.criteria} == {
        "factual_accuracy": 0.30, "completeness": 0.25, "citation_accuracy": 0.15, "source_quality": 0.10,
        "tool_efficiency": 0.20,
    }  # fmt: skip
    assert LEVELS == {"excellent": 1.0, "good": 0.8, "acceptable": 0.6, "poor": 0.3, "failed": 0.0}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dimension", JUDGED)
def test_a_judged_level_is_worth_what_the_seed_says(level, dimension):
    line = next(s for s in verdict(answer=judge(**{dimension: level})).scores if s.metric == dimension)
    assert (line.result.value, line.rating, line.result.details["level"]) == (LEVELS[level], level, level)


@given(st.tuples(*[st.sampled_from(list(LEVELS))] * 4), st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_overall_is_what_the_seeds_own_function_computes(levels, claims):
    checked = [{"claim": "c", "importance": "major" if big else "minor", "accurate": ok} for big, ok in claims]
    found = verdict(answer=judge(checked, **dict(zip(JUDGED, levels, strict=True))))
    scores = {line.metric: line.result.value for line in found.scores}
    expected = seeds_overall(scores, {c.metric.id: {"weight": c.weight} for c in RUBRIC.criteria})
    assert found.composite == pytest.approx(expected)
    assert found.passed is (round(expected, 9) >= 0.7)
    weights = [2 if big else 1 for big, _ in claims]
    right = sum(weight for weight, (_, ok) in zip(weights, claims, strict=True) if ok)
    assert scores["factual_accuracy"] == pytest.approx(right / sum(weights))


@pytest.mark.parametrize(
    ("levels", "passed", "rating"),
    [
        ({}, True, "good"),
        ({"completeness": "failed"}, True, "acceptable"),  # 0.75
        ({"completeness": "failed", "source_quality": "poor"}, False, "fail"),  # 0.68
        ({"tool_efficiency": "failed", "source_quality": "failed"}, True, "acceptable"),  # 0.70, at the mark
        ({"tool_efficiency": "failed"}, True, "good"),  # 0.80
    ],
)
def test_seven_tenths_pass_and_eight_are_good(levels, passed, rating):
    found = verdict(answer=judge(**levels))
    assert (found.passed, found.rating) == (passed, rating)


def test_a_major_claim_weighs_twice_a_minor_one():
    def claim(importance, accurate):
        return CheckedClaim(claim="c", importance=importance, accurate=accurate)

    assert claim_accuracy((claim("major", False), claim("minor", True))) == pytest.approx(1 / 3)
    assert claim_accuracy((claim("major", True), claim("minor", False))) == pytest.approx(2 / 3)
    assert claim_accuracy((claim("minor", True), claim("minor", False))) == 0.5


def test_wrong_claims_are_told():
    wrong = CLAIM | {"claim": "opened in 1923", "accurate": False}
    found = result(verdict(answer=judge([CLAIM, wrong])), "factual_accuracy")
    assert found.reason == "1 of 2 claims match; major, not: opened in 1923"
    assert found.details == {"wrong": [{"claim": "opened in 1923", "importance": "major"}]}


@pytest.mark.parametrize(
    ("scenario", "method"),
    [
        (None, Method.JUDGE),
        ({"tools_should_include": ["search"]}, Method.JUDGE),
        ({"max_calls": 3}, Method.JUDGE),
        ({"tools_should_include": ["search"], "max_calls": 3}, Method.EXACT),
    ],
)
def test_tools_are_computed_only_where_expected_tools_and_a_budget_are_stated(scenario, method):
    found = result(verdict(case(scenario=scenario, tools_used=(ToolCall(name="search"),))), "tool_efficiency")
    assert (found.method, found.value) == (method, 1.0)


@pytest.mark.parametrize(
    ("more", "unavailable"),
    [
        ({"tools_used": None}, set()),
        ({"tools_used": None, "trace_id": "a" * 32}, {"tool_efficiency"}),
        ({"tools_used": None, "scenario": {"max_calls": 3}}, {"tool_efficiency"}),
        ({"complete": False}, {"tool_efficiency"}),
        ({"scenario": "absent"}, {"tool_efficiency", "completeness"}),
        ({"expected_outcome": None, "tools_used": None}, {"factual_accuracy", "citation_accuracy"}),
        ({"expected_outcome": None, "input": None}, {"completeness", "factual_accuracy"}),
        ({"model_output": None}, set(JUDGED) | {"factual_accuracy"}),
    ],
)
def test_what_is_missing_makes_unavailable_what_needs_it(more, unavailable):
    found = verdict(case(**more))
    assert {line.metric for line in found.scores if line.result.status == "unavailable"} == unavailable


def test_each_dimension_is_asked_once():
    requested = []

    def noting(about, question):
        requested.append(question)
        return judge()(about, question)

    verdict(answer=noting)
    assert requested == [VerifyClaims(), *map(GradeDimension, JUDGED)]


def test_answers_are_read_from_text_or_object():
    assert parse_level('{"level": "good", "reason": "r"}').level == "good"
    assert parse_claims(json.dumps({"claims": [CLAIM]})) == parse_claims({"claims": [CLAIM]})


@pytest.mark.parametrize(
    "broken",
    [
        "good", 0.8, None, [],
        {"reason": "r"}, {"level": "good"}, {"level": "good", "reason": ""},
        *({"level": wrong, "reason": "r"} for wrong in ("Good", "great", 0.8, 1, True, None, ["good"])),
    ],
)  # fmt: skip
def test_a_level_is_one_of_five_names(broken):
    with pytest.raises(ValueError, match=r"\w"):
        parse_level(broken)
    found = verdict(answer=lambda *_: Answer(value=broken, method=Method.JUDGE))
    assert result(found, "completeness").reason.startswith("parse_error: ")


@pytest.mark.parametrize(
    "broken",
    [
        "nonsense", None, [CLAIM], {}, {"claims": None}, {"claims": "x"}, {"claims": [CLAIM] * 501}, {"claims": ["x"]},
        *({"claims": [{k: v for k, v in CLAIM.items() if k != missing}]} for missing in CLAIM),
        *({"claims": [CLAIM | {"accurate": wrong}]} for wrong in (1, 0, "true", None, 0.5)),
        *({"claims": [CLAIM | {"importance": wrong}]} for wrong in ("Major", 2, None, "critical")),
        {"claims": [CLAIM | {"claim": " "}]},
    ],
)  # fmt: skip
def test_checked_claims_are_read_strictly(broken):
    with pytest.raises(ValueError, match=r"\w"):
        parse_claims(broken)
    found = verdict(answer=lambda *_: Answer(value=broken, method=Method.JUDGE))
    assert result(found, "factual_accuracy").reason.startswith("parse_error: ")

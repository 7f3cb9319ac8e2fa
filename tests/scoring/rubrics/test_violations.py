"""Violations: a closed list of kinds, each told at most once a verdict."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.workflow import CHECKS, KINDS, SIDES, violations
from sidejudge.scoring.trace.span import ToolCall


def departed(value=0.0, **details) -> Scored:
    return Scored(value=value, details=details)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (departed(missing=["a", "b"]), ["missing"]),
        (departed(unexpected=["x"]), ["unexpected"]),
        (departed(missing=["a"], unexpected=["x"]), ["missing", "unexpected"]),
        (departed(missing=[], unexpected=[]), []),
        (departed(), []),
        (departed(1.0, missing=["a"]), []),
        (Unavailable("u"), []),
        (NotApplicable("n"), []),
        (Failed("f"), []),
    ],
)
def test_a_side_is_told_apart_by_what_is_missing_and_what_is_unexpected(side, result, expected):
    assert list(violations({side: result})) == [f"{side}_{what}" for what in expected]


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_is_violated_when_it_was_made_and_not_met(check):
    assert list(violations({check: departed()})) == [check]
    assert list(violations({check: departed(1.0)})) == []
    assert list(violations({check: Unavailable("u")})) == []


def test_other_metrics_and_other_rubrics_violate_nothing():
    assert list(violations({"composite": departed(missing=["a"])})) == []
    assert RUBRICS["qa"].violations is None


def test_every_kind_that_is_told_is_in_the_list_and_told_once():
    everything = departed(missing=["a", "b"], unexpected=["x", "y"])
    reported = list(violations(dict.fromkeys((*SIDES, *CHECKS), everything)))
    assert sorted(reported) == sorted(KINDS)
    assert len(set(KINDS)) == len(KINDS) == 8


def test_the_metrics_it_looks_at_are_those_of_the_rubric():
    metrics = {criterion.metric.id for criterion in RUBRICS["workflow"].criteria}
    assert {*SIDES, *CHECKS} <= metrics


def test_a_real_workflow_that_went_wrong_everywhere_violates_everything():
    case = Case(
        case_id="c",
        model_output="I have no idea.",
        agents_called=("intruder",),
        tools_used=(
            ToolCall(name="second", arguments={}, result="The refund is 42.17 EUR."),
            ToolCall(name="first", arguments={"n": 0}, result={}),
            ToolCall(name="rm", arguments={}),
        ),
        scenario={
            "agents_should_include": ["research"], "agents_should_exclude": ["intruder"],
            "tools_should_include": ["look"], "tools_should_exclude": ["rm"],
            "tools_in_order": ["first", "second"], "max_calls": {"*": 1},
            "arguments": {"first": {"n": 1}}, "result_use": ["second"],
        },
    )  # fmt: skip
    found = score(case, RUBRICS["workflow"], created_at="2026-01-01T00:00:00Z")
    assert set(found.violations) == set(KINDS), found.reason

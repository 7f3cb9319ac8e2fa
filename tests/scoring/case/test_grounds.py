"""Grounds: sources, ground truth and criteria of a case, and when they are not known."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import Criteria, criteria, ground_truth, sources, text_or_json
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.trace.span import ToolCall

FOUND = ToolCall(name="search", result={"hit": 1})
NAMED = ToolCall(name="search")


def case(**fields):
    return Case(case_id="c", model_output="x", **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"context": ("a", "b")}, ("a", "b")),
        ({"context": ("a",), "tools_used": (FOUND, NAMED)}, ("a", '{"hit": 1}')),
        ({"tools_used": (FOUND,)}, ('{"hit": 1}',)),
        ({"tools_used": ()}, ()),
        ({"context": ()}, ()),
        ({"tools_used": (ToolCall(name="search", error="down"),)}, ()),
        ({"tools_used": (ToolCall(name="transfer_to_x", result="ok", handoff=True),)}, ()),
    ],
)
def test_sources_are_documents_and_results(fields, expected):
    assert sources(case(**fields)) == expected


@pytest.mark.parametrize(
    "fields", [{}, {"tools_used": (NAMED,)}, {"context": ("a",), "complete": False, "completion": "idle"}]
)
def test_unknown_sources_are_not_no_sources(fields):
    assert isinstance(sources(case(**fields)), Unavailable)


def test_ground_truth_is_the_expected_outcome_and_what_is_known_of_the_sources():
    assert ground_truth(case(expected_outcome={"year": 1932})) == ('{"year": 1932}',)
    assert ground_truth(case(expected_outcome="1932", context=("a",))) == ("1932", "a")
    assert ground_truth(case(context=("a",))) == ("a",)
    assert isinstance(ground_truth(case()), Unavailable)


def test_criteria_are_the_scenarios_else_the_reference_else_what_was_asked():
    scenario = {"expected_answer_criteria": "names the year"}
    more = {"expected_outcome": "1932", "input": "When?", "transcript": "When?"}
    assert criteria(case(scenario=scenario, **more)) == Criteria("names the year", "expected_answer_criteria")
    assert criteria(case(scenario={}, **more)) == Criteria("1932", "expected_outcome")
    assert criteria(case(input="When?")) == Criteria("When?", "input")
    assert criteria(case(transcript="When?")) == Criteria("When?", "transcript")
    assert isinstance(criteria(case()), Unavailable)


@pytest.mark.parametrize("scenario", ["absent", {"expected_criteria": "x"}, []])
def test_a_scenario_that_cannot_be_used_states_nothing(scenario):
    assert isinstance(criteria(case(scenario=scenario, input="When?")), Unavailable)


def test_what_is_nested_too_deeply_is_not_shown():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert text_or_json(deep) == "(nested too deeply to be shown)"

"""JSON Schemas agree with the readers: what a reader takes they take, what it refuses by shape they refuse."""

from __future__ import annotations

import json
from functools import cache

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from sidejudge.integrations.cases.lines import CaseError, read_case
from sidejudge.monitor.api.verdict_schemas import SCHEMAS
from sidejudge.monitor.cli import main
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.scenario.scenario import FIELDS, ScenarioError


@cache
def validator(name: str) -> Draft202012Validator:
    schema = SCHEMAS[name]()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def takes(case: object) -> bool:
    try:
        read_case(json.dumps(case), 1)
    except CaseError:
        return False
    return True


WRONG = (
    {"case_id": 7}, {"case_id": " "}, {"task": 1}, {"transcript": 3}, {"transcript": [{"speaker": "a"}]},
    {"config": []}, {"scenario": 4}, {"agents_called": ["a", 1]}, {"tools_used": [{"result": 1}]},
    {"tools_used": [""]}, {"context": "text"}, {"latency_e2e_ms": -1}, {"timed_out": "no"}, {"input_tokens": 1.5},
    {"sampling_probability": 0}, {"sampling_probability": 1.1}, {"metadata": "x"}, {"complete": 1}, {"repeats": "x"},
)  # fmt: skip
RIGHT = (
    {"case_id": "a", "task": None}, {"transcript": "text"}, {"transcript": [{"text": "hi", "at": None}]},
    {"tools_used": ["search", {"name": "x", "arguments": 1}]}, {"scenario": {"tools_should_include": ["a"]}},
    {"latency_e2e_ms": 0}, {"sampling_probability": 1}, {"metadata": {"a": [1]}}, {"unknown_field": 1},
)  # fmt: skip


@pytest.mark.parametrize("fields", WRONG, ids=json.dumps)
def test_what_the_reader_of_cases_refuses_the_schema_refuses(fields):
    case = {"model_output": "x", **fields}
    assert not takes(case)
    assert not validator("case").is_valid(case)


@pytest.mark.parametrize("fields", RIGHT, ids=json.dumps)
def test_what_the_reader_of_cases_takes_the_schema_takes(fields):
    case = {"model_output": "x", **fields}
    assert takes(case)
    assert validator("case").is_valid(case)


@pytest.mark.parametrize("name", ["model_output", "actual_output", "response", "answer"])
def test_an_output_is_required_under_any_of_its_names(name):
    assert validator("case").is_valid({name: "x"})
    assert not validator("case").is_valid({"input": "x"})


GOOD_SCENARIOS = (
    {"tools_should_include": ["a"], "closed": {"tools": False}}, {"max_calls": 3, "tools_in_order": ["a", "b"]},
    {"min_calls": {"a": 1}, "before": [["a", "b"]], "any_of": [["a", "b", "c"]]}, {"max_tokens": 20000, "name": "x"},
    {"arguments": {"a": {"q": {"matches": "x"}}}}, {"arguments_schema": {"a": {"type": "object"}}, "closed": True},
    {"values_from": {"a": {"id": ["input", "results"]}}}, {"result_use": ["a"], "expected_answer_criteria": "short"},
)  # fmt: skip
BAD_SCENARIOS = (
    {"tool_should_include": ["a"]}, {"tools_should_include": "a"}, {"closed": {"tool": True}}, {"closed": "yes"},
    {"max_calls": -1}, {"min_calls": {"a": 1.5}}, {"before": [["a"]]}, {"not_both": [["a", "b", "c"]]},
    {"any_of": [[]]}, {"max_seconds": 0}, {"arguments": ["a"]}, {"arguments_schema": 1}, {"name": 4},
    {"values_from": {"a": {"id": ["output"]}}}, {"tools_in_order": ["a", ""]},
)  # fmt: skip


@pytest.mark.parametrize("scenario", GOOD_SCENARIOS, ids=json.dumps)
def test_what_the_reader_of_scenarios_takes_the_schema_takes(scenario):
    parse_scenario("s", scenario)
    assert validator("scenario").is_valid(scenario)


@pytest.mark.parametrize("scenario", BAD_SCENARIOS, ids=json.dumps)
def test_what_the_reader_of_scenarios_refuses_by_shape_the_schema_refuses(scenario):
    with pytest.raises(ScenarioError):
        parse_scenario("s", scenario)
    assert not validator("scenario").is_valid(scenario)


def test_the_schema_of_a_scenario_has_every_field():
    assert set(SCHEMAS["scenario"]()["properties"]) == set(FIELDS)


@pytest.mark.parametrize("rubric", ["run_health", "workflow", "qa", "dimensions"])
def test_verdicts_are_as_their_schema_says(rubric):
    case = read_case('{"model_output": "x", "tools_used": ["a"], "scenario": {"tools_should_include": ["b"]}}', 1)
    verdict = score(case, RUBRICS[rubric], created_at="2026-01-01T00:00:00Z").to_json()
    assert [error.message for error in validator("verdict").iter_errors(verdict)] == []
    assert not validator("verdict").is_valid({**verdict, "coverage": 2})


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_each_is_printed(name):
    done = CliRunner().invoke(main, ["schema", f"--{name}"])
    assert json.loads(done.stdout) == json.loads(json.dumps(SCHEMAS[name]()))

"""Relations between calls, and the other things that a scenario may say of calls together."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.scenario.scenario import Relations, ScenarioError
from sidejudge.scoring.trace.span import ToolCall
from tests.linear_time import steps

METRICS = {metric.id: metric for metric in RUBRICS["workflow"].metrics}


@pytest.mark.parametrize(
    ("relation", "called", "holds"),
    [
        ({"before": [["a", "b"]]}, "ab", True), ({"before": [["a", "b"]]}, "ba", False),
        ({"before": [["a", "b"]]}, "b", False), ({"before": [["a", "b"]]}, "a", True),
        ({"before": [["a", "b"]]}, "", True),
        ({"after": [["a", "b"]]}, "ab", True), ({"after": [["a", "b"]]}, "aba", False),
        ({"after": [["a", "b"]]}, "a", False), ({"after": [["a", "b"]]}, "b", True),
        ({"not_after": [["a", "b"]]}, "ab", False), ({"not_after": [["a", "b"]]}, "ba", True),
        ({"not_after": [["a", "b"]]}, "bab", False), ({"not_both": [["a", "b"]]}, "ab", False),
        ({"not_both": [["a", "b"]]}, "aa", True), ({"any_of": [["a", "b"]]}, "b", True),
        ({"any_of": [["a", "b"]]}, "c", False),
        ({"any_of": [["a"], ["b"]]}, "a", False),
    ],
)  # fmt: skip
def test_a_relation_holds_or_does_not(relation, called, holds):
    case = Case(
        case_id="c", model_output="x", scenario=relation, tools_used=tuple(map(_call, called)), agents_called=()
    )
    result = METRICS["order"].start(case)
    assert isinstance(result, Scored)
    assert (result.value == 1.0) is holds
    assert bool(result.reason) is not holds


def _call(name, **arguments):
    return ToolCall(name=name, arguments=arguments, result=None)


@pytest.mark.parametrize(
    ("scenario", "value"),
    [
        ({"min_calls": {"a": 2}}, 1.0), ({"min_calls": {"a": 3}}, 0.0), ({"max_tokens": 30}, 1.0),
        ({"max_tokens": 29}, 0.0),
        ({"max_seconds": 2}, 1.0), ({"max_seconds": 1}, 0.0), ({"max_seconds": 1.5}, 1.0), ({"max_seconds": 1.4}, 0.0),
    ],
)  # fmt: skip
def test_a_budget_is_kept_or_not(scenario, value):
    case = Case(
        case_id="c", model_output="x", scenario=scenario, tools_used=(_call("a"), _call("a")), agents_called=(),
        input_tokens=10, output_tokens=20, latency_e2e_ms=1500.0,
    )  # fmt: skip
    result = METRICS["call_budget"].start(case)
    assert isinstance(result, Scored)
    assert result.value == value


def test_a_budget_of_what_is_not_known_is_unavailable():
    case = Case(case_id="c", model_output="x", scenario={"max_tokens": 5}, tools_used=(), agents_called=())
    assert isinstance(METRICS["call_budget"].start(case), Unavailable)


@pytest.mark.parametrize(
    ("scenario", "order_id", "value"),
    [
        ({"values_from": {"refund": {"order_id": ["input"]}}}, "4711", 1.0),
        ({"values_from": {"refund": {"order_id": ["input"]}}}, "0815", 0.0),
        ({"values_from": {"refund": {"order_id": ["results"]}}}, "0815", 1.0),
        ({"values_from": {"refund": {"order_id": ["results"]}}}, "4711", 0.0),
        ({"values_from": {"refund": {"order_id": ["input", "results"]}}}, "9999", 0.0),
        ({"arguments_schema": {"refund": {"properties": {"order_id": {}}, "additionalProperties": False}}}, "1", 1.0),
        ({"arguments_schema": {"refund": {"properties": {"order_id": {"type": "integer"}}}}}, "1", 0.0),
        ({"arguments_schema": {"refund": {"required": ["reason"]}}}, "1", 0.0),
    ],
)
def test_arguments_fit_and_come_from_somewhere(scenario, order_id, value):
    looked_up = ToolCall(name="look_up", arguments={}, result={"id": "0815"})
    later = ToolCall(name="other", arguments={}, result={"id": "9999"})
    calls = (looked_up, _call("refund", order_id=order_id), later)
    case = Case(
        case_id="c", model_output="x", input="Refund 4711", scenario=scenario, tools_used=calls, agents_called=()
    )
    result = METRICS["arguments"].start(case)
    assert isinstance(result, Scored)
    assert result.value == value


@pytest.mark.parametrize(("amount", "value"), [(1234.0, 1.0), (1234, 1.0), ("1,234", 1.0), (1235.0, 0.0), (2345, 0.0)])
def test_an_amount_stands_in_the_input_however_it_is_written(amount, value):
    case = Case(
        case_id="c", model_output="x", input="Refund $1,234", agents_called=(),
        scenario={"values_from": {"refund": {"amount": ["input"]}}}, tools_used=(_call("refund", amount=amount),),
    )  # fmt: skip
    assert METRICS["arguments"].start(case).value == value


def test_what_no_scenario_asks_for_does_not_apply():
    case = Case(
        case_id="c", model_output="x", scenario={"tools_should_include": ["a"]}, tools_used=(), agents_called=()
    )
    for metric in ("order", "call_budget", "arguments"):
        assert isinstance(METRICS[metric].start(case), NotApplicable)


def test_what_may_be_called_closes_the_side_and_is_not_missed():
    case = Case(
        case_id="c",
        model_output="x",
        scenario={"tools_may_include": ["a", "b"]},
        tools_used=(_call("a"),),
        agents_called=(),
    )
    assert METRICS["tools"].start(case).value == 1.0
    other = Case(
        case_id="c", model_output="x", scenario={"tools_may_include": ["a"]}, tools_used=(_call("z"),), agents_called=()
    )
    assert METRICS["tools"].start(other).value == 0.0


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ({"before": [["a"]]}, "before: must be a list of pairs of names"),
        ({"any_of": "a"}, "any_of: must be a list of lists of names"),
        ({"values_from": {"t": {"x": ["somewhere"]}}}, "values_from.t.x: must be a list of input and results"),
        ({"values_from": []}, "values_from: must be an object"),
        ({"max_tokens": 0}, "max_tokens: must be a number above 0"),
        ({"min_calls": {"a": -1}}, "min_calls.a: must be a whole number"),
        ({"arguments_schema": []}, "arguments_schema: must be an object"),
        ({"arguments_schema": {"t": {"type": "nonsense"}}}, "arguments_schema.t"),
    ],
)
def test_a_mistake_has_its_place(scenario, problem):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario("s", scenario)
    assert problem in str(caught.value)


def test_relations_of_nothing_ask_nothing():
    assert not Relations()
    assert list(Relations().broken(["a"])) == []


def test_a_search_that_would_take_long_fails_with_the_reason_and_what_it_found_before_decides():
    numbers = [f"A{number:05}" for number in range(20_000)]
    wanted = {"values_from": {"refund": {"order_id": ["input"]}}}

    def argued(*order_ids):
        case = Case(
            case_id="c", model_output="x", input=" ".join(numbers), scenario=wanted, agents_called=(),
            tools_used=tuple(_call("refund", order_id=order_id) for order_id in order_ids),
        )  # fmt: skip
        return METRICS["arguments"].start(case)

    assert argued(numbers[:100]).value == 1.0
    assert argued([{"order": number} for number in numbers]).value == 1.0, "what is not searched for takes no time"
    many = argued(numbers)
    assert isinstance(many, Failed)
    assert "500,000,000 characters" in many.reason
    assert argued("B00001", numbers).value == 0.0


def test_calls_that_lack_many_arguments_take_hardly_longer_than_those_that_lack_one():
    calls = tuple(_call("refund", order_id=str(number)) for number in range(1000))

    def argued(n):
        scenario = {"arguments": {"refund": {f"a{number}": {"matches": "a.*b"} for number in range(n)}}}
        case = Case(case_id="c", model_output="x", scenario=scenario, agents_called=(), tools_used=calls)
        return METRICS["arguments"].start(case)

    assert steps(lambda: argued(150)) < 2 * steps(lambda: argued(1))
    assert len(argued(150).details["violations"]) == len(argued(1).details["violations"]) == 20

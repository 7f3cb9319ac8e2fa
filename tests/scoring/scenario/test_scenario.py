"""Scenarios: what is read, and every fault told at once."""

from __future__ import annotations

import pytest

from sidejudge.scoring.scenario.expectation import Conforms, Exactly, Matches
from sidejudge.scoring.scenario.reading import parse_inline, parse_scenario
from sidejudge.scoring.scenario.scenario import MAX_CHARACTERS, MAX_PATTERNS, MAX_VALUES, ScenarioError


def test_an_empty_scenario_is_open_on_both_sides_and_expects_the_orchestrator():
    scenario = parse_scenario("s", {})
    assert scenario.name == "s"
    assert not scenario.agents.closed
    assert scenario.agents.always == ("orchestrator",)
    assert scenario.tools.asks_nothing


def test_a_side_is_closed_when_it_names_something_to_include():
    scenario = parse_scenario("s", {"tools_should_include": ["a"]})
    assert scenario.tools.closed
    assert not scenario.agents.closed


@pytest.mark.parametrize(
    ("closed", "agents", "tools"),
    [(True, True, True), (False, False, False), ({"agents": True}, True, True), ({"tools": False}, False, False)],
)
def test_closed_holds_for_both_or_for_each_side(closed, agents, tools):
    scenario = parse_scenario("s", {"closed": closed, "tools_should_include": ["a"]})
    assert (scenario.agents.closed, scenario.tools.closed) == (agents, tools)


def test_arguments_are_read_as_value_pattern_or_schema():
    scenario = parse_scenario(
        "s",
        {"arguments": {"t": {
            "a": 1, "b": {"matches": "x"}, "c": {"schema": {"type": "integer"}}, "d": {"equals": {"matches": "x"}},
            "e": {"k": 1, "l": 2},
        }}},
    )  # fmt: skip
    kinds = {name: type(expected) for name, expected in scenario.arguments["t"].items()}
    assert kinds == {"a": Exactly, "b": Matches, "c": Conforms, "d": Exactly, "e": Exactly}
    assert scenario.arguments["t"]["d"].violation({"matches": "x"}) is None


def test_max_calls_as_one_number_is_the_limit_of_all_calls():
    assert parse_scenario("s", {"max_calls": 3}).max_calls == {"*": 3}


def test_every_problem_is_told_at_once_with_its_path_and_the_nearest_key():
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(
            "s",
            {
                "tools_should_inclde": ["a"],
                "agents_should_include": "research",
                "closed": {"agent": True},
                "max_calls": {"a": -1, "b": True},
                "arguments": {"t": {"q": {"match": "x"}, "r": {"matches": "("}, "s": {"schema": {"kind": 1}}}, "u": 1},
                "tools_should_exclude": ["x"],
                "always_expected": ["x"],
            },
        )
    reported = "\n".join(raised.value.problems)
    assert len(raised.value.problems) == 10
    for part in (
        "tools_should_inclde: unknown key; did you mean tools_should_include?",
        "agents_should_include: must be a list of names",
        "closed.agent: unknown key; did you mean agents?",
        "max_calls.a: ", "max_calls.b: ",
        "arguments.t.q.match: unknown key; did you mean matches?",
        "arguments.t.r.matches: ",
        "arguments.t.s.schema.kind: not supported",
        "arguments.u: ",
        "tools_should_exclude: 'x' also stands in always_expected",
    ):  # fmt: skip
        assert part in reported


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_a_scenario_must_be_an_object(data):
    with pytest.raises(ScenarioError, match="must be an object"):
        parse_scenario("s", data)


def test_a_name_cannot_be_both_included_and_excluded():
    with pytest.raises(ScenarioError, match="also stands in"):
        parse_scenario("s", {"agents_should_include": ["a"], "agents_should_exclude": ["a"]})


def test_excluding_the_orchestrator_outweighs_the_default():
    assert parse_scenario("s", {"agents_should_exclude": ["orchestrator"]}).agents.always == ()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"tools_should_include": [f"t{n}" for n in range(MAX_VALUES)]}, "more than 5,000 values"),
        ({"description": "x" * (MAX_CHARACTERS + 1)}, "200,000 characters"),
        ({"x" * (MAX_CHARACTERS + 1): 1}, "200,000 characters"),
        (
            {"arguments": {"t": {f"a{n}": {"matches": f"x{n}"} for n in range(MAX_PATTERNS + 1)}}},
            "arguments: 201 patterns and schemas, at most 200",
        ),
    ],
)
def test_a_scenario_is_bounded(data, problem):
    with pytest.raises(ScenarioError, match=problem):
        parse_scenario("s", data)


def test_a_scenario_that_nests_too_deep_is_refused():
    deep = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ScenarioError, match="nests deeper"):
        parse_scenario("s", {"arguments": {"t": {"a": deep}}})


def test_a_scenario_that_comes_again_is_read_once_and_one_that_only_looks_equal_is_another():
    first = parse_inline({"max_calls": {"search": 1}, "arguments": {"search": {"n": {"a": [1]}}}})
    assert parse_inline({"max_calls": {"search": 1}, "arguments": {"search": {"n": {"a": [1]}}}}) is first
    one, whole, true = (parse_inline({"arguments": {"search": {"n": value}}}) for value in (1, 1.0, True))
    assert [type(each.arguments["search"]["n"].value) for each in (one, whole, true)] == [int, float, bool]
    deep: list = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ScenarioError):
        parse_inline({"name": deep})
